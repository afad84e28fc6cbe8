//! Adaptive refinement of filters (Olifant, section 2: successive refinement). Filters begin with large units over
//! the given areas; then the hottest units get filters of pages, and the hottest pages filters of cache lines.
//! Filters follow the heat, also into memory that no filter covers: there the aggregation table has the transactions.
//!
//! [`UnitRefinement`](crate::UnitRefinement) does the same for the units of the aggregation table.

use crate::heat::Heat;
use crate::{
    Aggregate, BankConfiguration, Direction, Directions, Filter, FilterId, Kind, Kinds, MOST_FILTERS,
};
use gondwana_page::to_usize;
use std::collections::BTreeSet;
use std::ops::Range;

/// The units of filters, as powers of two of bytes: 2 MiB, a page, and a cache line of 32 bytes.
const UNITS: [u8; 3] = [21, 12, 5];

/// Steps from one unit to the next.
const STEPS: usize = UNITS.len() - 1;

/// The kinds that count: what threads of this node wait for, with exact addresses.
const KINDS: Kinds = Kinds::of(&[
    Kind::Read,
    Kind::Write,
    Kind::ColdRead,
    Kind::ColdWrite,
    Kind::ExcessRead,
    Kind::ExcessWrite,
    Kind::Upgrade,
]);

/// The factor by which the heat of a divided unit counts more, so that filters do not move to and fro between units
/// of about the same heat.
const FAVOUR: u64 = 2;

/// The most areas that always have filters; the other filters are for smaller units.
const MOST_AREAS: usize = MOST_FILTERS / 2;

/// A range of memory, and the unit in which it is counted.
type Piece = (Range<u64>, u8);

/// The units of each size that are divided.
type Divided = [BTreeSet<u64>; STEPS];

/// A filter that adaptive refinement has removed, and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiredFilter {
    /// When it was set, in the time unit of [`FilterRefinement::step`].
    pub begin: u64,
    /// When it was removed.
    pub end: u64,
    /// The filter.
    pub filter: Filter,
    /// The value of each of its counters.
    pub counters: Vec<u64>,
}

/// A filter that is set.
struct Set {
    id: FilterId,
    filter: Filter,
    begin: u64,
    /// The values of its counters at the last step.
    before: Vec<u64>,
}

/// Sets filters in a [`BankConfiguration`], and moves them. It uses only filters and counters that no user has
/// requested.
pub struct FilterRefinement {
    /// The areas that always have filters, in ascending order, without overlaps.
    areas: Vec<Range<u64>>,
    heat: [Heat; STEPS],
    divided: Divided,
    set: Vec<Set>,
}

impl FilterRefinement {
    /// Covers these ranges of addresses (the first of them, if there are too many), and any memory that becomes hot.
    #[must_use]
    pub fn new(mut areas: Vec<Range<u64>>) -> Self {
        areas.truncate(MOST_AREAS);
        areas.sort_unstable_by_key(|area| area.start);
        Self { areas, heat: Default::default(), divided: Default::default(), set: vec![] }
    }

    /// Ends an interval at time `now`. Learns the heat from the counters and, outside all filters, from the rows of
    /// the aggregation table; moves the filters to the hottest units. Returns the filters that were removed; all
    /// others continue to count.
    pub fn step(
        &mut self,
        configuration: &mut BankConfiguration,
        happened: &[Aggregate],
        now: u64,
    ) -> Vec<RetiredFilter> {
        self.heat.iter_mut().for_each(Heat::cool);
        self.look_elsewhere(happened);
        let mut retired = self.look(configuration, now);
        let mut wanted = self.plan(configuration);
        let (stay, go): (Vec<Set>, Vec<Set>) =
            std::mem::take(&mut self.set).into_iter().partition(|set| wanted.contains(&set.filter));
        retired.extend(go.into_iter().map(|set| set.remove(configuration, now)));
        wanted.retain(|filter| stay.iter().all(|set| set.filter != *filter));
        self.set = stay;
        for filter in wanted {
            // If no contiguous free counters suffice, this range has no filter.
            if let Ok(id) = configuration.set_own(filter) {
                let before = vec![0; to_usize(filter.counters())];
                self.set.push(Set { id, filter, begin: now, before });
            }
        }
        retired
    }

