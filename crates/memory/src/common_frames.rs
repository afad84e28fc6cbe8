//! Common pages: pages that all nodes of a computer map from one file, so that the hardware keeps them coherent.

use crate::MemoryError;
use crate::common_set::CommonSet;
use crate::files::out_of_the_way;
use crate::geometry::{PAGE_SIZE, RUNTIME_BASE};
use crate::mapping::{map_at, map_common, map_copy, protection};
use crate::memfd::{data_in, next_data, set_length};
use crate::peer::PEERS_BASE;
use gondwana_page::{Access, whole_pages};
use gondwana_racing::RacingBytesMut;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

/// Each run of common pages cuts a mapping of the program's view into three. Of the mappings that the kernel allows a process, common pages
/// take at most this fraction.
const OF_MAPPINGS: usize = 2;

/// The view begins at a multiple of this.
const ALIGNED: usize = 1 << 30;

/// What the kernel allows unless somebody has changed that.
const USUAL_MAPPINGS: usize = 65_530;

/// Memory for the runtimes of all nodes, in front of the common pages. Zero at first.
#[derive(Clone, Copy, Debug)]
pub struct CommonWords(&'static [AtomicU64]);

/// So many words are far enough from each other that processors do not fight for them.
const APART: usize = 16;

/// Bytes of it. Only what is used costs memory.
const WORDS_BYTES: usize = PAGE_SIZE + (16 << 20);

impl CommonWords {
    /// A word of a few that are far from all others, by its number.
    #[must_use]
    pub fn alone(&self, number: usize) -> &'static AtomicU64 {
        let all = &self.0[..PAGE_SIZE / size_of::<u64>()];
        &all[number * APART]
    }

    /// All but the first page.
    #[must_use]
    pub fn rest(&self) -> &'static [AtomicU64] {
        &self.0[PAGE_SIZE / size_of::<u64>()..]
    }
}

/// The file with the common pages, and which pages this node uses there.
pub(crate) struct CommonFrames {
    file: OwnedFd,
    /// Where page 0 is in the file.
    offset: usize,
    /// Where the runtime sees it.
    view: usize,
    /// How many pages there are.
    pages: u32,
    /// The pages that this node uses there: runs with gaps between them, each by its first page, with its end.
    runs: BTreeMap<u32, u32>,
    /// Those of them that the program sees there.
    shown: CommonSet,
    /// So many runs may there be before this node makes more pages common that begin one.
    most: usize,
}

