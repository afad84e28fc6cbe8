//! Files that are cut off, changed, or were never recordings.

use gondwana_monitor::{Direction, Kind};
use gondwana_recording::{
    BankRecord, BlockRecord, BlockSeries, ConstructRecord, Counted, Cut, End, FILE_HEADER, FilterCounts,
    HomeRecord, Interval, LAUNCHER, ReadError, Recording, Reference, RetiredFilterRecord, RunRecord,
    SegmentKind, SegmentRecord, SiteRecord, Started, Stretch, Stretches, ThreadRecord, TransactionRow,
    WrittenRecord, encode, read,
};
use proptest::prelude::*;

fn row(address: u64) -> TransactionRow {
    TransactionRow {
        address,
        unit: 5,
        kind: Kind::Read,
        direction: Direction::Out,
        peer: 1,
        thread: 1,
        code: 0x40_1000,
        count: 3,
        bytes: 12_288,
    }
}

fn run() -> RunRecord {
    RunRecord { nodes: 2, page_bytes: 4096, executable: "/bin/true".to_owned(), ..RunRecord::default() }
}

fn interval(rows: Vec<TransactionRow>) -> Interval {
    Interval { begin: 0, end: 250_000_000, rows }
}

/// Eight pages, of which each was fetched ahead twice.
fn stretch() -> Stretch {
    let row =
        TransactionRow { unit: 15, kind: Kind::Prefetched, count: 16, bytes: 16 * 4096, ..row(0x1_0000) };
    Stretch { row, parts: 3 }
}

fn stretches(stretch: Stretch) -> Stretches {
    Stretches { begin: 0, end: 250_000_000, stretches: vec![stretch] }
}

/// A record of each kind.
fn chunks() -> Vec<Vec<u8>> {
    let segment = SegmentRecord { start: 0x1000, end: 0x2000, kind: SegmentKind::Heap };
    let counts = FilterCounts {
        start: 0x1000,
        end: 0x2000,
        unit: 5,
        kinds: 3,
        counters: vec![Counted { unit: 7, count: 9 }],
    };
    vec![
        encode(LAUNCHER, &run()),
        encode(0, &Started { segments: vec![segment], ..Started::default() }),
        encode(1, &vec![ThreadRecord { number: 1, stack_end: 4096, ..ThreadRecord::default() }]),
        encode(1, &vec![SiteRecord { number: 1, stack: vec![0x40_1000, 0x40_2000] }]),
        encode(1, &vec![BlockRecord { address: 0x1000, bytes: 100, site: 1, thread: 1 }]),
        encode(
            1,
            &vec![BlockSeries {
                first: BlockRecord { address: 0x2000, bytes: 8, site: 1, thread: 1 },
                distances: vec![],
            }],
        ),
        encode(0, &interval(vec![row(0x1000), row(0x1020)])),
        encode(0, &vec![WrittenRecord { address: 0x1000, blocks: 5, bytes: vec![1, u64::MAX] }]),
        encode(0, &vec![Reference { address: 0x1008, value: 0x1040 }]),
        encode(0, &BankRecord { time: 5, filters: vec![counts.clone()] }),
        encode(1, &RetiredFilterRecord { begin: 5, end: 6, filter: counts }),
        encode(0, &stretches(stretch())),
        encode(1, &vec![HomeRecord { address: 0x5000, reads: 1, ..HomeRecord::default() }]),
        encode(
            1,
            &vec![ConstructRecord { code: 0x40_1000, thread: 1, count: 2, ..ConstructRecord::default() }],
        ),
        encode(0, &End { time: 5, messages: 1, bytes: 2, lost: 0 }),
    ]
}

fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    [&FILE_HEADER[..], &chunks.concat()].concat()
}

fn count(recording: &Recording) -> usize {
    recording.started.len()
        + recording.threads.len()
        + recording.sites.len()
        + recording.objects.len()
        + recording.intervals.len()
        + recording.stretches.len()
        + recording.written.len()
        + recording.references.len()
        + recording.banks.len()
        + recording.watched.len()
        + recording.constructs.len()
        + recording.homes.len()
        + recording.ended.len()
}

#[test]
fn a_whole_file_is_read_to_its_end() {
    let recording = read(&file(&chunks())[..]).unwrap();
    assert_eq!((recording.cut.as_ref(), recording.unknown, count(&recording)), (None, 0, 14));
    assert_eq!(recording.run, run());
    assert_eq!(recording.intervals, [(0, interval(vec![row(0x1000), row(0x1020)]))]);
    assert_eq!(recording.stretches, [(0, stretches(stretch()))]);
    let rows: Vec<_> = recording.rows().map(|(node, time, row)| (node, time.end, *row)).collect();
    let end = 250_000_000;
    assert_eq!(rows, [(0, end, row(0x1000)), (0, end, row(0x1020)), (0, end, stretch().row)]);
}

