//! Filters that move by themselves.

use crate::{
    AggregationTable, BankConfiguration, COUNTERS, Direction, Filter, FilterId, FilterRefinement, Kind,
    MOST_FILTERS, RetiredFilter, Transaction,
};
use proptest::prelude::*;

/// 1 GiB of memory that is watched, and a few pages of variables.
const HEAP: u64 = 0x1000_0000_0000;
const HEAP_END: u64 = HEAP + (1 << 30);
const DATA: u64 = 0x40_3000;

fn refinement() -> FilterRefinement {
    FilterRefinement::new(vec![HEAP..HEAP_END, DATA..DATA + 0x5000])
}

fn read(address: u64) -> Transaction {
    Transaction {
        kind: Kind::Read,
        direction: Direction::Out,
        address,
        bytes: 4096,
        peer: 1,
        thread: None,
        code: 0,
    }
}

fn fetch(configuration: &BankConfiguration, address: u64, times: u32) {
    (0..times).for_each(|_| configuration.bank().count(&read(address)));
}

/// What a node does that notes and counts: reads of addresses, and a step with what was noted of them in units of 64 KiB.
fn interval(
    configuration: &mut BankConfiguration,
    refinement: &mut FilterRefinement,
    addresses: &[u64],
    now: u64,
) -> Vec<RetiredFilter> {
    let mut table = AggregationTable::default();
    for &address in addresses {
        fetch(configuration, address, 1);
        table.note(&read(address), 16);
    }
    refinement.step(configuration, table.rows(), now)
}

/// The unit that an address is counted in.
fn unit_of(configuration: &BankConfiguration, address: u64) -> Option<u8> {
    let mut about = configuration
        .filters()
        .map(|(_, filter)| filter)
        .filter(|filter| (filter.start..filter.end).contains(&address));
    about.next().map(|filter| filter.unit)
}

fn sum(retired: &[RetiredFilter]) -> u64 {
    retired.iter().flat_map(|watch| &watch.counters).sum()
}

/// Every address of the heap and the data is counted by one filter.
fn assert_covered(configuration: &BankConfiguration) {
    let mut filters: Vec<&Filter> = configuration.filters().map(|(_, filter)| filter).collect();
    filters.sort_by_key(|filter| filter.start);
    for (from, end) in [(DATA, DATA + 0x5000), (HEAP, HEAP_END)] {
        let last = filters.iter().filter(|filter| filter.end > from && filter.start < end).fold(
            from,
            |at, filter| {
                assert!(filter.start <= at, "{at:#x} is in no filter: {filters:x?}");
                at.max(filter.end)
            },
        );
        assert!(last >= end, "{last:#x}");
    }
}

#[test]
fn filters_begin_coarse_and_close_in_on_the_hottest_area() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    let hot = HEAP + 0x1234_5678;
    let mut gone = refinement.step(&mut configuration, &[], 0);
    assert!(gone.is_empty());
    let mut seen = vec![];
    for now in 1..=4 {
        assert_covered(&configuration);
        seen.push(unit_of(&configuration, hot).unwrap());
        assert_eq!(unit_of(&configuration, HEAP), Some(21), "nothing happens there");
        fetch(&configuration, hot, 100);
        fetch(&configuration, HEAP, 1);
        gone.extend(refinement.step(&mut configuration, &[], now));
    }
    assert_eq!(seen, [21, 12, 5, 5]);
    // The first has counted the hot area for one interval, the last one since it was set.
    let lines = configuration.filters().find(|(_, filter)| filter.unit == 5).unwrap();
    assert_eq!((lines.1.start, lines.1.end), (hot >> 12 << 12, ((hot >> 12) + 1) << 12));
    assert!(gone.iter().any(|watch| (watch.begin, watch.end, watch.filter.unit) == (0, 1, 21)));
    gone.extend(refinement.end(&mut configuration, 5));
    assert_eq!((sum(&gone), configuration.filters().count()), (404, 0));
    let closest = gone.iter().find(|watch| watch.filter.unit == 5).unwrap();
    let line = (hot - closest.filter.start) >> 5;
    assert_eq!((closest.begin, closest.end, closest.counters[line as usize]), (2, 5, 200));
}

