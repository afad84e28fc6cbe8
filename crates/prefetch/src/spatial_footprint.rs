//! Spatial footprints: which pages of a region a thread reads again and again, in whatever order.

use crate::sampling::is_due;

/// How many regions of one thread are remembered: those that lie so far apart share a place.
const REGIONS: usize = 256;

/// How many pages a region has.
const PAGES: u32 = u32::BITS;

/// The pages of a region that were read between two evictions of a page of the region. In the nodes of an irregular graph
/// these are the same in each iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    number: u32,
    /// A bit for each page read since the last eviction, as far as is known.
    present: u32,
    /// The two sets before, the later one first.
    past: [u32; 2],
    /// How many times in turn pages were prefetched.
    repeated: u32,
}

/// The spatial footprints of one thread.
#[derive(Clone, Debug)]
pub(crate) struct SpatialFootprints([Region; REGIONS]);

impl Default for SpatialFootprints {
    fn default() -> Self {
        Self([Region::default(); REGIONS])
    }
}

/// Pages close to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpatialFootprint {
    /// The page that the lowest bit stands for.
    pub first: u32,
    /// A bit for each page.
    pub pages: u32,
}

impl SpatialFootprints {
    /// A read fault at a page, which is `absent` if it is neither resident nor in flight: the other pages of its region
    /// that were read the last two times, if it is the first of them this time.
    pub(crate) fn read(&mut self, page: u32, absent: bool) -> SpatialFootprint {
        let number = page / PAGES;
        let bit = 1 << (page % PAGES);
        let none = SpatialFootprint { first: number * PAGES, pages: 0 };
        let region = &mut self.0[number as usize % REGIONS];
        if region.number != number {
            *region = Region { number, ..Region::default() };
        }
        if !absent || region.present & bit == 0 {
            region.present |= bit;
            return none;
        }
        region.past = [region.present, region.past[0]];
        let usual = region.past[0] & region.past[1] & !bit;
        region.present = bit;
        region.repeated = if usual == 0 { 0 } else { region.repeated.saturating_add(1) };
        if is_due(region.repeated) {
            return none;
        }
        region.present |= usual;
        SpatialFootprint { pages: usual, ..none }
    }
}

impl SpatialFootprint {
    /// How many pages.
    #[must_use]
    pub fn count(self) -> u32 {
        self.pages.count_ones()
    }

    /// How many of them lie right behind `page`, which is of the same region.
    #[must_use]
    pub fn adjacent(self, page: u32) -> u32 {
        let behind = page - self.first + 1;
        self.pages.checked_shr(behind).unwrap_or(0).trailing_ones()
    }

    /// Without `count` pages from `first` on.
    #[must_use]
    pub fn without(self, first: u32, count: u32) -> Self {
        let bits =
            (0..count).fold(0, |bits, page| bits | 1u32.checked_shl(first + page - self.first).unwrap_or(0));
        Self { pages: self.pages & !bits, ..self }
    }

    /// As ranges of adjacent pages: the first of each and how many.
    pub fn ranges(self) -> impl Iterator<Item = (u32, u32)> {
        let mut pages = self.pages;
        std::iter::from_fn(move || {
            let skipped = pages.trailing_zeros();
            let count = pages.checked_shr(skipped)?.trailing_ones();
            pages &= !(u32::MAX >> (PAGES - count) << skipped);
            Some((self.first + skipped, count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_twice_is_read_again() {
        let mut footprints = SpatialFootprints::default();
        let mut read = |pages: &[u32]| {
            pages
                .iter()
                .map(|&page| footprints.read(page, true).ranges().collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let nothing = vec![vec![]; 4];
        assert_eq!(read(&[64, 70, 66, 65]), nothing);
        assert_eq!(read(&[70, 65, 66, 80]), nothing);
        assert_eq!(read(&[66]), [[(65, 1), (70, 1)]]);
        assert_eq!(read(&[65]), [[(66, 1), (70, 1)]]);
    }

    #[test]
    fn what_is_no_longer_read_is_given_up() {
        let mut footprints = SpatialFootprints::default();
        for page in [1, 2, 3, 1, 2, 3] {
            footprints.read(page, true);
        }
        let asked: Vec<u32> = (0..100).map(|_| footprints.read(1, true).count()).collect();
        assert_eq!(asked[0], 2);
        assert!(asked[10..].iter().all(|&asked| asked == 0));
    }

    #[test]
    fn a_footprint_is_ranges_of_pages() {
        let whole = SpatialFootprint { first: 32, pages: u32::MAX };
        assert_eq!(whole.ranges().collect::<Vec<_>>(), [(32, 32)]);
        assert_eq!((whole.adjacent(32), whole.adjacent(63)), (31, 0));
        let rest = whole.without(40, 24);
        assert_eq!(rest.ranges().collect::<Vec<_>>(), [(32, 8)]);
        let two = SpatialFootprint { pages: 1 << 31 | 6, ..whole };
        assert_eq!(two.ranges().collect::<Vec<_>>(), [(33, 2), (63, 1)]);
        assert_eq!(two.adjacent(32), 2);
    }
}
