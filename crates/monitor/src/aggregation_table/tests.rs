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
    let mut table = AggregationTable::default();
    for address in [0x1000, 0x101f, 0x1020] {
        table.note(&transaction(address), 5);
    }
    let found: Vec<_> = table.rows().iter().map(|row| (row.key.address, row.count, row.bytes)).collect();
    assert_eq!(found, [(0x1000, 2, 8192), (0x1020, 1, 4096)]);
    table.clear();
    assert!(table.rows().is_empty());
    table.note(&transaction(0x1000), 5);
    assert_eq!(table.rows()[0].count, 1);
}

#[test]
fn a_table_that_fills_up_becomes_coarse_and_then_counts_what_is_lost() {
    let mut table = AggregationTable::default();
    // Each in a unit of 2 MiB of its own.
    let many = ROWS as u64 + 100;
    for number in 0..many {
        table.note(&transaction(number << 21), 5);
    }
    assert_eq!((table.rows().len(), table.lost()), (ROWS, 100));
    let units: Vec<u8> = table.rows().iter().map(|row| row.key.unit).collect();
    assert!(units.is_sorted());
    assert_eq!(units.iter().copied().collect::<std::collections::BTreeSet<_>>(), [5, 12, 16, 21].into());
    let last = table.rows()[ROWS - 1].key;
    assert_eq!((last.thread, last.code), (None, 0));
    // What has a row goes on being counted.
    table.note(&transaction((ROWS as u64 - 1) << 21), 5);
    assert_eq!((table.rows()[ROWS - 1].count, table.lost()), (2, 100));
    table.clear();
    assert!(table.places.iter().all(|&row| row == EMPTY));
}

#[test]
fn rows_are_found_again_when_they_have_become_many() {
    let mut table = AggregationTable::default();
    // Past two growths.
    let many = PLACES as u64 / 4;
    for _ in 0..3 {
        for times in 1..=2 {
            (0..many).for_each(|number| table.note(&transaction(number << 21), 5));
            assert_eq!(table.rows().len() as u64, many);
            assert!(table.rows().iter().all(|row| row.count == times));
        }
        table.clear();
    }
}

/// The address, the unit, its parts and the count of each row.
fn blocks(table: &mut AggregationTable) -> Vec<(u64, u8, u8, u32)> {
    let rows = table.rows().iter();
    rows.map(|row| (row.key.address, row.key.unit, row.key.parts, row.count)).collect()
}

#[test]
fn a_run_of_pages_is_a_few_blocks_that_come_again() {
    let mut table = AggregationTable::default();
    table.note_range(&transaction(0x5000), PAGE_BITS, PAGE_BITS, 7);
    // Pages 5, 6 and 7, 8 to 11.
    let expected = [(0x5000, 12, 0, 1), (0x6000, 13, 1, 2), (0x8000, 14, 2, 4)];
    assert_eq!(blocks(&mut table), expected);
    assert!(table.rows().iter().all(|row| row.bytes == 4096 * u64::from(row.count)));
    // In other pieces: pages 6 to 11.
    table.note_range(&transaction(0x6000), PAGE_BITS, PAGE_BITS, 6);
    assert_eq!(blocks(&mut table), [(0x5000, 12, 0, 1), (0x6000, 13, 1, 4), (0x8000, 14, 2, 8)]);
    table.note(&transaction(0x6000), PAGE_BITS);
    assert_eq!(table.rows().len(), 4, "a page is not told from its block");
    // Page by page, by turns with those of another run.
    table.clear();
    for page in 0x5..0xc {
        for peer in [1, 2] {
            table.note_range(
                &Transaction { peer, ..transaction(page << PAGE_BITS) },
                PAGE_BITS,
                PAGE_BITS,
                1,
            );
        }
    }
    assert_eq!(blocks(&mut table), [expected, expected].concat());
    // No row is about more than 2 MiB.
    table.clear();
    table.note_range(&transaction(0), PAGE_BITS, PAGE_BITS, 1024 + 1);
    assert_eq!(blocks(&mut table), [(0, 21, 9, 512), (0x20_0000, 21, 9, 512), (0x40_0000, 12, 0, 1)]);
}

#[test]
fn runs_are_told_as_closely_as_asked_for() {
    let mut table = AggregationTable::default();
    // The end of one unit of 64 KiB, two whole ones, and a page of another.
    table.note_range(&transaction(0xe000), PAGE_BITS, 16, 2 + 2 * 16 + 1);
    assert_eq!(
        blocks(&mut table),
        [(0, 16, 0, 2), (0x1_0000, 16, 0, 16), (0x2_0000, 16, 0, 16), (0x3_0000, 16, 0, 1)]
    );
}

