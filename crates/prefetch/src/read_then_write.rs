//! Whether streams that an instruction reads are written soon after, so that they can be requested for writing at once.

use crate::sampling::is_due;

/// How many streams in turn must have been written before the next one is requested for writing.
const PROOF: u32 = 2;

/// What will write a stream that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writer {
    /// The instruction.
    pub code: usize,
    /// How many pages of it: others may go on from there, and only read.
    pub pages: u32,
}

/// Whether what one instruction reads is written soon after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadThenWrite {
    /// How many streams in turn were written.
    repeated: u32,
    /// The present stream was requested for writing, so that no fault shows whether it is written.
    trusted: bool,
    /// How many pages of the present stream were written, beyond those that were requested for writing.
    written: u32,
    /// What has written the last stream of which that was seen.
    writer: Writer,
}

impl ReadThenWrite {
    /// An instruction begins to read a stream, after one of `pages` pages: what will write it, if anything will.
    pub(crate) fn begin(&mut self, pages: u32) -> Option<Writer> {
        let was = self.trusted || 2 * self.written > pages;
        if !self.trusted {
            self.writer.pages = self.written;
        }
        self.written = 0;
        self.repeated = if was { self.repeated.saturating_add(1) } else { 0 };
        self.trusted = self.repeated >= PROOF && !is_due(self.repeated);
        self.trusted.then_some(self.writer)
    }

    /// So many more pages of the present stream are written, by this instruction.
    pub(crate) fn note(&mut self, pages: u32, code: usize) {
        self.written = self.written.saturating_add(pages);
        if !self.trusted {
            self.writer.code = code;
        }
    }
}
