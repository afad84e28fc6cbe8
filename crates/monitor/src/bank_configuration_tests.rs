//! ProgramFilters against a naive model, and while they are changed.

use crate::{
    BankConfiguration, COUNTERS, Direction, Directions, Filter, FilterError, FilterId, Kind, Kinds,
    MOST_FILTERS, SECONDARIES, Threshold, ThresholdEvent, Transaction,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn transaction(address: u64, kind: Kind, direction: Direction) -> Transaction {
    Transaction { kind, direction, address, bytes: 0, peer: 1, thread: None, code: 0 }
}

fn read(address: u64) -> Transaction {
    transaction(address, Kind::Read, Direction::Out)
}

fn counters(configuration: &BankConfiguration, id: FilterId) -> Vec<u64> {
    configuration.counters(id).unwrap().collect()
}

#[test]
fn each_unit_has_its_counter() {
    let mut configuration = BankConfiguration::default();
    let id = configuration.set(Filter::new(0x1000, 0x1080, 5)).unwrap();
    for address in [0xfff, 0x1000, 0x101f, 0x1020, 0x107f, 0x1080] {
        configuration.bank().count(&read(address));
    }
    assert_eq!(counters(&configuration, id), [2, 1, 0, 1]);
    configuration.clear(id).unwrap();
    assert_eq!(counters(&configuration, id), [0; 4]);
    configuration.remove(id).unwrap();
    assert_eq!(configuration.remove(id), Err(FilterError::NotSet));
    configuration.bank().count(&read(0x1000));
    let id = configuration.set(Filter::new(0x1000, 0x1080, 5)).unwrap();
    assert_eq!(counters(&configuration, id), [0; 4], "a filter begins at 0");
}

#[test]
fn a_board_has_as_much_room_as_it_says() {
    let mut configuration = BankConfiguration::default();
    for number in 0..MOST_FILTERS as u64 {
        configuration.set(Filter::new(number << 12, (number + 1) << 12, 12)).unwrap();
    }
    let one_more = Filter::new(1 << 30, (1 << 30) + 4096, 12);
    assert_eq!(configuration.set(one_more), Err(FilterError::TooManyFilters(MOST_FILTERS)));
    let mut configuration = BankConfiguration::default();
    let all = (COUNTERS as u64) << 5;
    assert!(matches!(
        configuration.set(Filter::new(0, all + 32, 5)),
        Err(FilterError::TooManyCounters { free, .. }) if free == COUNTERS as u64
    ));
    configuration.set(Filter::new(0, all, 5)).unwrap();
    assert_eq!(configuration.free_counters(), 0);
    configuration.bank().count(&read(all - 1));
    assert_eq!(counters(&configuration, FilterId(0)).last(), Some(&1));
    assert!(matches!(configuration.set(one_more), Err(FilterError::TooManyCounters { needed: 1, free: 0 })));
}

#[test]
fn counters_can_be_chosen_but_not_shared() {
    let mut configuration = BankConfiguration::default();
    configuration.set(Filter { first: Some(10), ..Filter::new(0, 0x4000, 12) }).unwrap();
    let taken = Filter { first: Some(13), ..Filter::new(0x8000, 0x9000, 12) };
    assert_eq!(configuration.set(taken), Err(FilterError::Counters { first: 13, count: 1 }));
    let beyond = Filter { first: u32::try_from(COUNTERS).ok(), ..taken };
    assert!(matches!(configuration.set(beyond), Err(FilterError::Counters { .. })));
    configuration.set(Filter { first: Some(14), ..taken }).unwrap();
    // The first ten and those behind are left.
    configuration.set(Filter::new(0x10000, 0x10000 + (10 << 12), 12)).unwrap();
    assert_eq!(configuration.free_counters(), COUNTERS as u64 - 15);
}

#[test]
fn overlapping_filters_are_refused() {
    let mut configuration = BankConfiguration::default();
    configuration.set(Filter::new(0x1000, 0x3000, 12)).unwrap();
    let error = configuration.set(Filter::new(0x2000, 0x4000, 12)).unwrap_err();
    assert_eq!(error, FilterError::Overlapping { start: 0x1000, end: 0x3000 });
    assert!(error.to_string().starts_with("it overlaps the filter of 0x1000-0x3000"), "{error}");
}

#[test]
fn thresholds_raise_events() {
    let mut configuration = BankConfiguration::default();
    let once = configuration
        .set(Filter { threshold: Some(Threshold::Once(2)), ..Filter::new(0, 0x1000, 5) })
        .unwrap();
    let again = configuration
        .set(Filter { threshold: Some(Threshold::Every(3)), ..Filter::new(0x1000, 0x2000, 12) })
        .unwrap();
    for _ in 0..7 {
        configuration.bank().count(&read(0x47));
        configuration.bank().count(&read(0x1fff));
    }
    let events: Vec<ThresholdEvent> = std::iter::from_fn(|| configuration.bank().next_event()).collect();
    let event = |filter: FilterId, address, count| ThresholdEvent { filter: filter.0, address, count };
    assert_eq!(events, [event(once, 0x40, 2), event(again, 0x1000, 3), event(again, 0x1000, 6)]);
}

#[test]
fn secondary_counters_follow_some_filters_for_some_kinds() {
    let mut configuration = BankConfiguration::default();
    let ids: Vec<FilterId> = (0..3)
        .map(|number| configuration.set(Filter::new(number << 12, (number + 1) << 12, 12)).unwrap())
        .collect();
    let reads = configuration.shadow(&ids[..2], Kinds::of(&[Kind::Read])).unwrap();
    let all = configuration.shadow(&ids, Kinds::ALL).unwrap();
    for address in [0, 0x1000, 0x2000] {
        configuration.bank().count(&read(address));
        configuration.bank().count(&transaction(address, Kind::Diff, Direction::In));
    }
    assert_eq!((configuration.secondary(reads), configuration.secondary(all)), (Ok(2), Ok(6)));
    configuration.unshadow(reads).unwrap();
    assert_eq!(configuration.secondary(reads), Err(FilterError::NotSet));
    for _ in 1..SECONDARIES {
        configuration.shadow(&ids, Kinds::ALL).unwrap();
    }
    assert_eq!(configuration.shadow(&ids, Kinds::ALL), Err(FilterError::TooManySecondaries(SECONDARIES)));
}

/// Filters that come and go do not disturb what one that stays counts.
#[test]
fn changes_disturb_nobody_who_counts() {
    const COUNTS: u64 = 200_000;
    let mut configuration = BankConfiguration::default();
    let stays = configuration.set(Filter::new(0x10_0000, 0x10_1000, 12)).unwrap();
    let bank = Arc::clone(configuration.bank());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let counting: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| (0..COUNTS).for_each(|count| bank.count(&read(0x10_0000 + count % 4096))))
            })
            .collect();
        let changing = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let below = configuration.set(Filter::new(0, 0x1000, 5)).unwrap();
                let above = configuration.set(Filter::new(0x20_0000, 0x30_0000, 5)).unwrap();
                configuration.remove(below).unwrap();
                configuration.remove(above).unwrap();
            }
        });
        counting.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Release);
        changing.join().unwrap();
    });
    assert_eq!(counters(&configuration, stays), [2 * COUNTS]);
}