#[test]
fn filters_go_where_the_heat_goes() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    let (first, second) = (HEAP + (5 << 21), DATA + 0x2040);
    refinement.step(&mut configuration, &[], 0);
    for now in 1..4 {
        fetch(&configuration, first, 1000);
        refinement.step(&mut configuration, &[], now);
    }
    assert_eq!((unit_of(&configuration, first), unit_of(&configuration, second)), (Some(5), Some(12)));
    for now in 4..20 {
        fetch(&configuration, second, 1000);
        refinement.step(&mut configuration, &[], now);
    }
    assert_eq!((unit_of(&configuration, first), unit_of(&configuration, second)), (Some(21), Some(5)));
    assert_covered(&configuration);
}

#[test]
fn filters_go_to_memory_that_nobody_has_thought_of() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    // Small blocks: far from all areas, in two units of 2 MiB, some pages of each.
    let small = |number: u64| (1 << 46) + ((number % 2) << 30) + ((number / 2) << 12) + 0x340;
    let blocks: Vec<u64> = (0..8).map(small).collect();
    let mut gone = refinement.step(&mut configuration, &[], 0);
    let mut seen = vec![];
    for now in 1..=4 {
        assert_covered(&configuration);
        seen.push(unit_of(&configuration, blocks[3]));
        gone.extend(interval(&mut configuration, &mut refinement, &blocks, now));
    }
    assert_eq!(seen, [None, Some(12), Some(5), Some(5)]);
    assert!(blocks.iter().all(|&block| unit_of(&configuration, block) == Some(5)));
    for now in 5..20 {
        gone.extend(interval(&mut configuration, &mut refinement, &[], now));
    }
    assert!(
        blocks.iter().all(|&block| unit_of(&configuration, block).is_none()),
        "nothing happens there any more"
    );
    assert_covered(&configuration);
    assert_eq!(sum(&gone), 3 * 8, "all but what was before there was a filter");
}

#[test]
fn what_others_cause_and_what_nobody_waits_for_is_no_heat() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    let mut table = AggregationTable::default();
    table.note(&Transaction { direction: Direction::In, ..read(1 << 46) }, 12);
    table.note(&Transaction { kind: Kind::Prefetched, ..read(1 << 46) }, 12);
    refinement.step(&mut configuration, &[], 0);
    refinement.step(&mut configuration, table.rows(), 1);
    assert_eq!(unit_of(&configuration, 1 << 46), None);
}

#[test]
fn with_more_areas_than_filters_what_is_hot_is_still_looked_at_closely() {
    const STEP: u64 = 1 << 32;
    let areas = (0..200).map(|area| HEAP + area * STEP..HEAP + area * STEP + (1 << 30));
    let (mut configuration, mut refinement) =
        (BankConfiguration::default(), FilterRefinement::new(areas.collect()));
    refinement.step(&mut configuration, &[], 0);
    let hot = HEAP + 150 * STEP + 0x1234_5678;
    for now in 1..=3 {
        interval(&mut configuration, &mut refinement, &[hot, HEAP], now);
    }
    assert_eq!([hot, HEAP].map(|address| unit_of(&configuration, address)), [Some(5); 2]);
    assert!(configuration.filters().count() < MOST_FILTERS);
}

#[test]
fn filters_stay_where_nothing_changes() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    refinement.step(&mut configuration, &[], 0);
    for now in 1..10 {
        // More areas than there are filters for.
        (0..200).for_each(|number| fetch(&configuration, HEAP + ((number * 3) << 12), 10));
        let gone = refinement.step(&mut configuration, &[], now);
        assert!(now < 4 || gone.is_empty(), "{now}: {} filters moved", gone.len());
    }
}