#[test]
fn a_file_that_ends_early_has_what_came_before() {
    let chunks = chunks();
    let whole = file(&chunks);
    let first = FILE_HEADER.len() + chunks[0].len();
    for length in 0..whole.len() {
        let result = read(&whole[..length]);
        let whole_chunks = (0..=chunks.len()).rfind(|&some| file(&chunks[..some]).len() <= length);
        match whole_chunks {
            None => assert!(matches!(result, Err(ReadError::NotARecording)), "{length}"),
            Some(0) => assert!(length < first && matches!(result, Err(ReadError::Empty)), "{length}"),
            Some(some) => {
                let recording = result.unwrap();
                assert_eq!(count(&recording), some - 1, "{length}");
                let end = file(&chunks[..some]).len();
                assert_eq!(recording.cut, (end < length).then_some(Cut::Short(end as u64)), "{length}");
            }
        }
    }
}

#[test]
fn records_of_later_versions_are_passed_over() {
    let mut chunks = chunks();
    let all = chunks.len() - 1;
    let mut later = chunks[5].clone();
    later[8..10].copy_from_slice(&4711_u16.to_le_bytes());
    let check = crc32fast::hash(&later[8..]);
    later[4..8].copy_from_slice(&check.to_le_bytes());
    chunks.insert(3, later.clone());
    chunks.insert(1, later);
    let recording = read(&file(&chunks)[..]).unwrap();
    assert_eq!((recording.unknown, recording.cut.as_ref(), count(&recording)), (2, None, all));
}

#[test]
fn another_format_is_named() {
    let mut bytes = file(&chunks());
    bytes[13] = 9;
    assert!(matches!(read(&bytes[..]), Err(ReadError::Format(9))));
    assert!(matches!(read(&b"\x7fELF and so on, longer than a header"[..]), Err(ReadError::NotARecording)));
}

#[test]
fn records_that_make_no_sense_are_damage() {
    let good = interval(vec![row(0x1000)]);
    let with = |change: &dyn Fn(&mut TransactionRow)| {
        let mut one = row(0x1000);
        change(&mut one);
        encode(0, &interval(vec![one]))
    };
    let parts = |change: &dyn Fn(&mut Stretch)| {
        let mut one = stretch();
        change(&mut one);
        encode(0, &stretches(one))
    };
    let counts = |start, end, unit, counters: &[(u32, u64)]| {
        let counters = counters.iter().map(|&(unit, count)| Counted { unit, count }).collect();
        encode(
            0,
            &BankRecord { time: 0, filters: vec![FilterCounts { start, end, unit, kinds: 1, counters }] },
        )
    };
    let written = |address, blocks, bytes: &[u64]| {
        encode(0, &vec![WrittenRecord { address, blocks, bytes: bytes.to_vec() }])
    };
    let alike = |address, bytes, distances: &[u32]| {
        let first = BlockRecord { address, bytes, ..BlockRecord::default() };
        encode(0, &vec![BlockSeries { first, distances: distances.to_vec() }])
    };
    for (number, chunk) in [
        with(&|row| row.unit = 22),
        with(&|row| row.unit = 64),
        with(&|row| row.address = 0x1001),
        with(&|row| (row.address, row.unit) = (u64::MAX - 31, 6)),
        with(&|row| (row.address, row.unit) = (u64::MAX << 21, 21)),
        with(&|row| row.peer = 2),
        with(&|row| row.count = 0),
        parts(&|it| it.parts = 0),
        parts(&|it| it.parts = 5),
        parts(&|it| (it.row.unit, it.parts, it.row.count) = (15, 10, 1 << 10)),
        parts(&|it| (it.row.address, it.row.unit, it.parts) = (1, 0, 1)),
        parts(&|it| it.row.address += 4096),
        parts(&|it| it.row.kind = Kind::LockHandOff),
        parts(&|it| it.row.peer = 2),
        encode(0, &Stretches { begin: 2, end: 1, stretches: vec![] }),
        encode(2, &good),
        encode(LAUNCHER, &good),
        encode(LAUNCHER, &run()),
        encode(0, &Interval { begin: 2, end: 1, rows: vec![] }),
        encode(0, &vec![BlockRecord { address: u64::MAX, bytes: 2, ..BlockRecord::default() }]),
        alike(0, 2, &[0]),
        alike(u64::MAX - 100, 5, &[6]),
        alike(u64::MAX - 100, 2, &[u32::MAX, 1]),
        encode(0, &vec![Reference { address: u64::MAX, value: 0 }]),
        encode(0, &vec![SiteRecord::default()]),
        written(0x1001, 1, &[1]),
        written(0x1000, 3, &[1]),
        written(0x1000, 1, &[0]),
        counts(0x2000, 0x1000, 5, &[]),
        counts(0x1000, 0x2000, 3, &[]),
        counts(0x1000, 0x2000, 5, &[(128, 1)]),
        counts(0x1000, 0x2000, 5, &[(3, 1), (3, 1)]),
        counts(0, 1 << 60, 5, &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let chunks = [chunks()[0].clone(), chunk, encode(0, &End::default())];
        let at = file(&chunks[..1]).len() as u64;
        let recording = read(&file(&chunks)[..]).unwrap();
        assert_eq!(recording.cut, Some(Cut::Damaged(at)), "{number}");
    }
}

#[test]
fn a_stretch_is_as_many_rows_as_it_has_parts() {
    let rows: Vec<TransactionRow> = stretch().rows().collect();
    let expected = |page: u64| TransactionRow {
        unit: 12,
        kind: Kind::Prefetched,
        count: 2,
        bytes: 8192,
        ..row(0x1_0000 + page * 4096)
    };
    assert_eq!(rows, (0..8).map(expected).collect::<Vec<_>>());
    // What cannot be divided is nobody's but the first part's.
    let odd = Stretch { row: TransactionRow { count: 17, bytes: 9, ..stretch().row }, parts: 3 };
    let counts: Vec<_> = odd.rows().map(|row| (row.count, row.bytes)).collect();
    assert_eq!(counts[..2], [(3, 2), (2, 1)]);
    assert_eq!(counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)), (17, 9));
}