fn any_filter() -> impl Strategy<Value = Filter> {
    let directions = prop_oneof![Just(Directions::In), Just(Directions::Out), Just(Directions::Both)];
    (0u64..64, 1u64..16, 5u8..9, 1u16..1 << 13, directions).prop_map(
        |(start, length, unit, kinds, directions)| Filter {
            start: start << 8,
            end: (start + length) << 8,
            unit,
            kinds: Kinds::from_bits(kinds),
            directions,
            first: None,
            threshold: None,
            partition: None,
        },
    )
}

proptest! {
    #[test]
    fn a_board_counts_as_a_list_of_filters_does(
        filters in prop::collection::vec((any_filter(), any::<bool>()), 1..30),
        transactions in prop::collection::vec((0u64..0x5000, 0usize..13, any::<bool>()), 0..300),
    ) {
        let mut configuration = BankConfiguration::default();
        let mut set: Vec<(FilterId, Filter)> = vec![];
        for (filter, stays) in filters {
            let overlaps = set.iter().any(|(_, other)| other.overlaps(&filter));
            match configuration.set(filter) {
                Ok(id) => {
                    prop_assert!(!overlaps);
                    if stays {
                        set.push((id, filter));
                    } else {
                        configuration.remove(id).unwrap();
                    }
                }
                Err(error) => prop_assert!(overlaps, "{error}"),
            }
        }
        let mut model: BTreeMap<(FilterId, u64), u64> = BTreeMap::new();
        for (address, kind, out) in transactions {
            let direction = if out { Direction::Out } else { Direction::In };
            let one = transaction(address, Kind::ALL[kind], direction);
            configuration.bank().count(&one);
            for (id, filter) in &set {
                if (filter.start..filter.end).contains(&address)
                    && filter.kinds.contains(one.kind)
                    && filter.directions.contains(direction)
                {
                    *model.entry((*id, (address - filter.start) >> filter.unit)).or_default() += 1;
                }
            }
        }
        let mut found = BTreeMap::new();
        for &(id, filter) in &set {
            let counts: Vec<u64> = configuration.counters(id).unwrap().collect();
            prop_assert_eq!(counts.len() as u64, filter.counters());
            let counted = counts.into_iter().enumerate().filter(|&(_, count)| count > 0);
            found.extend(counted.map(|(unit, count)| ((id, unit as u64), count)));
        }
        prop_assert_eq!(found, model);
    }
}
