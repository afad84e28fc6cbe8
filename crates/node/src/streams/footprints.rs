//! Remembers which pages of a region a thread reads again and again, in whatever order.

use crate::habits::is_due;

/// How many regions of one thread are remembered: those that lie so far apart share a place.
const REGIONS: usize = 256;

/// How many pages a region has.
const PAGES: u32 = u32::BITS;

/// The pages of a region that were read between the time that one was lost and the time that one is lost again. In the
/// nodes of an irregular graph these are the same in each iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    number: u32,
    /// A bit for each page read since one was lost, as far as is known.
    present: u32,
    /// The two sets before, the later one first.
    past: [u32; 2],
    /// How many times in turn pages were asked for.
    repeated: u32,
}

/// Footprints of one thread.
#[derive(Clone, Debug)]
pub struct Footprints([Region; REGIONS]);

impl Default for Footprints {
    fn default() -> Self {
        Self([Region::default(); REGIONS])
    }
}

/// Pages close to each other: the first one that may be meant, and a bit for each that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub first: u32,
    pub pages: u32,
}

impl Footprints {
    /// A fault at a page that is read, and that may have been lost: the other pages of its region that were read the
    /// last two times, if it is the first of them this time.
    pub fn read(&mut self, page: u32, lost: bool) -> Footprint {
        let number = page / PAGES;
        let bit = 1 << (page % PAGES);
        let none = Footprint { first: number * PAGES, pages: 0 };
        let region = &mut self.0[number as usize % REGIONS];
        if region.number != number {
            *region = Region { number, ..Region::default() };
        }
        if !lost || region.present & bit == 0 {
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
        Footprint { pages: usual, ..none }
    }
}

impl Footprint {
    /// How many pages.
    pub fn count(self) -> u32 {
        self.pages.count_ones()
    }

    /// How many of them lie right behind `page`, which is of the same region.
    pub fn right_behind(self, page: u32) -> u32 {
        let behind = page - self.first + 1;
        self.pages.checked_shr(behind).unwrap_or(0).trailing_ones()
    }

    /// Without `count` pages from `first` on.
    pub fn without(self, first: u32, count: u32) -> Self {
        let bits =
            (0..count).fold(0, |bits, page| bits | 1u32.checked_shl(first + page - self.first).unwrap_or(0));
        Self { pages: self.pages & !bits, ..self }
    }

    /// As runs of adjacent pages: the first of each and how many.
    pub fn runs(self) -> impl Iterator<Item = (u32, u32)> {
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
        let mut footprints = Footprints::default();
        let mut read = |pages: &[u32]| {
            pages
                .iter()
                .map(|&page| footprints.read(page, true).runs().collect::<Vec<_>>())
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
        let mut footprints = Footprints::default();
        for page in [1, 2, 3, 1, 2, 3] {
            footprints.read(page, true);
        }
        let asked: Vec<u32> = (0..100).map(|_| footprints.read(1, true).count()).collect();
        assert_eq!(asked[0], 2);
        assert!(asked[10..].iter().all(|&asked| asked == 0));
    }

    #[test]
    fn a_footprint_is_runs_of_pages() {
        let whole = Footprint { first: 32, pages: u32::MAX };
        assert_eq!(whole.runs().collect::<Vec<_>>(), [(32, 32)]);
        assert_eq!((whole.right_behind(32), whole.right_behind(63)), (31, 0));
        let rest = whole.without(40, 24);
        assert_eq!(rest.runs().collect::<Vec<_>>(), [(32, 8)]);
        let two = Footprint { pages: 1 << 31 | 6, ..whole };
        assert_eq!(two.runs().collect::<Vec<_>>(), [(33, 2), (63, 1)]);
        assert_eq!(two.right_behind(32), 2);
    }
}
