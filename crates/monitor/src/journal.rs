//! Transactions taken together.

use crate::{Direction, Kind, Transaction};

/// Rows that one journal holds.
const ROWS: usize = 48 << 10;

/// Places for rows, a power of two: some stay empty so that looking for a row is short.
const PLACES: usize = 64 << 10;

/// log2 of the bytes of a page.
const PAGE: u8 = 12;

/// What the rows of a journal that fills up are about: as soon as it holds `rows`, new ones are about units of at least
/// 2^`unit` bytes, and leave out the places in the code, or the threads as well.
struct Coarser {
    rows: usize,
    unit: u8,
    code: bool,
    thread: bool,
}

const LEVELS: [Coarser; 3] = [
    Coarser { rows: ROWS / 8 * 7, unit: 21, code: false, thread: false },
    Coarser { rows: ROWS / 4 * 3, unit: 16, code: false, thread: true },
    Coarser { rows: ROWS / 2, unit: PAGE, code: true, thread: true },
];

/// What like transactions have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Like {
    /// First address of the unit of memory.
    pub address: u64,
    /// Where in the code; 0 if nobody knows.
    pub code: u64,
    /// The thread's number.
    pub thread: Option<u32>,
    /// The other node.
    pub peer: u16,
    /// log2 of the bytes of the unit.
    pub unit: u8,
    /// What they were.
    pub kind: Kind,
    /// Which way they went.
    pub direction: Direction,
}

impl Like {
    /// Where to begin to look for the row.
    fn place(&self) -> usize {
        // The multipliers of a well-known mixing function; its upper half is the better one.
        let rest = u64::from(self.thread.map_or(0, |thread| thread + 1))
            | u64::from(self.peer) << 32
            | u64::from(self.unit) << 48
            | (self.kind as u64) << 54
            | (self.direction as u64) << 62;
        let mut hash = self.address.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ rest;
        hash = (hash ^ hash >> 29 ^ self.code).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (hash ^ hash >> 32) as usize & (PLACES - 1)
    }
}

/// Like transactions, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// What they have in common.
    pub like: Like,
    /// How many.
    pub count: u32,
    /// Bytes of contents that moved.
    pub bytes: u64,
}

/// The transactions of one interval of time: like ones are one row.
///
/// Takes 4 MiB, whatever happens. As it fills up, further rows are about larger and larger units of memory, and at last
/// transactions are lost, which is counted.
pub struct Journal {
    /// The number of a row plus one, or 0: memory of zeros need not be provided before it is used.
    places: Box<[u16]>,
    rows: Vec<Tally>,
    lost: u64,
}

/// Marks a place without a row.
const EMPTY: u16 = 0;

const _: () = assert!(ROWS <= u16::MAX as usize && PLACES.is_power_of_two());

impl Default for Journal {
    fn default() -> Self {
        Self { places: vec![EMPTY; PLACES].into(), rows: Vec::with_capacity(ROWS), lost: 0 }
    }
}

impl Journal {
    /// One more transaction, which is about the unit of 2^`unit` bytes that its address is in.
    pub fn note(&mut self, transaction: &Transaction, unit: u8) {
        let level = LEVELS.iter().find(|level| self.rows.len() >= level.rows);
        let unit = level.map_or(unit, |level| unit.max(level.unit));
        let like = Like {
            address: transaction.address >> unit << unit,
            code: if level.is_none_or(|level| level.code) { transaction.code } else { 0 },
            thread: transaction.thread.filter(|_| level.is_none_or(|level| level.thread)),
            peer: transaction.peer,
            unit,
            kind: transaction.kind,
            direction: transaction.direction,
        };
        let mut place = like.place();
        loop {
            match self.places[place] {
                EMPTY if self.rows.len() == ROWS => {
                    self.lost += 1;
                    return;
                }
                EMPTY => {
                    self.rows.push(Tally { like, count: 1, bytes: u64::from(transaction.bytes) });
                    self.places[place] = self.rows.len() as u16;
                    return;
                }
                row => {
                    let row = &mut self.rows[usize::from(row) - 1];
                    if row.like == like {
                        row.count = row.count.saturating_add(1);
                        row.bytes += u64::from(transaction.bytes);
                        return;
                    }
                }
            }
            place = (place + 1) & (PLACES - 1);
        }
    }

    /// The rows, in the order in which the first of each came.
    #[must_use]
    pub fn rows(&self) -> &[Tally] {
        &self.rows
    }

    /// How many transactions are in no row.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if !self.rows.is_empty() {
            self.places.fill(EMPTY);
            self.rows.clear();
        }
        self.lost = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn transaction(address: u64) -> Transaction {
        Transaction {
            kind: Kind::Read,
            direction: Direction::Out,
            address,
            bytes: 4096,
            peer: 1,
            thread: Some(0),
            code: 0x40_1000,
        }
    }

    #[test]
    fn like_transactions_are_one_row() {
        let mut journal = Journal::default();
        for address in [0x1000, 0x101f, 0x1020] {
            journal.note(&transaction(address), 5);
        }
        let found: Vec<_> =
            journal.rows().iter().map(|row| (row.like.address, row.count, row.bytes)).collect();
        assert_eq!(found, [(0x1000, 2, 8192), (0x1020, 1, 4096)]);
        journal.clear();
        assert!(journal.rows().is_empty());
        journal.note(&transaction(0x1000), 5);
        assert_eq!(journal.rows()[0].count, 1);
    }

    #[test]
    fn a_journal_that_fills_up_becomes_coarse_and_then_counts_what_is_lost() {
        let mut journal = Journal::default();
        // Each in a unit of 2 MiB of its own.
        let many = ROWS as u64 + 100;
        for number in 0..many {
            journal.note(&transaction(number << 21), 5);
        }
        assert_eq!((journal.rows().len(), journal.lost()), (ROWS, 100));
        let units: Vec<u8> = journal.rows().iter().map(|row| row.like.unit).collect();
        assert!(units.is_sorted());
        assert_eq!(units.iter().copied().collect::<std::collections::BTreeSet<_>>(), [5, 12, 16, 21].into());
        let last = journal.rows()[ROWS - 1].like;
        assert_eq!((last.thread, last.code), (None, 0));
        // What has a row goes on being counted.
        journal.note(&transaction((ROWS as u64 - 1) << 21), 5);
        assert_eq!((journal.rows()[ROWS - 1].count, journal.lost()), (2, 100));
    }

    proptest! {
        #[test]
        fn nothing_is_counted_twice_or_left_out(
            transactions in prop::collection::vec((0u64..40, 0u8..13, 0u16..3, 0u32..3, 0u32..9000), 0..400)
        ) {
            let mut journal = Journal::default();
            let mut model = BTreeMap::new();
            for (step, kind, peer, thread, bytes) in transactions {
                let kind = Kind::ALL[usize::from(kind)];
                let thread = thread.checked_sub(1);
                let one = Transaction { kind, peer, thread, bytes, ..transaction(step * 16) };
                journal.note(&one, 5);
                let key = (step * 16 / 32 * 32, kind as u8, peer, thread);
                let (count, sum) = model.entry(key).or_insert((0_u32, 0_u64));
                *count += 1;
                *sum += u64::from(bytes);
            }
            let found: BTreeMap<_, _> = journal
                .rows()
                .iter()
                .map(|row| {
                    let like = row.like;
                    ((like.address, like.kind as u8, like.peer, like.thread), (row.count, row.bytes))
                })
                .collect();
            prop_assert_eq!(journal.rows().len(), found.len());
            prop_assert_eq!(found, model);
        }
    }
}
