//! Transactions taken together.

use crate::{Direction, Kind, Transaction};

/// Rows that one journal holds.
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
    /// log2 of the number of equal parts of the unit that had as many of them each: 0 if they were about the unit, and nobody knows
    /// where in it.
    pub parts: u8,
    /// What they were.
    pub kind: Kind,
    /// Which way they went.
    pub direction: Direction,
}

impl Like {
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
pub struct Tally {
    /// What they have in common.
    pub like: Like,
    /// How many.
    pub count: u32,
    /// Bytes of contents that moved.
    pub bytes: u64,
}

impl Tally {
    /// The first address of each part of the unit, and how many transactions were about it.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let Self { like, count, .. } = *self;
        let each = u64::from(count >> like.parts);
        (0..1_u64 << like.parts).map(move |part| (like.address + (part << like.part()), each))
    }
}

/// The transactions of one interval of time: like ones are one row.
///
/// Those of a run of pages that come at once are few rows: the run is taken apart into blocks of 1, 2, 4 and so on pages that
/// begin at multiples of their length, as a buddy allocator does. Whatever pieces the same memory comes in from time to time, there are
/// at most twice as many blocks as pages.
///
/// Takes 4 MiB, whatever happens. As it fills up, further rows are about larger and larger units of memory, and at last
/// transactions are lost, which is counted.
pub struct Journal {
    /// [`FIRST_PLACES`] to [`PLACES`], for which there is room.
    places: Vec<Place>,
    rows: Vec<Tally>,
    lost: u64,
    /// What is in no row yet: at most [`NOTED`].
    noted: Vec<Run>,
}

/// Transactions that came at once, as [`Journal::note_run`] was told.
struct Run {
    first: Transaction,
    count: u32,
    part: u8,
    unit: u8,
}

impl Run {
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

impl Default for Journal {
    fn default() -> Self {
        let mut places = Vec::with_capacity(PLACES);
        places.resize(FIRST_PLACES, EMPTY);
        Self { places, rows: Vec::with_capacity(ROWS), lost: 0, noted: Vec::with_capacity(NOTED) }
    }
}

impl Journal {
    /// One more transaction, which is about the unit of 2^`unit` bytes that its address is in.
    #[inline]
    pub fn note(&mut self, transaction: &Transaction, unit: u8) {
        self.note_run(transaction, unit, unit, 1);
    }

    /// As many more transactions that come at once, each about the next 2^`part` bytes of memory, of which the journal keeps no more
    /// than in which unit of 2^`unit` bytes they are. The `first` of them has its address, and the others are like it, with as many
    /// bytes each.
    ///
    /// # Panics
    /// If a part is longer than a unit.
    #[inline]
    pub fn note_run(&mut self, first: &Transaction, part: u8, unit: u8, count: u32) {
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
        self.noted.push(Run { first: *first, count, part, unit });
    }

