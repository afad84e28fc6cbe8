//! Transactions taken together.

use crate::{Direction, Kind, Transaction};

/// Rows that one table holds.
const ROWS: usize = 48 << 10;

/// How many runs are kept as they were noted before they are put into rows together. Between two transactions the program takes
/// the table of rows out of the caches; this way it comes back once for all of these. So many take some 30 us, under the node's
/// lock.
const NOTED: usize = 2 << 10;

/// Places for rows, a power of two: some stay empty so that looking for a row is short.
const PLACES: usize = 64 << 10;

/// Places that are in use while there are few rows: one page of memory, instead of one here and one there of all of them.
const FIRST_PLACES: usize = 2 << 10;

/// When three quarters of the places in use are taken, so many times as many are: the fewer there are, the more of them the
/// caches keep between two transactions.
const GROWTH: usize = 4;

/// log2 of the places in a line of the caches.
const LINE: u32 = 4;

/// log2 of the bytes of a page.
const PAGE: u8 = 12;

/// log2 of the bytes of the longest block that a run is taken apart into.
const LONGEST: u8 = crate::LARGEST_UNIT;

/// What the rows of a table that fills up are about: as soon as it holds `rows`, new ones are about units of at least
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

/// What key transactions have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateKey {
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
    /// log2 of the number of equal parts of the unit that had as many of them each: 0 if they were about the unit, and nobody knows
    /// where in it.
    pub parts: u8,
    /// What they were.
    pub kind: Kind,
    /// Which way they went.
    pub direction: Direction,
}

impl AggregateKey {
    /// log2 of the bytes of a part of the unit.
    #[must_use]
    pub fn part(&self) -> u8 {
        self.unit - self.parts
    }

    /// Where to begin to look for the row, as many of the lower bits as it takes, and a tag that few others have. Units that follow
    /// each other, which transactions are often about one after another, begin in one line of the caches.
    fn place(&self) -> (usize, u16) {
        let number = self.address >> self.unit;
        // The multipliers of a well-known mixing function; its upper half is the better one.
        let rest = u64::from(self.thread.map_or(0, |thread| thread + 1))
            | u64::from(self.peer) << 32
            | u64::from(self.unit) << 48
            | (self.kind as u64) << 54
            | u64::from(self.parts) << 58
            | (self.direction as u64) << 62;
        let mut hash = (number >> LINE).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ rest;
        hash = (hash ^ hash >> 29 ^ self.code).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^= hash >> 32;
        let inside = number & ((1 << LINE) - 1);
        ((hash << LINE | inside) as usize, (hash >> 48 ^ inside << 12) as u16)
    }
}

/// Like transactions, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// What they have in common.
    pub key: AggregateKey,
    /// How many.
    pub count: u32,
    /// Bytes of contents that moved.
    pub bytes: u64,
}

impl Aggregate {
    /// The first address of each part of the unit, and how many transactions were about it.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Self { key, count, .. } = *self;
        let each = u64::from(count >> key.parts);
        (0..1_u64 << key.parts).map(move |part| (key.address + (part << key.part()), each))
    }
}

/// The transactions of one interval of time: key ones are one row.
///
/// Those of a run of pages that come at once are few rows: the run is taken apart into blocks of 1, 2, 4 and so on pages that
/// begin at multiples of their length, as a buddy allocator does. Whatever pieces the same memory comes in from time to time, there are
/// at most twice as many blocks as pages.
///
/// Takes 4 MiB, whatever happens. As it fills up, further rows are about larger and larger units of memory, and at last
/// transactions are lost, which is counted.
pub struct AggregationTable {
    /// [`FIRST_PLACES`] to [`PLACES`], for which there is room.
    places: Vec<Place>,
    rows: Vec<Aggregate>,
    lost: u64,
    /// What is in no row yet: at most [`NOTED`].
    noted: Vec<PendingRange>,
}

/// Transactions that came at once, as [`AggregationTable::note_range`] was told.
struct PendingRange {
    first: Transaction,
    count: u32,
    part: u8,
    unit: u8,
}

impl PendingRange {
    /// True if it is of pages, and those that come now are its next ones and alike in everything else.
    #[inline]
    fn goes_on_with(&self, next: &Transaction, unit: u8) -> bool {
        let address = self.first.address + (u64::from(self.count) << PAGE);
        next.address == address
            && (self.part, self.unit) == (PAGE, unit)
            && Transaction { address, ..self.first } == *next
    }
}

/// Where a row is found.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The number of the row plus one; 0: none.
    row: u16,
    /// The row's tag: most other rows need not be looked at to see that they are others.
    tag: u16,
}

const EMPTY: Place = Place { row: 0, tag: 0 };

const _: () =
    assert!(ROWS <= u16::MAX as usize && PLACES.is_power_of_two() && FIRST_PLACES.is_power_of_two());

