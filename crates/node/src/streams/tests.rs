//! What is foreseen in which pattern of faults.

use super::*;
use std::collections::HashSet;

const CODE: usize = 0x40_1000;
const OTHER: usize = 0x40_2000;

/// A fault of an instruction that reads a page that was lost, or never here.
fn read(page: u32, code: usize) -> Fault {
    Fault { page, code, kind: Kind::Read, lost: true }
}

/// A thread that reads.
#[derive(Default)]
struct Reader {
    streams: Streams,
    here: HashSet<u32>,
    faults: usize,
    brought: usize,
}

impl Reader {
    /// An instruction reads a page: it faults if the page was not brought along.
    fn touch(&mut self, page: u32, code: usize) {
        if !self.here.insert(page) {
            return;
        }
        self.faults += 1;
        let Forecast { ahead, .. } = self.streams.foresee(read(page, code), 64);
        let behind = (page + 1..).take(ahead.right_behind() as usize);
        let elsewhere = ahead.elsewhere(page).flat_map(|(first, count)| first..first + count);
        for page in behind.chain(elsewhere) {
            self.brought += usize::from(self.here.insert(page));
        }
    }

    /// One instruction reads these pages; returns how many faults that took.
    fn walk(&mut self, pages: impl IntoIterator<Item = u32>) -> usize {
        self.walk_as(CODE, pages)
    }

    fn walk_as(&mut self, code: usize, pages: impl IntoIterator<Item = u32>) -> usize {
        let before = self.faults;
        for page in pages {
            self.touch(page, code);
        }
        self.faults - before
    }
}

fn faults(pages: impl IntoIterator<Item = u32>) -> usize {
    Reader::default().walk(pages)
}

#[test]
fn windows_double_along_a_sequence() {
    let mut streams = Streams::default();
    let mut page = 100;
    let mut windows = vec![];
    for _ in 0..6 {
        let Ahead { run, rows, .. } = streams.foresee(read(page, CODE), 8).ahead;
        assert_eq!(rows, 0);
        windows.push(run);
        page += 1 + run;
    }
    assert_eq!(windows, [0, 1, 2, 4, 8, 8]);
}

#[test]
fn interleaved_sequences_are_told_apart() {
    let mut streams = Streams::default();
    let mut counts = |a, b| [read(a, CODE), read(b, OTHER)].map(|fault| streams.foresee(fault, 64).ahead.run);
    assert_eq!(counts(10, 1000), [0, 0]);
    assert_eq!(counts(11, 1001), [1, 1]);
    assert_eq!(counts(13, 1003), [2, 2]);
}

#[test]
fn a_column_of_blocks_is_a_few_sequences() {
    let blocks_of_two_pages = (0..128).flat_map(|row| [row * 64, row * 64 + 1]);
    assert!(faults(blocks_of_two_pages) < 20);
    assert!(faults((0..256).map(|row| 5 + row * 16)) < 16);
}

/// The columns of an array whose rows are long: each is one page behind the one before.
#[test]
fn columns_side_by_side_are_brought_together() {
    let columns = (0..32).flat_map(|column| (0..64).map(move |row| row * 64 + column));
    let faults = faults(columns);
    assert!(faults < 110, "{faults}");
}

#[test]
fn columns_of_three_arrays_by_one_instruction_are_told_apart() {
    assert!(faults((0..128).flat_map(|row| [row * 8, 10_000 + row * 16, 30_000 + row * 32])) < 40);
}

#[test]
fn walking_backwards_is_a_run() {
    assert!(faults((1000..1256).rev()) < 16);
}

#[test]
fn a_page_that_faults_again_and_again_brings_nothing_along() {
    let mut streams = Streams::default();
    assert_eq!([(); 4].map(|()| streams.foresee(read(9, CODE), 64).ahead.run), [0; 4]);
}

/// The next row of a matrix whose rows change at each step must not be brought before its time. The row itself is
/// asked for as a whole, although its first page is read by an instruction of its own.
#[test]
fn pages_that_are_lost_before_they_are_touched_end_the_rows() {
    let mut reader = Reader::default();
    for step in 0..100 {
        reader.here.clear();
        reader.touch(1000 + 8 * step, CODE);
        reader.walk_as(OTHER, (1..4).map(|page| 1000 + 8 * step + page));
    }
    assert!(reader.faults < 3 + 3 + 100 + 4 * 3, "{}", reader.faults);
    assert!(reader.brought < 100 * 3 + 4 + 4, "{}", reader.brought);
}

