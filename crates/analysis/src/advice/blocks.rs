//! The pages of an area, and the saving of homes for all of them.

use super::gains::{Gain, clear_gain, gain, of_home};
use super::pages::{Pages, Usage, UsedPage};
use crate::Area;
use crate::numbers::scaled;
use gondwana_recording::RunRecord;
use gondwana_rset::PlacementPart;
use gondwana_topology::NodeId;
use std::collections::BTreeSet;

/// Nodes are in order if those are that save this much.
const IN_ORDER: f64 = 0.95;

/// A page of less use than this, compared with the average, goes with its neighbours.
const FAINT: f64 = 0.2;

/// The most samples of a run of pages without recorded use.
const SAMPLES: u64 = 64;

/// Up to this share of unknown pages counts as few.
const FEW: f64 = 0.1;

/// More parts are no plan that a person reads.
pub(super) const MOST_PARTS: usize = 64;

/// The share of fetches that is saved if a page has the same home as the page before it: both are fetched together.
const TOGETHER: f64 = 0.5;

/// One page of an area's blocks.
pub(super) struct AreaPage<'a> {
    page: &'a UsedPage<u16>,
    /// The requests that its former homes would make, if its home were elsewhere.
    at_homes: Vec<(u16, Usage)>,
    /// The number of the page.
    number: u64,
    /// Its index in its block, and the number of pages of the block.
    index: u64,
    of: u64,
}

impl AreaPage<'_> {
    fn gain(&self, node: u16) -> Gain {
        if self.stays_at(node) { Gain::default() } else { gain(self.page, &self.at_homes_but(node), node) }
    }

    /// True if the page had no other home than this.
    fn stays_at(&self, node: u16) -> bool {
        matches!(self.at_homes[..], [(home, _)] if home == node)
    }

    fn at_homes_but(&self, node: u16) -> Usage {
        let others = self.at_homes.iter().filter(|(home, _)| *home != node);
        others.fold(Usage::default(), |sum, (_, uses)| sum.plus(*uses))
    }

    /// The present home, if it is known to use the page itself, and its requests if it were not the home.
    fn keeper(&self) -> Option<(u16, f64)> {
        let home = self.page.home()?;
        let requests = self.page.known_use(home)?.requests();
        (requests > 0.0).then_some((home, requests))
    }

    /// The node with the greatest saving as the home, if any.
    fn best(&self) -> Option<(u16, f64)> {
        let gains = self.page.uses.keys().filter(|node| !self.stays_at(**node)).filter_map(|node| {
            let saved = clear_gain(self.page, &self.at_homes_but(*node), *node)?;
            Some((*node, saved))
        });
        gains.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The pages of an area that were recorded, and how many were not.
pub(super) struct AreaPages<'a> {
    recorded: Vec<AreaPage<'a>>,
    /// Runs of pages without recorded use: index of the first, number, and pages of the block.
    silent: Vec<(u64, u64, u64)>,
    /// The nodes that were seen.
    pub seen: BTreeSet<u16>,
}

impl<'a> AreaPages<'a> {
    /// The pages of an area.
    pub(super) fn new(run: &RunRecord, area: &Area, pages: &'a Pages, page_bytes: u64) -> Self {
        let (mut recorded, mut silent) = (vec![], vec![]);
        let mut taken = 0;
        for range in area.ranges.iter().filter(|range| range.start < range.end) {
            let (first, last) = (range.start / page_bytes, (range.end - 1) / page_bytes);
            let of = last - first + 1;
            // A page of several blocks counts once.
            let mut next = taken.max(first) - first;
            for (&number, page) in pages.range(taken.max(first)..last.saturating_add(1).max(taken)) {
                let index = number - first;
                if index > next {
                    silent.push((next, index - next, of));
                }
                recorded.push(AreaPage { page, at_homes: vec![], number, index, of });
                next = index + 1;
            }
            if next < of {
                silent.push((next, of - next, of));
            }
            taken = taken.max(last.saturating_add(1));
        }
        let seen = recorded.iter().flat_map(|region| region.page.uses.keys().copied()).collect();
        let turn = stripe(run).map(|stripe| stripe.saturating_mul(run.nodes.max(2).into()));
        // If pages were striped, a node that used that many of them would have requested those of other nodes.
        silent.retain(|(_, count, _)| turn.is_none_or(|turn| *count < turn));
        let reach = turn.map_or(0, |turn| turn.saturating_mul(2));
        let of_homes = |at: usize| -> Vec<(u16, Usage)> {
            let page: &UsedPage<u16> = recorded[at].page;
            let known: Vec<u16> = page.known_homes().collect();
            let homes = match follow_writers(run) {
                _ if !known.is_empty() => known,
                true => page.homes().collect(),
                false => page.home().into_iter().collect(),
            };
            let beside = beside(&recorded, at, reach);
            let uses = |home| page.known_use(home).unwrap_or_else(|| of_home(page, home, beside, page_bytes));
            homes.into_iter().map(|home| (home, uses(home))).collect()
        };
        let homes: Vec<_> = (0..recorded.len()).map(of_homes).collect();
        recorded.iter_mut().zip(homes).for_each(|(region, at_homes)| region.at_homes = at_homes);
        Self { recorded, silent, seen }
    }

