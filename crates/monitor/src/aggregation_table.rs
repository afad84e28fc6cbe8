//! The aggregation table: adds like transactions of one interval up into rows.

use crate::{Direction, Kind, Transaction};
use gondwana_page::{PAGE_BITS, to_usize};

/// Rows that one table holds.
const ROWS: usize = 48 << 10;

/// Page ranges that the table keeps as they come, before it adds them up. Between two transactions the program evicts
/// the rows from the caches; adding up many ranges at once brings them back once. So many take some 30 us, under the
/// node's lock.
const NOTED: usize = 2 << 10;

/// Places for rows, a power of two. Some stay empty, which keeps probing short.
const PLACES: usize = 64 << 10;

/// Places in use while there are few rows: they fill one page of memory instead of touching many.
const FIRST_PLACES: usize = 2 << 10;

/// The factor by which the places in use grow when three quarters of them are taken. The fewer places, the more of
/// them stay in the caches between two transactions.
const GROWTH: usize = 4;

/// log2 of the places in a cache line.
const LINE: u32 = 4;

/// log2 of the bytes of the longest block that a range is split into.
const LONGEST: u8 = crate::LARGEST_UNIT;

/// How rows become coarser as the table fills up: from `rows` rows on, new rows are about units of at least 2^`unit`
/// bytes, and leave out the code address, or the thread as well.
struct Coarser {
    rows: usize,
    unit: u8,
    code: bool,
    thread: bool,
}

const LEVELS: [Coarser; 3] = [
    Coarser { rows: ROWS / 8 * 7, unit: 21, code: false, thread: false },
    Coarser { rows: ROWS / 4 * 3, unit: 16, code: false, thread: true },
    Coarser { rows: ROWS / 2, unit: PAGE_BITS, code: true, thread: true },
];

/// What like transactions have in common: the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateKey {
    /// First address of the unit of memory.
    pub address: u64,
    /// The address of the instruction; 0 if unknown.
    pub code: u64,
    /// The thread's number.
    pub thread: Option<u32>,
    /// The other node.
    pub peer: u16,
    /// log2 of the bytes of the unit.
    pub unit: u8,
    /// log2 of the number of equal parts of the unit, each of which had the same number of transactions; 0 if the
    /// transactions were about the unit as a whole.
    pub parts: u8,
    /// The kind of the transactions.
    pub kind: Kind,
    /// Their direction.
    pub direction: Direction,
}

impl AggregateKey {
    /// log2 of the bytes of a part of the unit.
    #[must_use]
    pub fn part(&self) -> u8 {
        self.unit - self.parts
    }

    /// The hash of the row, of which probing uses as many lower bits as it needs, and a tag that few other rows have.
    /// Adjacent units, which transactions often touch one after another, begin in one cache line.
    fn place(&self) -> (usize, u16) {
        let number = self.address >> self.unit;
        // The multipliers of the splitmix64 finaliser; the upper half of the result is the better one.
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
        (to_usize(hash << LINE | inside), ((hash >> 48 ^ inside << 12) & 0xffff) as u16)
    }
}

/// A row: like transactions added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// What the transactions have in common.
    pub key: AggregateKey,
    /// The number of transactions.
    pub count: u32,
    /// Bytes of contents that moved.
    pub bytes: u64,
}

impl Aggregate {
    /// The first address of each part of the unit, and the number of transactions about that part.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Self { key, count, .. } = *self;
        let each = u64::from(count >> key.parts);
        (0..1_u64 << key.parts).map(move |part| (key.address + (part << key.part()), each))
    }
}

/// The transactions of one interval, with like ones in one row.
///
/// A range of pages that come at once takes few rows: the table splits it into blocks of 1, 2, 4 and so on pages that
/// begin at multiples of their length, as a buddy allocator does. However ranges overlap in an interval, there are at
/// most twice as many blocks as pages.
///
/// Takes 4 MiB. As the table fills up, new rows are about larger and larger units of memory; a full table counts the
/// transactions that it loses.
///
/// # Examples
/// ```
/// use gondwana_monitor::{AggregationTable, Direction, Kind, Transaction};
///
/// let mut table = AggregationTable::default();
/// let (kind, direction) = (Kind::Diff, Direction::Out);
/// let diff = Transaction { kind, direction, address: 0x1000, bytes: 64, peer: 1, thread: Some(0), code: 0 };
/// table.note(&diff, 12);
/// table.note(&diff, 12);
/// let rows = table.rows();
/// assert_eq!((rows.len(), rows[0].count, rows[0].bytes), (1, 2, 128));
/// ```
pub struct AggregationTable {
    /// [`FIRST_PLACES`] to [`PLACES`]; the capacity is [`PLACES`] from the start.
    places: Vec<Place>,
    rows: Vec<Aggregate>,
    lost: u64,
    /// Ranges that are in no row yet: at most [`NOTED`].
    noted: Vec<PendingRange>,
}