#[test]
fn scattered_faults_bring_nothing_along() {
    let mut streams = Streams::default();
    for page in [5, 500, 50, 5000, 7, 70, 700] {
        assert_eq!(streams.foresee(read(page, CODE), 64), Forecast::NOTHING);
    }
}

/// Each row begins anywhere; of all but the first few only the first page faults, and no more is brought.
#[test]
fn rows_are_as_long_as_the_rows_before() {
    let rows = |from: u32, pages: u32| {
        (from..from + 8).flat_map(move |row| (0..pages).map(move |page| row * row * 1000 + page))
    };
    let mut reader = Reader::default();
    reader.walk(rows(0, 5));
    assert_eq!(reader.walk(rows(100, 5)), 8 + 2);
    let before = reader.brought;
    assert_eq!(reader.walk(rows(200, 5)), 8 + 2, "one is watched");
    assert_eq!(reader.brought - before, 8 * 4 - 2);
    assert_eq!(faults(rows(0, 1)), 8);
}

#[test]
fn a_row_that_is_longer_than_the_rows_before_is_asked_for_carefully() {
    let mut reader = Reader::default();
    reader.walk((0..6).flat_map(|row| row * row * 1000..row * row * 1000 + 16));
    let before = reader.brought;
    reader.walk(100_000..100_017);
    assert_eq!(reader.brought - before, 15 + 4);
}

#[test]
fn blocks_are_as_long_as_the_blocks_before() {
    let blocks = (0..10).flat_map(|block| (0..32).map(move |row| 7 + block * block * 10_000 + 2 * row));
    let faults = faults(blocks);
    assert!(faults < 2 * 9 + 8 + 7, "{faults}");
}

/// The last page of each run is not brought with the others: somebody else has it.
#[test]
fn nothing_is_asked_for_behind_the_end_of_a_run() {
    let mut streams = Streams::default();
    let (mut faults, mut beyond) = (0, 0);
    for run in 0..8 {
        let first = 7 + run * run * 10_000;
        let last = first + 19;
        let mut next = first;
        while next <= last {
            let ahead = streams.foresee(read(next, CODE), 64).ahead.run;
            (faults, beyond) = (faults + 1, beyond + (next + ahead).saturating_sub(last));
            next = if next == last { last + 1 } else { last.min(next + ahead + 1) };
        }
    }
    // Two runs with windows that grow, the last one of eight pages; then a fault at either end.
    assert_eq!((faults, beyond), (2 * 6 + 6 * 2, 2 * 8));
}

#[test]
fn habits_that_end_are_given_up() {
    let mut streams = Streams::default();
    let mut brought = 0;
    for row in 0..200 {
        let first = row * row * 1000;
        brought = streams.foresee(read(first, CODE), 64).ahead.run;
        if row < 10 && brought == 0 {
            let _ = [1, 3].map(|page| streams.foresee(read(first + page, CODE), 64));
        }
    }
    assert_eq!(brought, 0);
}

/// A thread that overtakes what it has asked for has lost nothing.
#[test]
fn pages_on_their_way_are_not_lost() {
    let mut streams = Streams::default();
    let mut rows = |page, lost| streams.foresee(Fault { lost, ..read(page, CODE) }, 64).ahead.rows;
    assert_eq!([10, 12, 14].map(|page| rows(page, true)), [0, 0, 1]);
    assert_eq!([16, 18, 20].map(|page| rows(page, false)), [2, 4, 8]);
    assert_eq!([22, 24].map(|page| rows(page, true)), [0, 0]);
}

/// Pages that nobody touched cost nothing, and the right to write what is here needs nothing to be brought.
#[test]
fn what_was_written_is_no_reason_to_fetch() {
    for kind in [Kind::First, Kind::Write, Kind::Upgrade] {
        let mut streams = Streams::default();
        let mut page = 0;
        for _ in 0..8 {
            page += 1 + streams.foresee(Fault { kind, ..read(page, CODE) }, 64).ahead.run;
        }
        assert_eq!(streams.foresee(read(page, CODE), 64), Forecast::NOTHING);
    }
}

