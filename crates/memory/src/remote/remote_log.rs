//! Logs that one node writes into the memory of another one without a message.
//!
//! There are two for each pair of nodes:
//!
//! - In the *remote-read log* of a home, a reader logs the pages that it copies while the home's threads may write them. The home
//!   scans it when it releases. The reader logs a page and executes a full fence before it copies; the home executes one between the
//!   writes of its threads and the scan. So either the home finds the page, or the copy contains the released writes.
//! - In the *notice log* of a sharer, a node logs the pages that have changed (Cashmere, section 2.3). The sharer scans it when it
//!   acquires. What tells the sharer of the release is sent after the entries were written, so that it finds them.

use super::words::SharedWords;
use gondwana_page::to_usize;

/// The number of entries that were ever written. Only the writer writes it.
const WRITTEN: usize = 0;

/// The number of these that were read, in another cache line. Only the owner of the log writes it.
const READ: usize = 8;

/// The entries begin here.
const LINES: usize = 16;

/// The log of one node for what another one writes: all zero is empty.
pub(super) struct RemoteLog<'a, W: ?Sized> {
    words: &'a W,
    /// Number of its first word.
    first: usize,
    /// How many entries it has room for.
    most: u64,
}

impl<'a, W: SharedWords + ?Sized> RemoteLog<'a, W> {
    /// The log in `length` words from `first` on.
    pub(super) fn new(words: &'a W, first: usize, length: usize) -> Self {
        Self { words, first, most: length.saturating_sub(LINES) as u64 }
    }

    /// The free entries. The number can only grow until the writer writes.
    pub(super) fn room(&self) -> u64 {
        let read = self.words.load(self.first + READ);
        self.most.saturating_sub(self.words.load(self.first + WRITTEN).wrapping_sub(read))
    }

    /// Appends an entry, for which there must be room.
    pub(super) fn write(&self, entry: u64) {
        debug_assert!(self.room() > 0, "an entry would be lost");
        let number = self.words.load(self.first + WRITTEN);
        self.words.store(self.line(number), entry);
        self.words.store(self.first + WRITTEN, number.wrapping_add(1));
    }

    /// The owner reads what has been written since it last did.
    pub(super) fn read(&self, mut found: impl FnMut(u64)) {
        let written = self.words.load(self.first + WRITTEN);
        let mut number = self.words.load(self.first + READ);
        if number == written {
            return;
        }
        // A writer with a wrong count makes the owner look at some entries needlessly.
        for _ in 0..written.wrapping_sub(number).min(self.most) {
            found(self.words.load(self.line(number)));
            number = number.wrapping_add(1);
        }
        self.words.store(self.first + READ, written);
    }

    /// True if the owner has read all that was written.
    pub(super) fn is_read(&self) -> bool {
        self.words.load(self.first + READ) == self.words.load(self.first + WRITTEN)
    }

    fn line(&self, number: u64) -> usize {
        self.first + LINES + to_usize(number % self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    const WORDS: usize = 512;
    const ROOM: u64 = (WORDS - LINES) as u64;

    struct LocalWords([AtomicU64; WORDS]);

    impl LocalWords {
        fn new() -> Self {
            Self([const { AtomicU64::new(0) }; WORDS])
        }
    }

    impl SharedWords for LocalWords {
        fn load(&self, word: usize) -> u64 {
            self.0[word].load(Ordering::Acquire)
        }

        fn store(&self, word: usize, value: u64) {
            self.0[word].store(value, Ordering::Release);
        }

        fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<u64, u64> {
            self.0[word].compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
        }

        fn fence(&self) {
            fence(Ordering::SeqCst);
        }
    }

    fn log(words: &LocalWords) -> RemoteLog<'_, LocalWords> {
        RemoteLog::new(words, 0, WORDS)
    }

    fn read(log: &RemoteLog<'_, LocalWords>) -> Vec<u64> {
        let mut entries = vec![];
        log.read(|entry| entries.push(entry));
        entries
    }

    #[test]
    fn entries_are_read_once_and_in_order() {
        let words = LocalWords::new();
        let log = log(&words);
        for round in 0..5 {
            (0..200).for_each(|entry| log.write(round * 1000 + entry));
            assert_eq!(read(&log), (0..200).map(|entry| round * 1000 + entry).collect::<Vec<_>>());
            assert_eq!(read(&log), []);
        }
    }

    #[test]
    fn what_is_read_makes_room() {
        let words = LocalWords::new();
        let log = log(&words);
        assert_eq!(log.room(), ROOM);
        (0..ROOM).for_each(|entry| log.write(entry));
        assert_eq!(log.room(), 0);
        assert_eq!(read(&log).len() as u64, ROOM);
        assert_eq!(log.room(), ROOM);
    }

    #[test]
    fn a_writer_that_counts_wrongly_does_no_harm() {
        let words = LocalWords::new();
        words.store(WRITTEN, u64::MAX);
        assert_eq!(log(&words).room(), 0);
        assert_eq!(read(&log(&words)).len() as u64, ROOM);
    }

    /// If the home does not find a reader in the log, the reader's copy contains the value that the home's thread
    /// wrote before.
    #[test]
    fn home_and_reader_do_not_miss_each_other() {
        const ROUNDS: u32 = 100_000;
        let words = LocalWords::new();
        let (log, page) = (&log(&words), AtomicU32::new(0));
        let (copied, copies) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    if log.room() > 0 {
                        log.write(round.into());
                        log.words.fence();
                        copied.store(page.load(Ordering::Relaxed), Ordering::Relaxed);
                        copies.store(round, Ordering::Release);
                    }
                }
            });
            let mut known = 0_u64;
            for value in 1..=ROUNDS {
                page.store(value, Ordering::Relaxed);
                log.words.fence();
                log.read(|round| known = round);
                let copies = copies.load(Ordering::Acquire);
                // The copies that were made after the last one in the log have the value.
                if u64::from(copies) > known {
                    assert!(
                        copied.load(Ordering::Relaxed) >= value,
                        "a reader is unknown and has an old copy"
                    );
                }
            }
        });
    }
}
