//! Where a visitor writes down which pages it has copied while the home's threads went on writing them.
//!
//! The home reads the book when it releases. One of the two sees what the other did: the visitor writes the page down before it
//! copies, and the home reads the book after its threads have written. So either the home finds the page, or the visitor has
//! copied what is released.

use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Pages that a book has room for.
const LINES: u32 = 512;

/// A count in a cache line of its own.
#[repr(align(64))]
struct Count(AtomicU32);

/// A book of one home for one visitor: all zero is empty. Only the visitor writes, only the home reads.
#[repr(C)]
pub struct GuestBook {
    /// How many lines the visitor has ever written; may wrap round.
    written: Count,
    /// How many of them the home has read.
    read: Count,
    lines: [AtomicU32; LINES as usize],
}

impl GuestBook {
    /// For how many pages there is room. It can only grow until the visitor writes.
    pub fn room(&self) -> u32 {
        let read = self.read.0.load(Ordering::Acquire);
        LINES.saturating_sub(self.written.0.load(Ordering::Relaxed).wrapping_sub(read))
    }

    /// The visitor writes a page down, for which there must be room, before it copies.
    pub fn write(&self, page: u32) {
        debug_assert!(self.room() > 0, "a page would be lost");
        let number = self.written.0.load(Ordering::Relaxed);
        self.lines[(number % LINES) as usize].store(page, Ordering::Relaxed);
        self.written.0.store(number.wrapping_add(1), Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// The home's threads have written what is to be released; the books are about to be read.
    pub fn open() {
        fence(Ordering::SeqCst);
    }

    /// The home reads what has been written since it last did.
    pub fn read(&self, mut tell: impl FnMut(u32)) {
        let written = self.written.0.load(Ordering::Acquire);
        let mut number = self.read.0.load(Ordering::Relaxed);
        if number == written {
            return;
        }
        // A visitor that counts wrongly makes the home look at some pages for nothing.
        for _ in 0..written.wrapping_sub(number).min(LINES) {
            tell(self.lines[(number % LINES) as usize].load(Ordering::Relaxed));
            number = number.wrapping_add(1);
        }
        self.read.0.store(written, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> GuestBook {
        GuestBook {
            written: Count(AtomicU32::new(u32::MAX - 3)),
            read: Count(AtomicU32::new(u32::MAX - 3)),
            lines: [const { AtomicU32::new(0) }; LINES as usize],
        }
    }

    fn read(book: &GuestBook) -> Vec<u32> {
        let mut pages = vec![];
        book.read(|page| pages.push(page));
        pages
    }

    #[test]
    fn pages_are_read_once_and_in_order() {
        let book = book();
        for round in 0..3 {
            (0..200).for_each(|page| book.write(round * 1000 + page));
            assert_eq!(read(&book), (0..200).map(|page| round * 1000 + page).collect::<Vec<_>>());
            assert_eq!(read(&book), []);
        }
    }

    #[test]
    fn what_is_read_makes_room() {
        let book = book();
        assert_eq!(book.room(), LINES);
        (0..LINES).for_each(|page| book.write(page));
        assert_eq!(book.room(), 0);
        assert_eq!(read(&book).len(), LINES as usize);
        assert_eq!(book.room(), LINES);
    }

    /// A value that the home's thread writes before it reads the book is in the copy of a visitor that it does not find there.
    #[test]
    fn home_and_visitor_do_not_miss_each_other() {
        const ROUNDS: u32 = 100_000;
        let (book, page) = (book(), AtomicU32::new(0));
        let (copied, told) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    if book.room() > 0 {
                        book.write(round);
                        copied.store(page.load(Ordering::Relaxed), Ordering::Relaxed);
                        told.store(round, Ordering::Release);
                    }
                }
            });
            let mut known = 0;
            for value in 1..=ROUNDS {
                page.store(value, Ordering::Relaxed);
                GuestBook::open();
                book.read(|round| known = round);
                let told = told.load(Ordering::Acquire);
                // The copies that were made after the last one in the book have the value.
                if told > known {
                    assert!(
                        copied.load(Ordering::Relaxed) >= value,
                        "a visitor is unknown and has an old copy"
                    );
                }
            }
        });
    }
}