#[test]
fn those_that_somebody_asks_for_come_first() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    let before = configuration.set(Filter::new(HEAP, HEAP + 0x1000, 12)).unwrap();
    refinement.step(&mut configuration, &[], 0);
    fetch(&configuration, HEAP, 3);
    fetch(&configuration, HEAP + 0x1000, 7);
    // In the midst of what is watched, with all counters but that of the other one.
    let after = configuration.set(Filter::new(HEAP + 0x2020, HEAP + 0x2040, 5)).unwrap();
    fetch(&configuration, HEAP + 0x2020, 2);
    let gone = refinement.step(&mut configuration, &[], 1);
    assert_eq!(sum(&gone), 7, "what was counted until they gave way");
    assert_covered(&configuration);
    for now in 2..6 {
        fetch(&configuration, HEAP, 3);
        fetch(&configuration, HEAP + 0x2020, 2);
        refinement.step(&mut configuration, &[], now);
    }
    let counted = |id: FilterId| configuration.counters(id).unwrap().sum::<u64>();
    assert_eq!((counted(before), counted(after)), (15, 10));
    assert!(!configuration.is_own(before) && !configuration.is_own(after));
    assert_eq!(configuration.free_counters(), COUNTERS as u64 - 2);
    refinement.end(&mut configuration, 6);
    assert_eq!(configuration.filters().map(|(id, _)| id).collect::<Vec<_>>(), [before, after]);
}

#[test]
fn whoever_asks_for_everything_gets_it() {
    let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
    refinement.step(&mut configuration, &[], 0);
    for number in (0_u32..).take(MOST_FILTERS) {
        let start = (1 << 45) + (u64::from(number) << 12);
        configuration.set(Filter { first: Some(number), ..Filter::new(start, start + 4096, 12) }).unwrap();
        refinement.step(&mut configuration, &[], number.into());
    }
    assert!(configuration.filters().all(|(id, _)| !configuration.is_own(id)));
    let id = configuration.filters().next().unwrap().0;
    configuration.remove(id).unwrap();
    refinement.step(&mut configuration, &[], 100);
    assert_eq!(configuration.filters().filter(|(id, _)| configuration.is_own(*id)).count(), 1);
}

proptest! {
    #[test]
    fn nothing_is_lost_or_counted_twice(
        intervals in prop::collection::vec(
            (prop::collection::vec((0u64..1 << 30, 1u32..20), 0..60), prop::option::of((0u64..1 << 18, 1u64..40))),
            1..6,
        )
    ) {
        let (mut configuration, mut refinement) = (BankConfiguration::default(), refinement());
        let (mut fetched, mut retired) = (0, refinement.step(&mut configuration, &[], 0));
        for (accesses, filter) in intervals {
            if let Some((page, pages)) = filter {
                let start = HEAP + (page << 12);
                // One that overlaps another is refused.
                let _ = configuration.set(Filter::new(start, (start + (pages << 12)).min(HEAP_END), 12));
            }
            for (offset, times) in accesses {
                // What is asked for later has no filter until the next interval only if others gave way.
                let before = configuration.filters().any(|(_, filter)| (filter.start..filter.end).contains(&(HEAP + offset)));
                fetch(&configuration, HEAP + offset, times);
                fetched += u64::from(times) * u64::from(before);
            }
            retired.extend(refinement.step(&mut configuration, &[], 1));
            prop_assert!(configuration.filters().count() <= MOST_FILTERS);
            let used: u64 = configuration.filters().map(|(_, filter)| filter.counters()).sum();
            prop_assert!(used <= COUNTERS as u64);
            assert_covered(&configuration);
        }
        retired.extend(refinement.end(&mut configuration, 2));
        let asked: u64 = configuration.filters().map(|(id, _)| configuration.counters(id).unwrap().sum::<u64>()).sum();
        prop_assert_eq!(sum(&retired) + asked, fetched);
    }
}