    /// Puts everything that was noted into rows.
    fn settle(&mut self) {
        let mut noted = std::mem::take(&mut self.noted);
        for Run { first, count, part, unit } in noted.drain(..) {
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
        let like = Like {
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
        let (place, tag) = self.place_of(&like);
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
        self.rows.push(Tally { like, count, bytes });
        self.places[place] = Place { row: self.rows.len() as u16, tag };
        if self.rows.len() == self.places.len() / 4 * 3 && self.places.len() < PLACES {
            self.spread();
        }
    }

    /// The place of the row for what is alike, or the empty one where it belongs; and the tag.
    fn place_of(&self, like: &Like) -> (usize, u16) {
        let mask = self.places.len() - 1;
        let (start, tag) = like.place();
        let mut at = start & mask;
        while let Place { row: row @ 1.., tag: other } = self.places[at]
            && (other != tag || self.rows[usize::from(row) - 1].like != *like)
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
            let (place, tag) = self.place_of(&row.like);
            self.places[place] = Place { row: number, tag };
        }
    }

    /// The rows, in the order in which the first run of each began.
    #[must_use]
    pub fn rows(&mut self) -> &[Tally] {
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
        journal.clear();
        assert!(journal.places.iter().all(|&row| row == EMPTY));
    }

    #[test]
    fn rows_are_found_again_when_they_have_become_many() {
        let mut journal = Journal::default();
        // Past two growths.
        let many = PLACES as u64 / 4;
        for _ in 0..3 {
            for times in 1..=2 {
                (0..many).for_each(|number| journal.note(&transaction(number << 21), 5));
                assert_eq!(journal.rows().len() as u64, many);
                assert!(journal.rows().iter().all(|row| row.count == times));
            }
            journal.clear();
        }
    }

    /// The address, the unit, its parts and the count of each row.
    fn blocks(journal: &mut Journal) -> Vec<(u64, u8, u8, u32)> {
        let rows = journal.rows().iter();
        rows.map(|row| (row.like.address, row.like.unit, row.like.parts, row.count)).collect()
    }

    #[test]
    fn a_run_of_pages_is_a_few_blocks_that_come_again() {
        let mut journal = Journal::default();
        journal.note_run(&transaction(0x5000), PAGE, PAGE, 7);
        // Pages 5, 6 and 7, 8 to 11.
        let expected = [(0x5000, 12, 0, 1), (0x6000, 13, 1, 2), (0x8000, 14, 2, 4)];
        assert_eq!(blocks(&mut journal), expected);
        assert!(journal.rows().iter().all(|row| row.bytes == 4096 * u64::from(row.count)));
        // In other pieces: pages 6 to 11.
        journal.note_run(&transaction(0x6000), PAGE, PAGE, 6);
        assert_eq!(blocks(&mut journal), [(0x5000, 12, 0, 1), (0x6000, 13, 1, 4), (0x8000, 14, 2, 8)]);
        journal.note(&transaction(0x6000), PAGE);
        assert_eq!(journal.rows().len(), 4, "a page is not told from its block");
        // Page by page, by turns with those of another run.
        journal.clear();
        for page in 0x5..0xc {
            for peer in [1, 2] {
                journal.note_run(&Transaction { peer, ..transaction(page << PAGE) }, PAGE, PAGE, 1);
            }
        }
        assert_eq!(blocks(&mut journal), [expected, expected].concat());
        // No row is about more than 2 MiB.
        journal.clear();
        journal.note_run(&transaction(0), PAGE, PAGE, 1024 + 1);
        assert_eq!(blocks(&mut journal), [(0, 21, 9, 512), (0x20_0000, 21, 9, 512), (0x40_0000, 12, 0, 1)]);
    }

    #[test]
    fn runs_are_told_as_closely_as_asked_for() {
        let mut journal = Journal::default();
        // The end of one unit of 64 KiB, two whole ones, and a page of another.
        journal.note_run(&transaction(0xe000), PAGE, 16, 2 + 2 * 16 + 1);
        assert_eq!(
            blocks(&mut journal),
            [(0, 16, 0, 2), (0x1_0000, 16, 0, 16), (0x2_0000, 16, 0, 16), (0x3_0000, 16, 0, 1)]
        );
    }

    #[test]
    fn runs_of_a_journal_that_fills_up_are_about_larger_parts_and_then_lost() {
        let mut journal = Journal::default();
        let distinct = |number: u64| Transaction { code: number, thread: None, ..transaction(number << 22) };
        for number in 0..ROWS as u64 {
            journal.note_run(&distinct(number), PAGE, PAGE, 32);
        }
        let mut of = |number: usize| (blocks(&mut journal)[number], journal.rows()[number].bytes);
        let at = |number: usize| (number as u64) << 22;
        for (number, unit, parts) in
            [(0, 17, 5), (ROWS / 2, 17, 5), (ROWS / 4 * 3, 17, 1), (ROWS / 8 * 7, 21, 0), (ROWS - 1, 21, 0)]
        {
            assert_eq!(of(number), ((at(number), unit, parts, 32), 32 * 4096), "{number}");
        }
        assert_eq!((journal.rows().len(), journal.lost()), (ROWS, 0));
        journal.note_run(&distinct(0), PAGE, PAGE, 32 + 3);
        assert_eq!(journal.lost(), 35, "at this level, even of what had a row of its own");
    }

    proptest! {
        /// Whatever pieces the same pages come in.
        #[test]
        fn each_page_of_a_run_is_counted_once(
            runs in prop::collection::vec(
                (prop::option::of(0u64..3000), 0u32..1200, 0u8..2, 0u16..2, 0u32..3), 0..40
            ),
            unit in PAGE..18
        ) {
            let mut journal = Journal::default();
            let (mut expected, mut pages, mut behind) = (BTreeMap::new(), 0, 0);
            for (page, count, kind, peer, bytes) in runs {
                let page = page.unwrap_or(behind);
                behind = page + u64::from(count);
                let kind = Kind::ALL[usize::from(kind)];
                let first = Transaction { kind, peer, bytes, ..transaction(page << PAGE) };
                journal.note_run(&first, PAGE, unit, count);
                for page in page..page + u64::from(count) {
                    let sum = expected.entry((page << PAGE >> unit << unit, kind as u8, peer)).or_insert((0, 0));
                    *sum = (sum.0 + 1_u64, sum.1 + u64::from(bytes));
                }
                pages += u64::from(count);
            }
            let mut found = BTreeMap::new();
            for row in journal.rows() {
                prop_assert_eq!(row.like.part(), unit);
                prop_assert!(row.like.address.is_multiple_of(1 << row.like.unit) && row.like.unit <= 21);
                prop_assert!(row.bytes.is_multiple_of(1 << row.like.parts) && row.count.is_multiple_of(1 << row.like.parts));
                for (address, count) in row.parts() {
                    let sum = found.entry((address, row.like.kind as u8, row.like.peer)).or_insert((0, 0));
                    *sum = (sum.0 + count, sum.1 + (row.bytes >> row.like.parts));
                }
            }
            prop_assert!(journal.rows().len() <= 2 * expected.len(), "{} rows", journal.rows().len());
            prop_assert_eq!(expected.values().map(|sum| sum.0).sum::<u64>(), pages);
            prop_assert_eq!(found, expected);
        }

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