/// Every other block of two pages is another node's.
#[test]
fn blocks_that_are_here_and_will_be_written_are_rows() {
    let mut streams = Streams::default();
    let (mut allowed, mut faults) = (HashSet::new(), 0);
    for page in (0..100).flat_map(|block| [4 * block, 4 * block + 1]) {
        if allowed.insert(page) {
            faults += 1;
            let fault = Fault { page, code: CODE, kind: Kind::Upgrade, lost: false };
            let ahead = streams.foresee(fault, 64).ahead;
            allowed.extend((page..=page + ahead.right_behind()).take(64));
            allowed.extend(ahead.elsewhere(page).flat_map(|(first, count)| first..first + count));
        }
    }
    let others = allowed.iter().filter(|&page| page % 4 >= 2).count();
    assert!(faults <= 12, "{faults} faults at 200 pages");
    assert!(others <= 2, "{others} pages of the other node, before the distance was known");
}

/// Runs of four pages are read; `is_written` tells which of them are then written. Returns which were asked for to be
/// written.
fn asked_to_write(runs: u32, is_written: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut streams = Streams::default();
    let mut rewrite = |run: u32| {
        let first = run * run * 100;
        let mut writes = false;
        let mut next = first;
        while next < first + 4 {
            let forecast = streams.foresee(read(next, CODE), 64);
            writes = forecast.writer.is_some();
            assert!(!writes || forecast.writer == Some(OTHER));
            next += 1 + forecast.ahead.run;
        }
        if !writes && is_written(run) {
            for page in first..first + 4 {
                let upgrade = Fault { page, code: OTHER, kind: Kind::Upgrade, lost: false };
                assert_eq!(streams.foresee(upgrade, 0).writer, None);
            }
        }
        writes
    };
    (0..runs).map(&mut rewrite).collect()
}

#[test]
fn what_is_read_and_then_written_is_asked_for_to_be_written() {
    let asked = asked_to_write(100, |_| true);
    assert_eq!(asked[..3], [false, false, true]);
    assert!(asked.iter().filter(|&&asked| asked).count() > 90);
    assert!(!asked_to_write(100, |_| false).contains(&true));
    assert!(!asked_to_write(100, |run| run % 2 == 0).contains(&true));
}

#[test]
fn what_is_no_longer_written_is_asked_for_to_be_read() {
    let asked = asked_to_write(100, |run| run < 3);
    assert!(asked[3] && !asked[10..].contains(&true));
}

/// What is written is beside what is read, and shares its last page with it.
#[test]
fn what_is_written_beside_what_is_read_is_no_reason_to_write_that() {
    let mut streams = Streams::default();
    for _ in 0..100 {
        let mut next = 10;
        while next < 13 {
            let forecast = streams.foresee(read(next, CODE), 64);
            assert_eq!(forecast.writer, None);
            next += 1 + forecast.ahead.run;
        }
        for page in 12..16 {
            streams.foresee(Fault { page, code: OTHER, kind: Kind::Upgrade, lost: false }, 64);
        }
    }
}

/// Two pages in sequence, each read and written by instructions of its own, before one that is only read.
#[test]
fn what_lies_behind_what_is_rewritten_is_no_reason_to_write_it() {
    let upgrade = |page| Fault { page, code: OTHER, kind: Kind::Upgrade, lost: false };
    for pages in [[10, 11, 12], [12, 11, 10]] {
        let mut streams = Streams::default();
        for round in 0..20 {
            let [first, second, third] = pages;
            streams.foresee(read(first, CODE), 64);
            streams.foresee(upgrade(first), 0);
            if round < 10 {
                continue;
            }
            let forecast = streams.foresee(read(second, CODE + 16), 64);
            assert!(forecast.writer.is_none() || forecast.ahead.count() == 0, "{forecast:?}");
            streams.foresee(upgrade(second), 0);
            if round % 4 == 0 {
                assert_eq!(streams.foresee(read(third, CODE + 32), 64).writer, None);
            }
        }
    }
}