impl Default for AggregationTable {
    fn default() -> Self {
        let mut places = Vec::with_capacity(PLACES);
        places.resize(FIRST_PLACES, EMPTY);
        Self { places, rows: Vec::with_capacity(ROWS), lost: 0, noted: Vec::with_capacity(NOTED) }
    }
}

impl AggregationTable {
    /// One more transaction, which is about the unit of 2^`unit` bytes that its address is in.
    #[inline]
    pub fn note(&mut self, transaction: &Transaction, unit: u8) {
        self.note_range(transaction, unit, unit, 1);
    }

    /// As many more transactions that come at once, each about the next 2^`part` bytes of memory, of which the table keeps no more
    /// than in which unit of 2^`unit` bytes they are. The `first` of them has its address, and the others are key it, with as many
    /// bytes each.
    ///
    /// # Panics
    /// If a part is longer than a unit.
    #[inline]
    pub fn note_range(&mut self, first: &Transaction, part: u8, unit: u8, count: u32) {
        assert!(part <= unit, "parts of 2^{part} bytes of units of 2^{unit}");
        // A page that is taken from others and then written takes turns with the next ones: two runs that go on at a time.
        let mut last = self.noted.iter_mut().rev().take(2);
        if part == PAGE
            && let Some(run) = last.find(|run| run.goes_on_with(first, unit))
        {
            run.count += count;
            return;
        }
        if self.noted.len() == NOTED {
            self.settle();
        }
        self.noted.push(PendingRange { first: *first, count, part, unit });
    }

    /// Puts everything that was noted into rows.
    fn settle(&mut self) {
        let mut noted = std::mem::take(&mut self.noted);
        for PendingRange { first, count, part, unit } in noted.drain(..) {
            let (mut next, mut left) = (first.address >> part, count);
            while left > 0 {
                let most =
                    left.ilog2().min(next.trailing_zeros()).min(u32::from(LONGEST.saturating_sub(part)));
                self.note_block(&Transaction { address: next << part, ..first }, unit, part, most as u8);
                next += 1 << most;
                left -= 1 << most;
            }
        }
        self.noted = noted;
    }

    /// Transactions about each of 2^`parts` parts, which together begin at a multiple of their length.
    fn note_block(&mut self, first: &Transaction, unit: u8, part: u8, parts: u8) {
        let level = LEVELS.iter().find(|level| self.rows.len() >= level.rows);
        // What is not looked at more closely.
        let least = level.map_or(unit, |level| unit.max(level.unit));
        let unit = least.max(part + parts);
        let key = AggregateKey {
            address: first.address >> unit << unit,
            code: if level.is_none_or(|level| level.code) { first.code } else { 0 },
            thread: first.thread.filter(|_| level.is_none_or(|level| level.thread)),
            peer: first.peer,
            unit,
            parts: unit - least,
            kind: first.kind,
            direction: first.direction,
        };
        let (count, bytes) = (1_u32 << parts, u64::from(first.bytes) << parts);
        let (place, tag) = self.place_of(&key);
        if let Some(number) = self.places[place].row.checked_sub(1) {
            let row = &mut self.rows[usize::from(number)];
            row.count = row.count.saturating_add(count);
            row.bytes += bytes;
            return;
        }
        if self.rows.len() == ROWS {
            self.lost += u64::from(count);
            return;
        }
        self.rows.push(Aggregate { key, count, bytes });
        self.places[place] = Place { row: self.rows.len() as u16, tag };
        if self.rows.len() == self.places.len() / 4 * 3 && self.places.len() < PLACES {
            self.spread();
        }
    }

    /// The place of the row for what is alike, or the empty one where it belongs; and the tag.
    fn place_of(&self, key: &AggregateKey) -> (usize, u16) {
        let mask = self.places.len() - 1;
        let (start, tag) = key.place();
        let mut at = start & mask;
        while let Place { row: row @ 1.., tag: other } = self.places[at]
            && (other != tag || self.rows[usize::from(row) - 1].key != *key)
        {
            at = (at + 1) & mask;
        }
        (at, tag)
    }

    /// Puts more places in use. Their memory has been reserved from the start.
    fn spread(&mut self) {
        let more = (self.places.len() * GROWTH).min(PLACES);
        self.places.clear();
        self.places.resize(more, EMPTY);
        for (number, row) in (1..).zip(&self.rows) {
            let (place, tag) = self.place_of(&row.key);
            self.places[place] = Place { row: number, tag };
        }
    }

    /// The rows, in the order in which the first run of each began.
    #[must_use]
    pub fn rows(&mut self) -> &[Aggregate] {
        self.settle();
        &self.rows
    }

    /// How many transactions are in no row.
    #[must_use]
    pub fn lost(&mut self) -> u64 {
        self.settle();
        self.lost
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        if !self.rows.is_empty() {
            self.places.clear();
            self.places.resize(FIRST_PLACES, EMPTY);
            self.rows.clear();
        }
        self.lost = 0;
        self.noted.clear();
    }
}

#[cfg(test)]
mod tests;
