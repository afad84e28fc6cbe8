//! The translation buffer of a processor: the pages that it finds without a walk through page tables.
//!
//! Entries are replaced in the order in which they came (first in, first out). So a hit changes nothing, and the fast path
//! need not ask: it suffices that lines of a page that has gone are no longer fast ([`crate::l1::L1::sleep`]).

use crate::description::TlbPart;
use crate::{NANOSECOND, Time};
use std::collections::HashSet;

/// No page.
const NONE: u64 = u64::MAX;

/// Places that are looked at before the set, by the last bits of the page's number.
const RECENT: usize = 64;

/// A translation buffer.
#[derive(Clone, Debug)]
pub(crate) struct Tlb {
    /// Set by set; of each, the pages.
    pages: Vec<u64>,
    ways: usize,
    set_mask: u64,
    /// By set: the way that is replaced next.
    next: Vec<usize>,
    /// Pages that it has; a shorter way than through a large set.
    recent: [u64; RECENT],
    /// Pages that it ever had.
    had: HashSet<u64>,
    /// Binary logarithm of the bytes in a page.
    shift: u32,
    miss: Time,
}

/// A miss of the translation buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TlbMiss {
    /// How long it takes.
    pub time: Time,
    /// The buffer had the page before.
    pub again: bool,
    /// The page that had to go.
    pub gone: Option<u64>,
}

impl Tlb {
    pub(crate) fn new(part: &TlbPart, page_size: u64) -> Self {
        let number = |value: u64| usize::try_from(value).expect("machines are checked");
        let sets = part.entries / part.ways;
        Self {
            pages: vec![NONE; number(part.entries)],
            ways: number(part.ways),
            set_mask: sets - 1,
            next: vec![0; number(sets)],
            recent: [NONE; RECENT],
            had: HashSet::new(),
            shift: page_size.trailing_zeros(),
            miss: part.miss * NANOSECOND,
        }
    }

    /// Binary logarithm of the bytes in a page.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }

    /// Finds the page of an address, or puts it in.
    pub(crate) fn look_up(&mut self, address: u64) -> Option<TlbMiss> {
        let page = address >> self.shift;
        let recent = usize::try_from(page % RECENT as u64).expect("an index");
        if self.recent[recent] == page {
            return None;
        }
        let set = usize::try_from(page & self.set_mask).expect("below the number of sets");
        let places = set * self.ways..(set + 1) * self.ways;
        let hit = self.pages[places.clone()].contains(&page);
        self.recent[recent] = page;
        if hit {
            return None;
        }
        let way = self.next[set];
        self.next[set] = (way + 1) % self.ways;
        let gone = std::mem::replace(&mut self.pages[places.start + way], page);
        let gone = (gone != NONE).then_some(gone);
        if let Some(gone) = gone {
            let recent = &mut self.recent[usize::try_from(gone % RECENT as u64).expect("an index")];
            if *recent == gone {
                *recent = NONE;
            }
        }
        Some(TlbMiss { time: self.miss, again: !self.had.insert(page), gone })
    }

    /// Loses the pages of these addresses; returns those that it had.
    pub(crate) fn forget(&mut self, first: u64, bytes: u64) -> Vec<u64> {
        let pages = first >> self.shift..=(first + bytes - 1) >> self.shift;
        self.recent.iter_mut().filter(|page| pages.contains(page)).for_each(|page| *page = NONE);
        let gone = self.pages.iter_mut().filter(|page| pages.contains(page));
        gone.map(|page| std::mem::replace(page, NONE)).collect()
    }

    /// True if it has the page of an address.
    pub(crate) fn has(&self, address: u64) -> bool {
        self.pages.contains(&(address >> self.shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlb(entries: u64, ways: u64) -> Tlb {
        Tlb::new(&TlbPart { entries, ways, page_size: None, miss: 5 }, 4096)
    }

    fn miss(again: bool, gone: Option<u64>) -> Option<TlbMiss> {
        Some(TlbMiss { time: 5000, again, gone })
    }

    #[test]
    fn the_oldest_entry_of_the_set_goes() {
        let mut tlb = tlb(4, 2);
        assert_eq!([0, 2, 1].map(|page| tlb.look_up(page * 4096)), [miss(false, None); 3]);
        assert_eq!([0, 4095, 2 * 4096 + 8].map(|address| tlb.look_up(address)), [None; 3]);
        assert_eq!(tlb.look_up(4 * 4096), miss(false, Some(0)), "though 0 was used after 2");
        assert!(!tlb.has(0) && tlb.has(2 * 4096) && tlb.has(4096));
        assert_eq!(tlb.look_up(0), miss(true, Some(2)));
        assert_eq!(tlb.look_up(4 * 4096), None);
    }

    #[test]
    fn a_page_is_forgotten() {
        let mut tlb = tlb(4, 2);
        for page in 0..4 {
            tlb.look_up(page * 4096);
        }
        assert_eq!(tlb.forget(4096, 8192), [2, 1], "set by set");
        assert_eq!([0, 3].map(|page| tlb.look_up(page * 4096)), [None; 2]);
        assert_eq!(tlb.look_up(4096 + 8), miss(true, None));
        assert_eq!(tlb.look_up(2 * 4096), miss(true, Some(0)), "entries still go in their order");
        assert_eq!(tlb.forget(0x10_0000, 4096), []);
    }

    #[test]
    fn pages_with_the_same_last_bits_do_not_mix() {
        let mut tlb = tlb(4, 4);
        for page in [0, 64, 128] {
            assert_eq!(tlb.look_up(page * 4096), miss(false, None));
        }
        assert_eq!([0, 64, 128, 0].map(|page| tlb.look_up(page * 4096)), [None; 4]);
        assert_eq!([1, 2].map(|page| tlb.look_up(page * 4096).unwrap().gone), [None, Some(0)]);
        assert_eq!(tlb.look_up(0), miss(true, Some(64)), "what was looked at before the set has gone, too");
    }
}
