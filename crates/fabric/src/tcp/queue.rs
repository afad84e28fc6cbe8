//! A queue of bytes.

use gondwana_racing::RacingBytes;

/// Bytes that are added at the end and taken from the start.
#[derive(Default)]
pub(super) struct ByteQueue {
    bytes: Vec<u8>,
    /// How many bytes at the start of `bytes` are taken already.
    start: usize,
}

impl ByteQueue {
    /// The bytes in the queue.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.make_room();
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds bytes that threads may be writing.
    pub(super) fn extend_racing(&mut self, bytes: RacingBytes<'_>) {
        self.make_room();
        bytes.append_to(&mut self.bytes);
    }

    /// Adds `len` bytes for the caller to fill in.
    pub(super) fn grow(&mut self, len: usize) -> &mut [u8] {
        self.make_room();
        let end = self.bytes.len();
        self.bytes.resize(end + len, 0);
        &mut self.bytes[end..]
    }

    /// Takes the last `len` bytes back.
    pub(super) fn shrink(&mut self, len: usize) {
        self.bytes.truncate(self.bytes.len() - len);
    }

    /// Takes `len` bytes from the start.
    pub(super) fn consume(&mut self, len: usize) {
        self.start += len;
        debug_assert!(self.start <= self.bytes.len());
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Moves the bytes to the start of the memory when at least as many were taken, so each byte is moved at most
    /// once on average.
    fn make_room(&mut self) {
        if self.start > self.len() {
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(self.bytes.len() - self.start);
            self.start = 0;
        }
    }
}