    /// True if there are more than a few pages without recorded use.
    pub(super) fn are_known_in_part(&self) -> bool {
        let silent: u64 = self.silent.iter().map(|(_, count, _)| count).sum();
        silent as f64 > self.recorded.len() as f64 * FEW
    }

    /// The longest block, in pages.
    pub(super) fn longest(&self) -> u64 {
        self.recorded.iter().map(|region| region.of).max().unwrap_or(0)
    }

    /// The saving if each page is at the node `home(index, length of the block)`.
    pub(super) fn total(&self, home: &dyn Fn(u64, u64) -> u16) -> Gain {
        self.sum(|region| Some(home(region.index, region.of)))
    }

    /// The saving if each page is at its best node.
    pub(super) fn most(&self) -> Gain {
        self.sum(|region| region.best().map(|(node, _)| node))
    }

    /// The saving if each page is at the node `home(page)`; pages with `None` stay.
    fn sum(&self, home: impl Fn(&AreaPage<'_>) -> Option<u16>) -> Gain {
        let mut sum = Gain::default();
        let mut before: Option<(&AreaPage<'_>, u16)> = None;
        for region in &self.recorded {
            let Some(to) = home(region).or(region.page.home()) else { continue };
            sum = sum.plus(region.gain(to));
            if let Some((last, at)) = before.filter(|(last, _)| last.number + 1 == region.number) {
                let (was, is) = (last.page.home() == region.page.home(), at == to);
                sum = match (was, is) {
                    (false, true) => sum.plus(together(last, region, to, |uses| uses.fetches)),
                    (true, false) => sum.less(together(last, region, to, |uses| uses.ahead)),
                    _ => sum,
                };
            }
            before = Some((region, to));
        }
        sum
    }

    /// The nodes that are the best home of some page.
    pub(super) fn best_homes(&self) -> BTreeSet<u16> {
        self.recorded.iter().filter_map(AreaPage::best).map(|(node, _)| node).collect()
    }

    /// As [`AreaPages::total`], less a penalty for pages without recorded use: only their home can use these. If
    /// `home` gives them to a node that requested other pages of the area, that node is probably not their user.
    pub(super) fn score(&self, home: &dyn Fn(u64, u64) -> u16) -> f64 {
        let total = self.total(home).requests;
        let average = total / self.recorded.len().max(1) as f64;
        let moved = |&(index, count, of): &(u64, u64, u64)| {
            let samples = count.min(SAMPLES);
            let at = |sample: u64| index + scaled(sample, count, samples);
            let moved = (0..samples).filter(|sample| self.seen.contains(&home(at(*sample), of))).count();
            moved as f64 / samples as f64 * count as f64
        };
        total - average * self.silent.iter().map(moved).sum::<f64>() / 2.0
    }

    /// A home for each page of the only block, as parts; `None` if there would be too many.
    pub(super) fn parts(&self) -> Option<Vec<PlacementPart>> {
        let of = self.recorded.first()?.of;
        let wanted = |region: &AreaPage<'_>| region.best().or_else(|| region.keeper());
        let best: Vec<_> = self.recorded.iter().map(|region| (region.index, wanted(region))).collect();
        let gains = best.iter().filter_map(|(_, best)| best.map(|(_, gain)| gain));
        let average = gains.clone().sum::<f64>() / gains.count().max(1) as f64;
        let clear = best.iter().filter_map(|(index, best)| {
            best.filter(|(_, gain)| *gain >= average * FAINT).map(|(node, _)| (*index, node))
        });
        // Runs of pages with the same home.
        let mut runs: Vec<(u64, u16)> = vec![];
        let mut next = 0;
        for (index, node) in clear {
            if runs.last().is_none_or(|(_, last)| *last != node) {
                runs.push((roundest(next, index), node));
            }
            next = index + 1;
        }
        let mut shortest = 2;
        while runs.len() > MOST_PARTS {
            let ends: Vec<u64> = runs.iter().skip(1).map(|(start, _)| *start).chain([of]).collect();
            let mut kept = runs.iter().zip(ends).filter(|((start, _), end)| end - start >= shortest);
            let mut joined: Vec<(u64, u16)> = vec![];
            for ((start, node), _) in kept.by_ref() {
                if joined.last().is_none_or(|(_, last)| last != node) {
                    joined.push((*start, *node));
                }
            }
            runs = joined;
            shortest *= 2;
        }
        runs.first_mut()?.0 = 0;
        let ends = runs.iter().skip(1).map(|(start, _)| *start).chain([of]);
        let part = |((start, node), end): (&(u64, u16), u64)| PlacementPart {
            pages: end - start,
            node: NodeId(*node),
        };
        Some(runs.iter().zip(ends).map(part).collect())
    }

    /// True if blocks at higher addresses are used by nodes with higher numbers, as if each had allocated its own: nodes
    /// allocate from parts of the memory in this order.
    pub(super) fn is_in_order_of_nodes(&self) -> bool {
        let mut pages: Vec<_> =
            self.recorded.iter().filter_map(|region| Some((region.number, region.best()?))).collect();
        pages.sort_unstable_by_key(|(number, _)| *number);
        let all: f64 = pages.iter().map(|(_, (_, gain))| gain).sum();
        let mut highest = 0;
        let mut in_order = 0.0;
        for (_, (node, gain)) in pages {
            if node >= highest {
                highest = node;
                in_order += gain;
            }
        }
        in_order >= all * IN_ORDER
    }
}

/// Requests for two pages beside each other that are one if both have the home `at`.
fn together(one: &AreaPage<'_>, other: &AreaPage<'_>, at: u16, of: impl Fn(&Usage) -> f64) -> Gain {
    let both = |(node, uses): (&u16, &Usage)| Some(of(uses).min(of(one.page.uses.get(node)?)));
    let elsewhere = other.page.uses.iter().filter(|(node, _)| **node != at);
    Gain { requests: elsewhere.filter_map(both).sum::<f64>() * TOGETHER, bytes: 0.0 }
}

/// True if the run had no policy for homes: then homes move to their writers.
pub(super) fn follow_writers(run: &RunRecord) -> bool {
    run.memory == "float"
}

/// The length of the stripes of the run, in pages; `None` if memory was not striped.
fn stripe(run: &RunRecord) -> Option<u64> {
    run.memory.strip_prefix("striped:")?.parse().ok()
}

/// The requests of a page's home for the nearest pages before and behind it, within `reach`, that have other homes.
fn beside(recorded: &[AreaPage<'_>], at: usize, reach: u64) -> Option<Usage> {
    let (number, home) = (recorded[at].number, recorded[at].page.home()?);
    let near = |region: &&AreaPage<'_>| region.number.abs_diff(number) <= reach;
    let elsewhere = |region: &&AreaPage<'_>| region.page.home().is_some_and(|other| other != home);
    let before = recorded[..at].iter().rev().take_while(near).find(elsewhere);
    let behind = recorded[at + 1..].iter().take_while(near).find(elsewhere);
    let of = |region: &AreaPage<'_>| region.page.uses.get(&home).copied().unwrap_or_default();
    match (before.map(of), behind.map(of)) {
        (Some(one), Some(other)) => Some(one.plus(other).times(0.5)),
        (one, other) => one.or(other),
    }
}

/// The roundest of some numbers. The border between parts is unknown between pages that two nodes are known to use;
/// parts of programs usually have round lengths.
fn roundest(first: u64, last: u64) -> u64 {
    let differs = u64::BITS - (first.wrapping_sub(1) ^ last).leading_zeros();
    if first == 0 { 0 } else { last >> (differs - 1) << (differs - 1) }
}

#[cfg(test)]
#[test]
fn boundaries_are_round() {
    for (first, last, round) in
        [(0, 9, 0), (5, 5, 5), (32, 33, 32), (31, 33, 32), (97, 100, 100), (1, 1023, 512)]
    {
        assert_eq!(roundest(first, last), round, "{first} to {last}");
        let zeros = |number: u64| number.trailing_zeros();
        assert!((first..=last).all(|number| zeros(number) <= zeros(round)));
    }
}
