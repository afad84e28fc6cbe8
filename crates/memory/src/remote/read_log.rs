//! The remote-read log: a reader logs the pages that it copies while the home's threads may write them.
//!
//! The home scans the log when it releases. The reader logs the page before it copies, and the home scans the log
//! after its threads have written. So either the home finds the page, or the copy contains the released writes.

use super::words::SharedWords;

/// Words of a log: a page.
pub(super) const WORDS: usize = 512;

/// The number of pages that the reader has ever logged. Only the reader writes it.
const WRITTEN: usize = 0;

/// The number of these that the home has read, in another cache line. Only the home writes it.
const READ: usize = 8;

/// The pages begin here.
const LINES: usize = 16;

/// How many pages a log has room for.
pub(super) const ROOM: u64 = (WORDS - LINES) as u64;

/// The log of one home for one reader: all zero is empty.
pub(super) struct RemoteReadLog<'a, W: ?Sized> {
    pub words: &'a W,
    /// Number of its first word.
    pub first: usize,
}

impl<W: SharedWords + ?Sized> RemoteReadLog<'_, W> {
    /// The free entries. The number can only grow until the reader writes.
    pub(super) fn room(&self) -> u64 {
        let read = self.words.load(self.first + READ);
        ROOM.saturating_sub(self.words.load(self.first + WRITTEN).wrapping_sub(read))
    }

    /// The reader logs a page, for which there must be room, before it copies.
    pub(super) fn write(&self, page: u32) {
        debug_assert!(self.room() > 0, "a page would be lost");
        let number = self.words.load(self.first + WRITTEN);
        self.words.store(self.line(number), page.into());
        self.words.store(self.first + WRITTEN, number.wrapping_add(1));
        self.words.fence();
    }

    /// The home reads what has been logged since it last did. Between what its threads have written and this, there must be
    /// a [`SharedWords::fence`].
    pub(super) fn read(&self, mut found: impl FnMut(u32)) {
        let written = self.words.load(self.first + WRITTEN);
        let mut number = self.words.load(self.first + READ);
        if number == written {
            return;
        }
        // A reader with a wrong count makes the home compare some pages needlessly.
        for _ in 0..written.wrapping_sub(number).min(ROOM) {
            if let Ok(page) = u32::try_from(self.words.load(self.line(number))) {
                found(page);
            }
            number = number.wrapping_add(1);
        }
        self.words.store(self.first + READ, written);
    }

    fn line(&self, number: u64) -> usize {
        self.first + LINES + (number % ROOM) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

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

    fn log(words: &LocalWords) -> RemoteReadLog<'_, LocalWords> {
        RemoteReadLog { words, first: 0 }
    }

    fn read(log: &RemoteReadLog<'_, LocalWords>) -> Vec<u32> {
        let mut pages = vec![];
        log.read(|page| pages.push(page));
        pages
    }

    #[test]
    fn pages_are_read_once_and_in_order() {
        let words = LocalWords::new();
        let log = log(&words);
        for round in 0..5 {
            (0..200).for_each(|page| log.write(round * 1000 + page));
            assert_eq!(read(&log), (0..200).map(|page| round * 1000 + page).collect::<Vec<_>>());
            assert_eq!(read(&log), []);
        }
    }

    #[test]
    fn what_is_read_makes_room() {
        let words = LocalWords::new();
        let log = log(&words);
        assert_eq!(log.room(), ROOM);
        (0..ROOM).for_each(|page| log.write(u32::try_from(page).unwrap()));
        assert_eq!(log.room(), 0);
        assert_eq!(read(&log).len() as u64, ROOM);
        assert_eq!(log.room(), ROOM);
    }

    #[test]
    fn a_reader_that_counts_wrongly_does_no_harm() {
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
                        log.write(round);
                        copied.store(page.load(Ordering::Relaxed), Ordering::Relaxed);
                        copies.store(round, Ordering::Release);
                    }
                }
            });
            let mut known = 0;
            for value in 1..=ROUNDS {
                page.store(value, Ordering::Relaxed);
                log.words.fence();
                log.read(|round| known = round);
                let copies = copies.load(Ordering::Acquire);
                // The copies that were made after the last one in the log have the value.
                if copies > known {
                    assert!(
                        copied.load(Ordering::Relaxed) >= value,
                        "a reader is unknown and has an old copy"
                    );
                }
            }
        });
    }
}
