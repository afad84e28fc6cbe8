//! Why a page had to be fetched.

use crate::Kind;
use std::ops::Range;

/// log2 of the pages in one block.
const SHIFT: u32 = 9;
const BLOCK: u32 = 1 << SHIFT;

/// What a node remembers of one page.
#[derive(Clone, Copy, Default)]
struct Past {
    /// The node that was told to have written it last.
    writer: u16,
    /// This node had it at some time.
    had: bool,
    /// This node gave it up because of a writer, or has a notice of one.
    lost: bool,
}

/// What happened to each page on this node, as far as it decides what the next fetch of the page is: a *cold* miss (the
/// node never had the page), a *coherence* miss (it lost the page to a writer), or an *excess* miss (WildFire, section
/// 3.2).
///
/// A block of 512 pages takes 2 KiB, from when the first of them is touched; 8 bytes a block before.
pub struct Misses {
    blocks: Vec<Option<Box<[Past; BLOCK as usize]>>>,
}

impl Misses {
    /// For the pages `0..pages`, none of which the node has had.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        // Made of zeros in one go: memory that the kernel need not provide before it is used.
        Self { blocks: vec![None; pages.div_ceil(1 << SHIFT) as usize] }
    }

    fn block(&mut self, page: u32) -> &mut [Past; BLOCK as usize] {
        self.blocks[(page >> SHIFT) as usize]
            .get_or_insert_with(|| Box::new([Past::default(); BLOCK as usize]))
    }

    fn past(&mut self, page: u32) -> &mut Past {
        &mut self.block(page)[(page & (BLOCK - 1)) as usize]
    }

    /// The page has come for a read or a write. Says which kind of fetch that was.
    ///
    /// # Panics
    /// If there is no such page; so do all functions.
    pub fn fetched(&mut self, page: u32, write: bool) -> Kind {
        let past = self.past(page);
        let kind = match (past.had, past.lost, write) {
            (false, _, false) => Kind::ColdRead,
            (false, _, true) => Kind::ColdWrite,
            (true, true, false) => Kind::Read,
            (true, true, true) => Kind::Write,
            (true, false, false) => Kind::ExcessRead,
            (true, false, true) => Kind::ExcessWrite,
        };
        (past.had, past.lost) = (true, false);
        kind
    }

    /// Pages have come before anybody has touched them.
    pub fn came(&mut self, pages: Range<u32>) {
        let mut next = pages.start;
        while next < pages.end {
            let inside = next & (BLOCK - 1);
            let count = (pages.end - next).min(BLOCK - inside);
            for past in &mut self.block(next)[inside as usize..(inside + count) as usize] {
                (past.had, past.lost) = (true, false);
            }
            next += count;
        }
    }

    /// There is a notice that `writer` has changed the page: the copy here is going to be given up.
    pub fn noticed(&mut self, page: u32, writer: u16) {
        let past = self.past(page);
        (past.writer, past.lost) = (writer, true);
    }

    /// The node that the last notice about the page named, if the page was lost to a writer.
    pub fn writer(&mut self, page: u32) -> Option<u16> {
        let past = self.past(page);
        past.lost.then_some(past.writer)
    }

    /// The page, which was here, has gone away: to a writer, or for another reason.
    pub fn left(&mut self, page: u32, written: bool) {
        let past = self.past(page);
        past.had = true;
        past.lost |= written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_of_a_page_says_what_its_next_fetch_is() {
        let mut misses = Misses::new(1000);
        assert_eq!(misses.fetched(999, false), Kind::ColdRead);
        assert_eq!(misses.fetched(999, true), Kind::ExcessWrite);
        misses.noticed(999, 7);
        assert_eq!(misses.writer(999), Some(7));
        assert_eq!(misses.fetched(999, false), Kind::Read);
        assert_eq!(misses.writer(999), None);
        misses.left(999, true);
        assert_eq!(misses.fetched(999, true), Kind::Write);
        misses.left(999, false);
        assert_eq!(misses.fetched(999, false), Kind::ExcessRead);
        assert_eq!(misses.fetched(998, true), Kind::ColdWrite, "its neighbour's past is none of its own");
    }

    #[test]
    fn pages_that_came_along_are_as_those_that_were_fetched() {
        let mut misses = Misses::new(2000);
        misses.noticed(600, 7);
        misses.came(100..1500);
        assert_eq!(misses.writer(600), None);
        let kinds = [99, 100, 511, 512, 600, 1499, 1500].map(|page| misses.fetched(page, false));
        let (cold, excess) = (Kind::ColdRead, Kind::ExcessRead);
        assert_eq!(kinds, [cold, excess, excess, excess, excess, excess, cold]);
    }

    #[test]
    fn a_page_that_was_written_here_first_and_then_went_to_a_writer_is_a_coherence_miss() {
        let mut misses = Misses::new(1);
        misses.left(0, true);
        assert_eq!(misses.fetched(0, false), Kind::Read);
    }
}