proptest! {
    #[test]
    fn whatever_the_bytes_reading_ends(bytes in prop::collection::vec(any::<u8>(), 0..300), whole in any::<bool>()) {
        let bytes = if whole { bytes } else { [&FILE_HEADER[..], &chunks()[0], &bytes].concat() };
        let _ = read(&bytes[..]);
    }

    #[test]
    fn a_changed_byte_is_noticed(at in 0usize..400, change in 1u8..) {
        let mut bytes = file(&chunks());
        let at = at % bytes.len();
        bytes[at] ^= change;
        // The last byte of the header is a line end for people.
        prop_assume!(at != FILE_HEADER.len() - 1);
        match read(&bytes[..]) {
            Err(_) => {}
            Ok(recording) => prop_assert!(recording.cut.is_some() && count(&recording) < chunks().len() - 1),
        }
    }

    /// A hostile file has valid sums: what it says must neither lead astray nor take memory that the file does not.
    #[test]
    fn lies_with_valid_sums_do_no_harm(
        kind in 0u16..21, node in 0u16..4, contents in prop::collection::vec(any::<u8>(), 0..100), from in 0usize..14,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        genuine in any::<bool>(),
    ) {
        let mut chunk = if genuine { chunks()[from].clone() } else {
            let mut chunk = vec![0; 12];
            chunk[8..10].copy_from_slice(&kind.to_le_bytes());
            chunk[10..12].copy_from_slice(&node.to_le_bytes());
            chunk.extend(contents);
            chunk
        };
        for (index, byte) in changes {
            if chunk.len() > 12 {
                let at = 12 + index.index(chunk.len() - 12);
                chunk[at] = byte;
            }
        }
        let length = u32::try_from(chunk.len() - 12).unwrap();
        chunk[..4].copy_from_slice(&length.to_le_bytes());
        let check = crc32fast::hash(&chunk[8..]);
        chunk[4..8].copy_from_slice(&check.to_le_bytes());
        let recording = read(&file(&[chunks()[0].clone(), chunk])[..]).unwrap();
        for (node, interval) in &recording.intervals {
            prop_assert!(*node < 2 && interval.begin <= interval.end);
            prop_assert!(interval.rows.iter().all(|row| row.peer < 2 && row.unit <= 21));
        }
        for stretch in recording.stretches.iter().flat_map(|(_, it)| &it.stretches) {
            let (rows, count) = stretch.rows().fold((0, 0), |sum, row| (sum.0 + 1, sum.1 + row.count));
            prop_assert_eq!((rows, count), (1 << stretch.parts, stretch.row.count));
            prop_assert!(rows <= 512 && stretch.rows().all(|row| row.count > 0));
        }
    }
}
