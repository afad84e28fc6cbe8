//! Pristine copies of pages that are being written.

use crate::MemoryError;
use crate::geometry::{PAGE_SIZE, PageBytes};
use crate::mapping::{SparseTable, map_private};

/// The number of frames allocated at a time: one system call costs less than a fault for each.
const CHUNK: usize = 64;

/// The twins of this node, in recycled frames: that of the next twin is probably still in the cache.
pub(crate) struct Twins {
    /// Index of the page's frame plus one; 0: no twin.
    frame_of: SparseTable<u32>,
    chunks: Vec<Chunk>,
    /// How many frames were ever used.
    used: u32,
    free: Vec<u32>,
}

impl Twins {
    /// For so many pages.
    pub(crate) fn new(pages: usize) -> Result<Self, MemoryError> {
        Ok(Self { frame_of: SparseTable::new(pages)?, chunks: vec![], used: 0, free: vec![] })
    }

    /// A frame for the twin of a page, with any contents.
    ///
    /// # Panics
    /// If the page has a twin already.
    pub(crate) fn take(&mut self, page: u32) -> &mut PageBytes {
        assert_eq!(self.frame_of.get(page), 0, "page {page} has a twin already");
        let frame = self.free.pop().unwrap_or_else(|| {
            if self.used as usize == self.chunks.len() * CHUNK {
                self.chunks.push(Chunk::new());
            }
            self.used += 1;
            self.used
        });
        self.frame_of.set(page, frame);
        self.frame(frame)
    }

    /// The twin of a page.
    ///
    /// # Panics
    /// If it has none.
    pub(crate) fn of(&mut self, page: u32) -> &mut PageBytes {
        let frame = self.frame_of.get(page);
        assert_ne!(frame, 0, "page {page} has no twin");
        self.frame(frame)
    }

    /// Forgets the twin of a page.
    ///
    /// # Panics
    /// If it has none.
    pub(crate) fn give_back(&mut self, page: u32) {
        let frame = self.frame_of.get(page);
        assert_ne!(frame, 0, "page {page} has no twin");
        self.frame_of.set(page, 0);
        self.free.push(frame);
    }

    fn frame(&mut self, frame: u32) -> &mut PageBytes {
        let index = frame as usize - 1;
        self.chunks[index / CHUNK].frame(index % CHUNK)
    }
}

/// Frames that stay as long as the process.
struct Chunk(*mut PageBytes);

// SAFETY: plain memory, which only this value leads to.
unsafe impl Send for Chunk {}

impl Chunk {
    /// # Panics
    /// If there is no memory left.
    fn new() -> Self {
        let bytes = CHUNK * PAGE_SIZE;
        let start = map_private(bytes).expect("memory for twins");
        // SAFETY: this changes no contents. It is a help only, so that its result does not matter.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_POPULATE_WRITE) };
        Self(start.cast())
    }

    fn frame(&mut self, index: usize) -> &mut PageBytes {
        assert!(index < CHUNK);
        // SAFETY: in bounds of memory that stays mapped and that nobody else uses.
        unsafe { &mut *self.0.add(index) }
    }
}