impl CommonFrames {
    /// For `pages` pages, in a file from `start` on, on one of so many nodes. `None` if there are too few addresses for a view of so many.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        start: usize,
        pages: u32,
        nodes: u16,
    ) -> Result<Option<Self>, MemoryError> {
        let bytes = pages as usize * PAGE_SIZE;
        // Behind the runtime's view of this node's own pages, which is as long.
        let base = RUNTIME_BASE + bytes.next_multiple_of(ALIGNED);
        let all = WORDS_BYTES + bytes;
        if base + all > PEERS_BASE {
            return Ok(None);
        }
        let file = file
            .try_clone_to_owned()
            .map_err(|source| MemoryError::System { what: "sharing the common pages", source })?;
        let file = out_of_the_way(file);
        set_length(&file, start + all)?;
        map_at(base, all, file.as_fd(), start)?;
        // All nodes map what one of them makes common.
        let most = mappings_allowed() / OF_MAPPINGS / 2 / usize::from(nodes);
        let (offset, view) = (start + WORDS_BYTES, base + WORDS_BYTES);
        let (runs, shown) = (BTreeMap::new(), CommonSet::new(pages)?);
        Ok(Some(Self { file, offset, view, pages, runs, shown, most }))
    }

    /// The pages that the program uses there.
    pub(crate) fn shown(&self) -> &CommonSet {
        &self.shown
    }

    /// The words in front of the pages.
    pub(crate) fn words(&self) -> CommonWords {
        let start = (self.view - WORDS_BYTES) as *const AtomicU64;
        // SAFETY: mapped as long as the process, aligned, and accessed as atomic words only.
        CommonWords(unsafe { std::slice::from_raw_parts(start, WORDS_BYTES / size_of::<u64>()) })
    }

    /// True if one more common page is not one mapping too many.
    pub(crate) fn has_room(&self, page: u32) -> bool {
        self.runs.len() < self.most
            || self.end_before(page) == Some(page)
            || self.runs.contains_key(&(page + 1))
    }

    /// Pages as the runtime sees them.
    pub(crate) fn frames(&self, first: u32, count: u32) -> RacingBytesMut<'static> {
        assert!(u64::from(first) + u64::from(count) <= u64::from(self.pages));
        let start = self.view + first as usize * PAGE_SIZE;
        // SAFETY: the pages exist and stay mapped as long as the process, readable and writable.
        unsafe { RacingBytesMut::new(start as *mut u8, count as usize * PAGE_SIZE) }
    }

    /// Maps pages at an address, in place of what is there, `filled` or to be touched. The program may have `access` to them.
    ///
    /// # Safety
    /// The pages of the file have the contents that belong there, and nobody can access what is replaced.
    pub(crate) unsafe fn map(
        &mut self,
        base: usize,
        pages: Range<u32>,
        access: Access,
        executable: bool,
        filled: bool,
    ) -> Result<(), MemoryError> {
        let protection = protection(access, executable);
        let bytes = pages.len() * PAGE_SIZE;
        // SAFETY: the caller's promise.
        unsafe {
            map_common(base, bytes, self.file.as_fd(), self.offset_of(pages.start), protection, filled)?
        };
        self.shown.insert(pages.clone());
        self.insert(pages);
        Ok(())
    }

    /// The first run of these pages that the file has memory for. All others are zero.
    pub(crate) fn next_used(&self, pages: Range<u32>) -> Option<Range<u32>> {
        let used = next_data(&self.file, self.offset_of(pages.start), self.offset_of(pages.end))?;
        Some(self.pages_of(used))
    }

    /// All runs of these pages that the file has memory for.
    pub(crate) fn used(&self, pages: Range<u32>) -> impl Iterator<Item = Range<u32>> {
        let used = data_in(&self.file, self.offset_of(pages.start), self.offset_of(pages.end));
        used.into_iter().map(|used| self.pages_of(used))
    }

    fn pages_of(&self, bytes: Range<usize>) -> Range<u32> {
        whole_pages(bytes.start - self.offset)..whole_pages(bytes.end - self.offset)
    }

    /// Maps pages copy on write, in place of what is there.
    pub(crate) fn map_copy(&self, base: usize, bytes: usize, first: u32) -> Result<(), MemoryError> {
        map_copy(base, bytes, self.file.as_fd(), self.offset_of(first))
    }

    /// The common pages among these, run by run.
    pub(crate) fn among(&self, pages: Range<u32>) -> impl Iterator<Item = Range<u32>> {
        let first = self.runs.range(..pages.start).next_back();
        let parts = first.into_iter().chain(self.runs.range(pages.clone()));
        let parts = parts.map(move |(&start, &end)| start.max(pages.start)..end.min(pages.end));
        parts.filter(|part| !part.is_empty())
    }

    fn offset_of(&self, page: u32) -> usize {
        self.offset + page as usize * PAGE_SIZE
    }

    /// The end of the run that begins before a page.
    fn end_before(&self, page: u32) -> Option<u32> {
        self.runs.range(..page).next_back().map(|(_, &end)| end)
    }

    fn insert(&mut self, mut pages: Range<u32>) {
        while let Some((&start, &end)) =
            self.runs.range(..=pages.end).next_back().filter(|&(_, &end)| end >= pages.start)
        {
            self.runs.remove(&start);
            pages = pages.start.min(start)..pages.end.max(end);
        }
        self.runs.insert(pages.start, pages.end);
    }
}

fn mappings_allowed() -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_MAPPINGS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd::memfd;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn without_view() -> CommonFrames {
        CommonFrames {
            file: memfd(c"test").unwrap(),
            offset: 0,
            view: 0,
            pages: 64,
            runs: BTreeMap::new(),
            shown: CommonSet::new(64).unwrap(),
            most: mappings_allowed(),
        }
    }

    proptest! {
        #[test]
        fn runs_are_the_pages_put_in(
            added in proptest::collection::vec((0u32..60, 1u32..5), 0..20),
            asked in (0u32..64, 0u32..64),
        ) {
            let (mut frames, mut pages) = (without_view(), BTreeSet::new());
            for (first, count) in added {
                frames.insert(first..first + count);
                pages.extend(first..first + count);
            }
            let runs: Vec<_> = frames.among(0..64).collect();
            prop_assert!(runs.windows(2).all(|two| two[0].end < two[1].start), "{:?}", runs);
            let asked = asked.0.min(asked.1)..asked.0.max(asked.1);
            let found: Vec<u32> = frames.among(asked.clone()).flatten().collect();
            let expected: Vec<u32> = pages.into_iter().filter(|page| asked.contains(page)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn without_room_only_neighbours_of_common_pages_are_taken() {
        let mut frames = without_view();
        frames.insert(10..12);
        frames.most = 1;
        let taken: Vec<u32> = (0..64).filter(|&page| frames.has_room(page)).collect();
        assert_eq!(taken, [9, 12]);
        frames.most = 2;
        assert!(frames.has_room(40));
    }
}