/// Transactions that came at once: the arguments of [`AggregationTable::note_range`].
struct PendingRange {
    first: Transaction,
    count: u32,
    part: u8,
    unit: u8,
}

impl PendingRange {
    /// True if this is a range of pages, and the new transaction is about the next page and otherwise equal.
    #[inline]
    fn goes_on_with(&self, next: &Transaction, unit: u8) -> bool {
        let address = self.first.address + (u64::from(self.count) << PAGE_BITS);
        next.address == address
            && (self.part, self.unit) == (PAGE_BITS, unit)
            && Transaction { address, ..self.first } == *next
    }
}

/// Where a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The number of the row plus one; 0: none.
    row: u16,
    /// The row's tag, which rules out most other rows without reading them.
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
    /// Adds one transaction about the unit of 2^`unit` bytes that holds its address.
    #[inline]
    pub fn note(&mut self, transaction: &Transaction, unit: u8) {
        self.note_range(transaction, unit, unit, 1);
    }

    /// Adds `count` transactions that come at once, each about the next 2^`part` bytes of memory; the table keeps
    /// only which unit of 2^`unit` bytes each is in. `first` has the address of the first one; the others equal it in
    /// everything else.
    ///
    /// # Panics
    /// If a part is longer than a unit.
    #[inline]
    pub fn note_range(&mut self, first: &Transaction, part: u8, unit: u8, count: u32) {
        assert!(part <= unit, "parts of 2^{part} bytes of units of 2^{unit}");
        // A page that is invalidated and then written alternates with the next pages: two ranges grow at a time.
        let mut last = self.noted.iter_mut().rev().take(2);
        if part == PAGE_BITS
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

    /// Adds all pending ranges up into rows.
    fn settle(&mut self) {
        let mut noted = std::mem::take(&mut self.noted);
        for PendingRange { first, count, part, unit } in noted.drain(..) {
            let (mut next, mut left) = (first.address >> part, count);
            while left > 0 {
                let most = u8::try_from(left.ilog2().min(next.trailing_zeros())).unwrap_or(LONGEST);
                let most = most.min(LONGEST.saturating_sub(part));
                self.note_block(&Transaction { address: next << part, ..first }, unit, part, most);
                next += 1 << most;
                left -= 1 << most;
            }
        }
        self.noted = noted;
    }

    /// Adds one transaction about each of 2^`parts` parts, which together begin at a multiple of their length.
    fn note_block(&mut self, first: &Transaction, unit: u8, part: u8, parts: u8) {
        let level = LEVELS.iter().find(|level| self.rows.len() >= level.rows);
        // The smallest unit at the present level.
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
        let row = u16::try_from(self.rows.len()).expect("a number up to ROWS");
        self.places[place] = Place { row, tag };
        if self.rows.len() == self.places.len() / 4 * 3 && self.places.len() < PLACES {
            self.spread();
        }
    }

    /// The place of the row with this key, or the empty place where it belongs; and the tag.
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

    /// Puts more places in use. Their memory was reserved at the start.
    fn spread(&mut self) {
        let more = (self.places.len() * GROWTH).min(PLACES);
        self.places.clear();
        self.places.resize(more, EMPTY);
        for (number, row) in (1..).zip(&self.rows) {
            let (place, tag) = self.place_of(&row.key);
            self.places[place] = Place { row: number, tag };
        }
    }

    /// The rows, in the order in which the first range of each began.
    #[must_use]
    pub fn rows(&mut self) -> &[Aggregate] {
        self.settle();
        &self.rows
    }

    /// The number of transactions that are in no row because the table was full.
    #[must_use]
    pub fn lost(&mut self) -> u64 {
        self.settle();
        self.lost
    }

    /// Removes all rows.
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
