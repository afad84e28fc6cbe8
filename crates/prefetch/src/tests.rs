//! Which pages are predicted in which pattern of faults.

use crate::{Fault, Kind, Prediction, Predictor, Prefetch};
use std::collections::HashSet;

const CODE: usize = 0x40_1000;
const OTHER: usize = 0x40_2000;

/// A fault of an instruction that reads a page that is not resident.
fn read(page: u32, code: usize) -> Fault {
    Fault { page, code, kind: Kind::Read, absent: true }
}

/// A thread that reads.
#[derive(Default)]
struct Reader {
    predictor: Predictor,
    here: HashSet<u32>,
    faults: usize,
    brought: usize,
}

impl Reader {
    /// An instruction reads a page: it faults if the page was not prefetched.
    fn touch(&mut self, page: u32, code: usize) {
        if !self.here.insert(page) {
            return;
        }
        self.faults += 1;
        let Prediction { prefetch, .. } = self.predictor.predict(read(page, code), 64);
        let behind = (page + 1..).take(prefetch.adjacent() as usize);
        let elsewhere = prefetch.elsewhere(page).flat_map(|(first, count)| first..first + count);
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
    let mut predictor = Predictor::default();
    let mut page = 100;
    let mut windows = vec![];
    for _ in 0..6 {
        let Prefetch { stream, repeats, .. } = predictor.predict(read(page, CODE), 8).prefetch;
        assert_eq!(repeats, 0);
        windows.push(stream);
        page += 1 + stream;
    }
    assert_eq!(windows, [0, 1, 2, 4, 8, 8]);
}

#[test]
fn interleaved_sequences_are_told_apart() {
    let mut predictor = Predictor::default();
    let mut counts =
        |a, b| [read(a, CODE), read(b, OTHER)].map(|fault| predictor.predict(fault, 64).prefetch.stream);
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
fn columns_side_by_side_are_prefetched_together() {
    let columns = (0..32).flat_map(|column| (0..64).map(move |row| row * 64 + column));
    let faults = faults(columns);
    assert!(faults < 110, "{faults}");
}

#[test]
fn columns_of_three_arrays_by_one_instruction_are_told_apart() {
    assert!(faults((0..128).flat_map(|row| [row * 8, 10_000 + row * 16, 30_000 + row * 32])) < 40);
}

#[test]
fn walking_backwards_is_a_stream() {
    assert!(faults((1000..1256).rev()) < 16);
}

#[test]
fn a_page_that_faults_again_and_again_prefetches_nothing() {
    let mut predictor = Predictor::default();
    assert_eq!([(); 4].map(|()| predictor.predict(read(9, CODE), 64).prefetch.stream), [0; 4]);
}

/// The next row of a matrix whose rows change at each step must not be prefetched early. The row itself is
/// requested as a whole, although its first page is read by an instruction of its own.
#[test]
fn pages_that_are_evicted_before_use_end_the_stride() {
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
fn scattered_faults_prefetch_nothing() {
    let mut predictor = Predictor::default();
    for page in [5, 500, 50, 5000, 7, 70, 700] {
        assert_eq!(predictor.predict(read(page, CODE), 64), Prediction::NONE);
    }
}

/// Each row begins anywhere; of all but the first few only the first page faults, and no more is prefetched.
#[test]
fn rows_are_as_long_as_the_rows_before() {
    let rows = |from: u32, pages: u32| {
        (from..from + 8).flat_map(move |row| (0..pages).map(move |page| row * row * 1000 + page))
    };
    let mut reader = Reader::default();
    reader.walk(rows(0, 5));
    assert_eq!(reader.walk(rows(100, 5)), 8 + 2);
    let before = reader.brought;
    assert_eq!(reader.walk(rows(200, 5)), 8 + 2, "one is sampled");
    assert_eq!(reader.brought - before, 8 * 4 - 2);
    assert_eq!(faults(rows(0, 1)), 8);
}

#[test]
fn a_row_that_is_longer_than_the_rows_before_is_requested_carefully() {
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

/// The last page of each stream is not prefetched with the others: another node has it.
#[test]
fn nothing_is_requested_behind_the_end_of_a_stream() {
    let mut predictor = Predictor::default();
    let (mut faults, mut beyond) = (0, 0);
    for run in 0..8 {
        let first = 7 + run * run * 10_000;
        let last = first + 19;
        let mut next = first;
        while next <= last {
            let prefetch = predictor.predict(read(next, CODE), 64).prefetch.stream;
            (faults, beyond) = (faults + 1, beyond + (next + prefetch).saturating_sub(last));
            next = if next == last { last + 1 } else { last.min(next + prefetch + 1) };
        }
    }
    // Two streams with windows that grow, the last one of eight pages; then a fault at either end.
    assert_eq!((faults, beyond), (2 * 6 + 6 * 2, 2 * 8));
}

#[test]
fn predictions_that_fail_are_given_up() {
    let mut predictor = Predictor::default();
    let mut brought = 0;
    for row in 0..200 {
        let first = row * row * 1000;
        brought = predictor.predict(read(first, CODE), 64).prefetch.stream;
        if row < 10 && brought == 0 {
            let _ = [1, 3].map(|page| predictor.predict(read(first + page, CODE), 64));
        }
    }
    assert_eq!(brought, 0);
}

/// Pages in flight, which a thread overtakes, are not evicted.
#[test]
fn pages_in_flight_are_not_evicted() {
    let mut predictor = Predictor::default();
    let mut repeats =
        |page, absent| predictor.predict(Fault { absent, ..read(page, CODE) }, 64).prefetch.repeats;
    assert_eq!([10, 12, 14].map(|page| repeats(page, true)), [0, 0, 1]);
    assert_eq!([16, 18, 20].map(|page| repeats(page, false)), [2, 4, 8]);
    assert_eq!([22, 24].map(|page| repeats(page, true)), [0, 0]);
}

/// First touches cost nothing, and an upgrade needs no page to be fetched.
#[test]
fn writes_are_no_reason_to_prefetch_reads() {
    for kind in [Kind::First, Kind::Write, Kind::Upgrade] {
        let mut predictor = Predictor::default();
        let mut page = 0;
        for _ in 0..8 {
            page += 1 + predictor.predict(Fault { kind, ..read(page, CODE) }, 64).prefetch.stream;
        }
        assert_eq!(predictor.predict(read(page, CODE), 64), Prediction::NONE);
    }
}

/// Every other block of two pages is another node's.
#[test]
fn resident_blocks_that_are_written_are_a_stride() {
    let mut predictor = Predictor::default();
    let (mut allowed, mut faults) = (HashSet::new(), 0);
    for page in (0..100).flat_map(|block| [4 * block, 4 * block + 1]) {
        if allowed.insert(page) {
            faults += 1;
            let fault = Fault { page, code: CODE, kind: Kind::Upgrade, absent: false };
            let prefetch = predictor.predict(fault, 64).prefetch;
            allowed.extend((page..=page + prefetch.adjacent()).take(64));
            allowed.extend(prefetch.elsewhere(page).flat_map(|(first, count)| first..first + count));
        }
    }
    let others = allowed.iter().filter(|&page| page % 4 >= 2).count();
    assert!(faults <= 12, "{faults} faults at 200 pages");
    assert!(others <= 2, "{others} pages of the other node, before the distance was known");
}

/// Streams of four pages are read; `is_written` tells which of them are then written. Returns which were requested for
/// writing.
fn requested_for_writing(streams: u32, is_written: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut predictor = Predictor::default();
    let mut rewrite = |run: u32| {
        let first = run * run * 100;
        let mut writes = false;
        let mut next = first;
        while next < first + 4 {
            let prediction = predictor.predict(read(next, CODE), 64);
            writes = prediction.writer.is_some();
            assert!(!writes || prediction.writer == Some(OTHER));
            next += 1 + prediction.prefetch.stream;
        }
        if !writes && is_written(run) {
            for page in first..first + 4 {
                let upgrade = Fault { page, code: OTHER, kind: Kind::Upgrade, absent: false };
                assert_eq!(predictor.predict(upgrade, 0).writer, None);
            }
        }
        writes
    };
    (0..streams).map(&mut rewrite).collect()
}

#[test]
fn streams_that_are_read_then_written_are_requested_for_writing() {
    let asked = requested_for_writing(100, |_| true);
    assert_eq!(asked[..3], [false, false, true]);
    assert!(asked.iter().filter(|&&asked| asked).count() > 90);
    assert!(!requested_for_writing(100, |_| false).contains(&true));
    assert!(!requested_for_writing(100, |run| run % 2 == 0).contains(&true));
}

#[test]
fn streams_that_are_no_longer_written_are_requested_for_reading() {
    let asked = requested_for_writing(100, |run| run < 3);
    assert!(asked[3] && !asked[10..].contains(&true));
}

/// The written pages are beside the read ones, and share one page with them.
#[test]
fn writes_beside_a_stream_are_no_reason_to_request_it_for_writing() {
    let mut predictor = Predictor::default();
    for _ in 0..100 {
        let mut next = 10;
        while next < 13 {
            let prediction = predictor.predict(read(next, CODE), 64);
            assert_eq!(prediction.writer, None);
            next += 1 + prediction.prefetch.stream;
        }
        for page in 12..16 {
            predictor.predict(Fault { page, code: OTHER, kind: Kind::Upgrade, absent: false }, 64);
        }
    }
}

/// Two pages in sequence, each read and written by instructions of its own, before one that is only read.
#[test]
fn pages_behind_a_rewritten_stream_are_not_requested_for_writing() {
    let upgrade = |page| Fault { page, code: OTHER, kind: Kind::Upgrade, absent: false };
    for pages in [[10, 11, 12], [12, 11, 10]] {
        let mut predictor = Predictor::default();
        for round in 0..20 {
            let [first, second, third] = pages;
            predictor.predict(read(first, CODE), 64);
            predictor.predict(upgrade(first), 0);
            if round < 10 {
                continue;
            }
            let prediction = predictor.predict(read(second, CODE + 16), 64);
            assert!(prediction.writer.is_none() || prediction.prefetch.count() == 0, "{prediction:?}");
            predictor.predict(upgrade(second), 0);
            if round % 4 == 0 {
                assert_eq!(predictor.predict(read(third, CODE + 32), 64).writer, None);
            }
        }
    }
}

/// Pages of many streams in turn, as a sort writes them that deals keys to many places: each stream has `length` pages and begins
/// so many pages `apart` from another one.
fn dealt(streams: u32, length: u32, apart: u32) -> impl Iterator<Item = u32> {
    (0..length)
        .flat_map(move |step| (0..streams).map(move |stream| 1000 + (stream * 37 % streams) * apart + step))
}

#[test]
fn hundreds_of_streams_in_turn_are_told_apart() {
    for apart in [64, 101, 1024] {
        let mut reader = Reader::default();
        let taken = reader.walk(dealt(256, 32, apart));
        assert!(taken < 256 * 16, "{taken} faults of {} pages", 256 * 32);
        let too_many = reader.here.len() - 256 * 32;
        assert!(too_many < 256 * 5, "{too_many} pages too many");
    }
}

/// Long streams at equal distances, twice: the second time, a whole stream is known to follow.
#[test]
fn no_prediction_is_longer_than_its_limit() {
    for (length, limit) in [(1000, 64), (100, 127), (300, 8)] {
        let mut predictor = Predictor::default();
        for stream in (0..20).chain(0..20) {
            let first = stream * 5000;
            let mut next = first;
            while next < first + length {
                let Prediction { prefetch, .. } = predictor.predict(read(next, CODE), limit);
                let further = prefetch.repeats * prefetch.width;
                assert!(
                    prefetch.stream <= limit && further <= limit,
                    "{prefetch:?} at page {} of a stream",
                    next - first
                );
                next += 1 + prefetch.adjacent();
            }
        }
    }
}
