//! The remote-access table of a node: a word for each page, and a log for each other node.

use super::access_word::{RemoteAccessWord, Withdrawal};
use super::primitive::rest;
use super::read_log::{self, RemoteReadLog};
use super::readers::ReaderFormat;
use super::words::SharedWords;
use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use crate::mapping::map_anywhere;
use crate::memfd::{data_in, memfd, set_length};
use gondwana_page::{RemoteAccess, Writers};
use gondwana_topology::NodeSet;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

const WORD: usize = size_of::<u64>();

/// The layout of the words of a table. It is the same for all nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    pages: u32,
    nodes: u16,
}

impl TableLayout {
    /// The table of a node with `pages` pages in a run of `nodes` nodes.
    #[must_use]
    pub fn new(pages: u32, nodes: u16) -> Self {
        Self { pages, nodes }
    }

    /// The number of words in the table.
    #[must_use]
    pub fn words(self) -> usize {
        self.log(self.nodes)
    }

    /// How many nodes the run has.
    pub(super) fn nodes(self) -> u16 {
        self.nodes
    }

    /// The first word of the log of a reader. Logs begin at page boundaries.
    fn log(self, reader: u16) -> usize {
        const { assert!(read_log::WORDS * WORD == PAGE_SIZE) }
        (self.pages as usize).next_multiple_of(read_log::WORDS) + usize::from(reader) * read_log::WORDS
    }

    /// The remote-access word of a page.
    pub(super) fn access_word<W: SharedWords + ?Sized>(
        self,
        words: &W,
        page: u32,
    ) -> RemoteAccessWord<'_, W> {
        assert!(page < self.pages, "page {page} of {}", self.pages);
        RemoteAccessWord { words, word: page as usize, format: ReaderFormat::of(self.nodes.into()) }
    }

    /// The log in which a reader writes.
    pub(super) fn read_log<W: SharedWords + ?Sized>(self, words: &W, reader: u16) -> RemoteReadLog<'_, W> {
        assert!(reader < self.nodes, "node {reader} of {}", self.nodes);
        RemoteReadLog { words, first: self.log(reader) }
    }
}

/// Words that stay mapped into this process as long as it runs.
pub(crate) struct MappedWords {
    base: *mut AtomicU64,
    count: usize,
}

// SAFETY: the words are atomic and stay mapped.
unsafe impl Send for MappedWords {}
// SAFETY: as above.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// # Safety
    /// `count` words from `base` on stay mapped for reading and writing for ever.
    pub(crate) unsafe fn new(base: *mut u8, count: usize) -> Self {
        Self { base: base.cast(), count }
    }

    fn of(&self, word: usize) -> &AtomicU64 {
        assert!(word < self.count);
        // SAFETY: in bounds of a mapping that stays.
        unsafe { &*self.base.add(word) }
    }
}

impl SharedWords for MappedWords {
    fn load(&self, word: usize) -> u64 {
        self.of(word).load(Ordering::Acquire)
    }

    fn store(&self, word: usize, value: u64) {
        self.of(word).store(value, Ordering::Release);
    }

    fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<u64, u64> {
        self.of(word).compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// The table of this node, which other nodes use too.
pub(crate) struct RemoteAccessTable {
    file: OwnedFd,
    words: MappedWords,
    layout: TableLayout,
}

impl RemoteAccessTable {
    /// All pages are withdrawn, all logs empty.
    pub(crate) fn new(layout: TableLayout) -> Result<Self, MemoryError> {
        let bytes = layout.words() * WORD;
        let file = memfd(c"gondwana-remote-access")?;
        set_length(&file, bytes)?;
        let base = map_anywhere(bytes, file.as_fd())?;
        // SAFETY: just mapped, and never unmapped.
        let words = unsafe { MappedWords::new(base, layout.words()) };
        Ok(Self { file, words, layout })
    }

    /// Exposes a page that is withdrawn.
    pub(crate) fn expose(&self, page: u32, writers: Writers, more: Option<RemoteAccess>) {
        self.layout.access_word(&self.words, page).expose(writers, more);
    }

    /// Withdraws a page. `held_by` is called with the node that has the page locked, if that takes long.
    pub(crate) fn withdraw(&self, page: u32, held_by: &mut dyn FnMut(u16)) -> Withdrawal {
        self.layout.access_word(&self.words, page).withdraw(&mut rest, held_by)
    }

    /// Calls `found` for the pages that readers have logged since the last call. The node's threads have completed
    /// the writes that it is about to release.
    pub(crate) fn logged(&self, mut found: impl FnMut(u32)) {
        self.words.fence();
        for reader in 0..self.layout.nodes {
            self.layout.read_log(&self.words, reader).read(&mut found);
        }
    }

    /// Calls `found` for each of these pages that other nodes have read since it was exposed, with those nodes.
    pub(crate) fn readers(&self, pages: Range<u32>, mut found: impl FnMut(u32, NodeSet)) {
        let pages = pages.start..pages.end.min(self.layout.pages);
        // Words that were never used are holes of the file; reading them would fill the holes.
        let offset = |page: u32| page as usize * WORD;
        let number = |offset: usize| u32::try_from(offset / WORD).unwrap_or(pages.end);
        for used in data_in(&self.file, offset(pages.start), offset(pages.end)) {
            for page in number(used.start)..number(used.end) {
                let readers = self.layout.access_word(&self.words, page).readers();
                if !readers.is_empty() {
                    found(page, readers);
                }
            }
        }
    }

    /// The file of the table, for other nodes.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
