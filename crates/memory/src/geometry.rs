//! Which addresses are shared and how pages of them are numbered.

use gondwana_page::whole_pages;
use std::ops::Range;

pub use gondwana_page::PAGE_SIZE;

/// The contents of one page.
pub type PageBytes = [u8; PAGE_SIZE];

/// First address of the span: far above the program break and far below the stack and the libraries, on every
/// x86-64 Linux with address space randomisation off.
pub const SPAN_BASE: usize = 0x1000_0000_0000;

/// Where the runtime's own view begins: page `p` is at `RUNTIME_BASE + p * PAGE_SIZE`.
pub const RUNTIME_BASE: usize = 0x3000_0000_0000;

/// The addresses that `MAP_32BIT` asks for, as far as the program does not lie there.
pub const LOW: Range<usize> = 0x4000_0000..0x8000_0000;

/// A run of shared addresses whose pages are numbered in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of its first byte, page aligned.
    pub base: usize,
    /// Length in pages.
    pub pages: u32,
    /// Number of its first page.
    pub first: u32,
}

impl Segment {
    /// The page that holds `address`, if it is in this segment.
    #[must_use]
    #[inline]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        let offset = whole_pages(address.wrapping_sub(self.base));
        (offset < self.pages).then(|| self.first + offset)
    }

    /// The address of a page of this segment.
    #[must_use]
    pub fn address_of(&self, page: u32) -> Option<usize> {
        let offset = page.wrapping_sub(self.first);
        (offset < self.pages).then(|| self.base + offset as usize * PAGE_SIZE)
    }
}

/// The shared address space: the span first, then the overlaid data of the executable and its libraries, then low addresses.
#[derive(Clone, Debug)]
pub struct Geometry {
    span: Segment,
    overlays: Vec<Segment>,
    low: Option<Segment>,
}

impl Geometry {
    /// A span of `span_pages` pages, and the page-aligned `(base, pages)` ranges laid over program data.
    #[must_use]
    pub fn new(span_pages: u32, overlays: &[(usize, u32)]) -> Self {
        let span = Segment { base: SPAN_BASE, pages: span_pages, first: 0 };
        let mut first = span_pages;
        let overlays = overlays
            .iter()
            .map(|&(base, pages)| {
                let segment = Segment { base, pages, first };
                first += pages;
                segment
            })
            .collect();
        Self { span, overlays, low: None }
    }

    /// The same with the addresses of [`LOW`].
    #[must_use]
    pub fn with_low(self) -> Self {
        let low = Segment { base: LOW.start, pages: whole_pages(LOW.len()), first: self.pages() };
        Self { low: Some(low), ..self }
    }

    /// The span: heap, stacks and anonymous mappings.
    #[must_use]
    pub fn span(&self) -> Segment {
        self.span
    }

    /// The overlaid data segments.
    #[must_use]
    pub fn overlays(&self) -> &[Segment] {
        &self.overlays
    }

    /// The low addresses, if they are shared.
    #[must_use]
    pub fn low(&self) -> Option<Segment> {
        self.low
    }

    /// All of them, in the order of their pages.
    pub fn segments(&self) -> impl Iterator<Item = Segment> {
        std::iter::once(self.span).chain(self.overlays.iter().copied()).chain(self.low)
    }

    /// The number of all pages.
    #[must_use]
    pub fn pages(&self) -> u32 {
        let last = self.low.or(self.overlays.last().copied()).unwrap_or(self.span);
        last.first + last.pages
    }

    /// The page that holds `address`, if the address is shared.
    #[must_use]
    #[inline]
    pub fn page_of(&self, address: usize) -> Option<u32> {
        self.span
            .page_of(address)
            .or_else(|| self.overlays.iter().chain(&self.low).find_map(|segment| segment.page_of(address)))
    }

    /// The program's address of a page.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn address_of(&self, page: u32) -> usize {
        self.segment_of(page).address_of(page).expect("page is in the segment")
    }

    /// The number of pages from `first` on, before `end`, at consecutive addresses: page numbers are consecutive
    /// across segments, addresses are not.
    #[must_use]
    pub fn consecutive(&self, first: u32, end: u32) -> u32 {
        let segment = self.segment_of(first);
        end.min(segment.first + segment.pages) - first
    }

    /// The pages that have a byte between two addresses, segment by segment.
    pub fn pages_between(&self, start: usize, end: usize) -> impl Iterator<Item = Range<u32>> {
        self.segments().filter_map(move |segment| {
            let number = |bytes| segment.first + whole_pages(bytes).min(segment.pages);
            let from = number(start.saturating_sub(segment.base));
            let to = number(end.saturating_sub(segment.base).saturating_add(PAGE_SIZE - 1));
            (from < to).then_some(from..to)
        })
    }

    /// The segment that a page is in.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn segment_of(&self, page: u32) -> Segment {
        self.segments()
            .find(|segment| segment.address_of(page).is_some())
            .unwrap_or_else(|| panic!("page {page} is not in the shared address space"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_pages_end_with_their_segment() {
        let geometry = Geometry::new(100, &[(0x40_0000, 3), (0x80_0000, 5)]);
        assert_eq!(geometry.consecutive(90, 95), 5);
        assert_eq!(geometry.consecutive(98, 108), 2);
        assert_eq!(geometry.consecutive(100, 108), 3);
        assert_eq!(geometry.consecutive(103, 108), 5);
    }

    #[test]
    fn ranges_of_addresses_are_pages_of_segments() {
        let geometry = Geometry::new(100, &[(0x40_0000, 3), (0x80_0000, 5)]);
        let between = |start, end| geometry.pages_between(start, end).collect::<Vec<_>>();
        assert_eq!(between(0, usize::MAX), [0..100, 100..103, 103..108]);
        assert_eq!(between(0x40_1fff, 0x40_2001), std::slice::from_ref(&(101..103)));
        assert_eq!(between(0x40_2000, 0x80_0000), std::slice::from_ref(&(102..103)));
        assert_eq!(between(SPAN_BASE, SPAN_BASE + 1), std::slice::from_ref(&(0..1)));
        assert_eq!(between(0x40_3000, 0x80_0000), []);
    }

    #[test]
    fn pages_and_addresses_are_inverse() {
        let geometry = Geometry::new(10, &[(0x40_0000, 3), (0x50_0000, 1)]);
        let with_low = geometry.clone().with_low();
        assert_eq!((geometry.pages(), with_low.pages()), (14, 14 + (1 << 18)));
        for geometry in [&geometry, &with_low] {
            for page in 0..geometry.pages() {
                assert_eq!(geometry.page_of(geometry.address_of(page) + 4095), Some(page));
            }
        }
        assert_eq!((geometry.page_of(LOW.start), with_low.page_of(LOW.start)), (None, Some(14)));
        assert_eq!(with_low.page_of(LOW.end), None);
        assert_eq!(geometry.page_of(SPAN_BASE + 10 * PAGE_SIZE), None);
        assert_eq!(geometry.page_of(0x40_0000 + 3 * PAGE_SIZE), None);
        assert_eq!(geometry.page_of(0), None);
    }
}