    /// Learns the heat of memory that no filter covers.
    fn look_elsewhere(&mut self, happened: &[Aggregate]) {
        self.set.sort_unstable_by_key(|set| set.filter.start);
        let means = |aggregate: &&Aggregate| {
            KINDS.contains(aggregate.key.kind) && aggregate.key.direction == Direction::Out
        };
        for (address, count) in happened.iter().filter(means).flat_map(Aggregate::parts) {
            let before = self.set.partition_point(|set| set.filter.start <= address);
            let is_counted = before > 0 && address < self.set[before - 1].filter.end;
            if !is_counted {
                self.heat[0].add(address >> UNITS[0], count);
            }
        }
    }

    /// Removes all filters; returns them with their counters.
    pub fn end(&mut self, configuration: &mut BankConfiguration, now: u64) -> Vec<RetiredFilter> {
        let mut retired = self.look(configuration, now);
        retired.extend(std::mem::take(&mut self.set).into_iter().map(|set| set.remove(configuration, now)));
        retired
    }

    /// Learns the heat from what the counters counted since the last step. Returns the filters that have given way
    /// since.
    fn look(&mut self, configuration: &mut BankConfiguration, now: u64) -> Vec<RetiredFilter> {
        let mut gone = configuration.take_gone();
        let mut retired = vec![];
        for mut set in std::mem::take(&mut self.set) {
            let given_way =
                gone.iter().position(|(id, _)| *id == set.id).map(|index| gone.swap_remove(index).1);
            let is_gone = given_way.is_some();
            let counters =
                given_way.unwrap_or_else(|| configuration.counters(set.id).into_iter().flatten().collect());
            for (unit, (&now, before)) in counters.iter().zip(&set.before).enumerate() {
                let address = set.filter.start + ((unit as u64) << set.filter.unit);
                for (heat, of) in self.heat.iter_mut().zip(UNITS).filter(|&(_, of)| set.filter.unit <= of) {
                    if now > *before {
                        heat.add(address >> of, now - before);
                    }
                }
            }
            if is_gone {
                retired.push(RetiredFilter { begin: set.begin, end: now, filter: set.filter, counters });
            } else {
                set.before = counters;
                self.set.push(set);
            }
        }
        retired
    }

    /// The filters to set beside the requested ones.
    fn plan(&mut self, configuration: &BankConfiguration) -> Vec<Filter> {
        let filter = |(range, unit): Piece| Filter {
            kinds: KINDS,
            directions: Directions::Out,
            ..Filter::new(range.start, range.end, unit)
        };
        let taken: Vec<&Filter> = configuration
            .asked()
            .filter(|asked| asked.directions.meets(Directions::Out) && !asked.kinds.and(KINDS).is_empty())
            .collect();
        let mut areas = self.areas.clone();
        let mut free = without(&areas, &taken);
        let filters = MOST_FILTERS - configuration.asked().count();
        let counters = configuration.free_counters();
        let mut divided = Divided::default();
        let whole = pieces(&free, &divided).len();
        // Pages of the hottest units take at most half of the remaining filters, lines of the hottest pages the rest.
        for (step, most) in [(0, whole + filters.saturating_sub(whole) / 2), (1, filters)] {
            let favour = |unit| if self.divided[step].contains(&unit) { FAVOUR } else { 1 };
            for unit in self.heat[step].hottest(MOST_FILTERS, favour) {
                divided[step].insert(unit);
                let wider = (step == 0).then(|| with(&areas, unit)).flatten();
                let free_then = wider.as_ref().map_or_else(|| free.clone(), |wider| without(wider, &taken));
                let pieces = pieces(&free_then, &divided);
                if pieces.len() > most || counters_of(&pieces) > counters {
                    divided[step].remove(&unit);
                } else {
                    (areas, free) = (wider.unwrap_or(areas), free_then);
                }
            }
        }
        let pieces = pieces(&free, &divided);
        self.divided = divided;
        let mut left = counters;
        let fitting = pieces.into_iter().take(filters).filter_map(|(range, unit)| {
            let units = ((range.end - range.start) >> unit).min(left);
            left -= units;
            (units > 0).then(|| (range.start..range.start + (units << unit), unit))
        });
        fitting.map(filter).collect()
    }
}

