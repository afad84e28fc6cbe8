//! The remote-access table of a node: a word for each page, and two logs for each other node.

use super::access_word::{RemoteAccessWord, Withdrawal};
use super::notice;
use super::primitive::rest;
use super::readers::ReaderFormat;
use super::remote_log::RemoteLog;
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

/// Words of a page: logs begin at page boundaries.
const WORDS_OF_PAGE: usize = PAGE_SIZE / WORD;

/// Words of a remote-read log.
const READ_LOG: usize = WORDS_OF_PAGE;

/// Words of a notice log. A node that writes pages of a sharer that does not acquire fills it; then it sends messages.
const NOTICE_LOG: usize = 8 * WORDS_OF_PAGE;

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
        self.logs(self.nodes)
    }

    /// How many nodes the run has.
    pub(super) fn nodes(self) -> u16 {
        self.nodes
    }

    /// The first word of the logs that a node writes.
    fn logs(self, writer: u16) -> usize {
        let pages = (self.pages as usize).next_multiple_of(WORDS_OF_PAGE);
        pages + usize::from(writer) * (READ_LOG + NOTICE_LOG)
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

    /// The remote-read log in which a reader writes.
    pub(super) fn read_log<W: SharedWords + ?Sized>(self, words: &W, reader: u16) -> RemoteLog<'_, W> {
        assert!(reader < self.nodes, "node {reader} of {}", self.nodes);
        RemoteLog::new(words, self.logs(reader), READ_LOG)
    }

    /// The notice log in which a node writes.
    pub(super) fn notice_log<W: SharedWords + ?Sized>(self, words: &W, writer: u16) -> RemoteLog<'_, W> {
        assert!(writer < self.nodes, "node {writer} of {}", self.nodes);
        RemoteLog::new(words, self.logs(writer) + READ_LOG, NOTICE_LOG)
    }
}

/// Words that stay mapped into this process as long as it runs.
#[derive(Clone, Copy)]
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

/// Whether other nodes have logged reads that this one has not looked at yet.
#[derive(Clone, Copy)]
pub struct LoggedReads {
    words: MappedWords,
    layout: TableLayout,
}

impl LoggedReads {
    /// True if another node has copied a page beside writers of this one, and a release has not found that yet. Who copies one later has
    /// what the calling thread has written so far.
    #[must_use]
    pub fn any(&self) -> bool {
        self.words.fence();
        (0..self.layout.nodes).any(|reader| !self.layout.read_log(&self.words, reader).is_read())
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

    /// Tells whether there is anything for [`RemoteAccessTable::logged`].
    pub(crate) fn logged_reads(&self) -> LoggedReads {
        LoggedReads { words: self.words, layout: self.layout }
    }

    /// Calls `found` for the pages that readers have logged since the last call. The node's threads have completed
    /// the writes that it is about to release.
    pub(crate) fn logged(&self, mut found: impl FnMut(u32)) {
        self.words.fence();
        for reader in 0..self.layout.nodes {
            let log = self.layout.read_log(&self.words, reader);
            log.read(|page| u32::try_from(page).into_iter().for_each(&mut found));
        }
    }

    /// Calls `found` for the pages that other nodes have logged notices about since the last call, with the node that wrote each.
    pub(crate) fn notices(&self, mut found: impl FnMut(u16, u32)) {
        for writer in 0..self.layout.nodes {
            self.layout.notice_log(&self.words, writer).read(|entry| {
                let (origin, page) = notice::parts(entry);
                found(origin, page);
            });
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