#[test]
fn runs_of_a_table_that_fills_up_are_about_larger_parts_and_then_lost() {
    let mut table = AggregationTable::default();
    let distinct = |number: u64| Transaction { code: number, thread: None, ..transaction(number << 22) };
    for number in 0..ROWS as u64 {
        table.note_range(&distinct(number), PAGE_BITS, PAGE_BITS, 32);
    }
    let mut of = |number: usize| (blocks(&mut table)[number], table.rows()[number].bytes);
    let at = |number: usize| (number as u64) << 22;
    for (number, unit, parts) in
        [(0, 17, 5), (ROWS / 2, 17, 5), (ROWS / 4 * 3, 17, 1), (ROWS / 8 * 7, 21, 0), (ROWS - 1, 21, 0)]
    {
        assert_eq!(of(number), ((at(number), unit, parts, 32), 32 * 4096), "{number}");
    }
    assert_eq!((table.rows().len(), table.lost()), (ROWS, 0));
    table.note_range(&distinct(0), PAGE_BITS, PAGE_BITS, 32 + 3);
    assert_eq!(table.lost(), 35, "at this level, even of what had a row of its own");
}

proptest! {
    /// Whatever pieces the same pages come in.
    #[test]
    fn each_page_of_a_run_is_counted_once(
        runs in prop::collection::vec(
            (prop::option::of(0u64..3000), 0u32..1200, 0u8..2, 0u16..2, 0u32..3), 0..40
        ),
        unit in PAGE_BITS..18
    ) {
        let mut table = AggregationTable::default();
        let (mut expected, mut pages, mut behind) = (BTreeMap::new(), 0, 0);
        for (page, count, kind, peer, bytes) in runs {
            let page = page.unwrap_or(behind);
            behind = page + u64::from(count);
            let kind = Kind::ALL[usize::from(kind)];
            let first = Transaction { kind, peer, bytes, ..transaction(page << PAGE_BITS) };
            table.note_range(&first, PAGE_BITS, unit, count);
            for page in page..page + u64::from(count) {
                let sum = expected.entry((page << PAGE_BITS >> unit << unit, kind as u8, peer)).or_insert((0, 0));
                *sum = (sum.0 + 1_u64, sum.1 + u64::from(bytes));
            }
            pages += u64::from(count);
        }
        let mut found = BTreeMap::new();
        for row in table.rows() {
            prop_assert_eq!(row.key.part(), unit);
            prop_assert!(row.key.address.is_multiple_of(1 << row.key.unit) && row.key.unit <= 21);
            prop_assert!(row.bytes.is_multiple_of(1 << row.key.parts) && row.count.is_multiple_of(1 << row.key.parts));
            for (address, count) in row.parts() {
                let sum = found.entry((address, row.key.kind as u8, row.key.peer)).or_insert((0, 0));
                *sum = (sum.0 + count, sum.1 + (row.bytes >> row.key.parts));
            }
        }
        prop_assert!(table.rows().len() <= 2 * expected.len(), "{} rows", table.rows().len());
        prop_assert_eq!(expected.values().map(|sum| sum.0).sum::<u64>(), pages);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn nothing_is_counted_twice_or_left_out(
        transactions in prop::collection::vec((0u64..40, 0u8..13, 0u16..3, 0u32..3, 0u32..9000), 0..400)
    ) {
        let mut table = AggregationTable::default();
        let mut model = BTreeMap::new();
        for (step, kind, peer, thread, bytes) in transactions {
            let kind = Kind::ALL[usize::from(kind)];
            let thread = thread.checked_sub(1);
            let one = Transaction { kind, peer, thread, bytes, ..transaction(step * 16) };
            table.note(&one, 5);
            let key = (step * 16 / 32 * 32, kind as u8, peer, thread);
            let (count, sum) = model.entry(key).or_insert((0_u32, 0_u64));
            *count += 1;
            *sum += u64::from(bytes);
        }
        let found: BTreeMap<_, _> = table
            .rows()
            .iter()
            .map(|row| {
                let like = row.key;
                ((like.address, like.kind as u8, like.peer, like.thread), (row.count, row.bytes))
            })
            .collect();
        prop_assert_eq!(table.rows().len(), found.len());
        prop_assert_eq!(found, model);
    }
}