impl Set {
    fn remove(self, configuration: &mut BankConfiguration, now: u64) -> RetiredFilter {
        // The filter is set: one that has given way is not in the list any more.
        let counters = configuration.take(self.id).unwrap_or_default();
        RetiredFilter { begin: self.begin, end: now, filter: self.filter, counters }
    }
}

fn counters_of(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|(range, unit)| (range.end - range.start) >> unit).sum()
}

/// These areas and one unit of the largest size, if it is outside all of them.
fn with(areas: &[Range<u64>], unit: u64) -> Option<Vec<Range<u64>>> {
    let range = unit << UNITS[0]..(unit + 1) << UNITS[0];
    let place = areas.partition_point(|area| area.start < range.start);
    let is_outside = areas.get(place).is_none_or(|next| range.end <= next.start)
        && (place == 0 || areas[place - 1].end <= range.start);
    is_outside.then(|| [&areas[..place], &[range], &areas[place..]].concat())
}

/// The parts of these areas that no filter covers. Both lists are in ascending order.
fn without(areas: &[Range<u64>], taken: &[&Filter]) -> Vec<Range<u64>> {
    let mut free = vec![];
    for area in areas {
        let mut from = area.start;
        for filter in taken.iter().filter(|filter| filter.start < area.end && filter.end > area.start) {
            free.extend((from < filter.start).then_some(from..filter.start));
            from = from.max(filter.end);
        }
        free.extend((from < area.end).then_some(from..area.end));
    }
    free
}

/// Splits areas into ranges, each with the largest unit except where a unit is divided.
fn pieces(areas: &[Range<u64>], divided: &Divided) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![];
    areas.iter().for_each(|area| divide(area.clone(), 0, divided, &mut pieces));
    pieces.dedup_by(|next, piece| {
        let joins = piece.1 == next.1 && piece.0.end == next.0.start;
        if joins {
            piece.0.end = next.0.end;
        }
        joins
    });
    pieces
}

/// Splits a range into units of this step, and into smaller ones where units are divided.
fn divide(range: Range<u64>, step: usize, divided: &Divided, pieces: &mut Vec<Piece>) {
    let mut from = range.start;
    if let Some(units) = divided.get(step) {
        let unit = UNITS[step];
        for number in units.range(range.start >> unit..=(range.end - 1) >> unit) {
            let start = (number << unit).max(range.start);
            let end = ((number + 1) << unit).min(range.end);
            align(from..start, step, pieces);
            divide(start..end, step + 1, divided, pieces);
            from = end;
        }
    }
    align(from..range.end, step, pieces);
}

/// Splits a range into units of this step, with smaller ones at its ends where the ends are no multiples of the unit.
fn align(range: Range<u64>, step: usize, pieces: &mut Vec<Piece>) {
    let Some(&unit) = UNITS.get(step) else { return };
    let (start, end) = (range.start.next_multiple_of(1 << unit), range.end >> unit << unit);
    if start >= end {
        align(range, step + 1, pieces);
        return;
    }
    align(range.start..start, step + 1, pieces);
    pieces.push((start..end, unit));
    align(end..range.end, step + 1, pieces);
}
