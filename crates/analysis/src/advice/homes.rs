//! Which homes would save requests.

use super::pages::{Pages, Uses, page_bytes};
use super::{Advice, AdviceKind, entry, percent};
use crate::{Analysis, Area, Origin};
use gondwana_plan::{Homes, Traffic};
use gondwana_recording::Run;
use gondwana_rset::{MemoryPolicy, Part};
use gondwana_topology::{NodeId, NodeSet};
use std::collections::BTreeSet;
use std::num::NonZeroU64;

/// A simpler form is as good as the best one if it saves this much of what that saves.
const AS_GOOD: f64 = 0.95;

/// A page of less use than this, compared with the average, goes with its neighbours.
const FAINT: f64 = 0.2;

/// Less than this share of a node's requests for a page is no gain to count on.
const CLEAR: f64 = 0.1;

/// The same where what the present home does is only estimated.
const CLEAR_OF_ESTIMATE: f64 = 0.5;

/// Of pages that nobody was seen at, so many are asked for in one go.
const SAMPLES: u64 = 64;

/// More parts are no plan that a person reads.
const MOST_PARTS: usize = 64;

/// The longest stride that is tried, in pages.
const LONGEST_STRIDE: u64 = 1 << 12;

/// What a home at a node would save: requests and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Gain {
    requests: f64,
    bytes: f64,
}

/// What a home at `node` saves of a page that is used so, and by the node that is its home now as `at_home` says.
///
/// All that the node asks for. If it fetched the page again and again, or was told of changes, and nobody else who writes
/// was seen, then its home writes it: that would have to fetch, to send diffs and to be told of changes in turn. It has initialised the page, too,
/// if nobody else was seen to write it.
fn gain(uses: &Uses, at_home: f64, node: u16, page_bytes: u64) -> Gain {
    let Some(here) = uses.get(&node) else { return Gain::default() };
    let others: f64 = uses.iter().filter(|(other, _)| **other != node).map(|(_, usage)| usage.writes).sum();
    let hidden = ((here.fetches - 1.0).max(here.notices) - others).max(0.0);
    let initialised = if others == 0.0 { 1.0 } else { 0.0 };
    let requests = here.requests - 3.0 * hidden - initialised - at_home;
    let clear = if at_home > 0.0 { CLEAR_OF_ESTIMATE } else { CLEAR };
    if requests <= 0.0 || requests < here.requests * clear {
        return Gain::default();
    }
    Gain { requests, bytes: (here.bytes - (hidden + initialised + at_home) * page_bytes as f64).max(0.0) }
}

/// The pages of an area's blocks: number of each page, its index in its block, and how many pages the block has.
struct Region<'a> {
    uses: &'a Uses,
    /// What its present home would ask for, if that were elsewhere: as far as neighbours tell.
    at_home: f64,
    first: u64,
    index: u64,
    of: u64,
}

/// The pages of an area that were recorded, and how many were not.
struct Blocks<'a> {
    recorded: Vec<Region<'a>>,
    /// Runs of pages that nobody was seen at: index of the first one, how many, and pages of the block.
    silent: Vec<(u64, u64, u64)>,
    seen: BTreeSet<u16>,
    page_bytes: u64,
}

impl<'a> Blocks<'a> {
    fn new(run: &Run, area: &Area, pages: &'a Pages, page_bytes: u64) -> Self {
        let (mut recorded, mut silent) = (vec![], vec![]);
        for range in area.ranges.iter().filter(|range| range.start < range.end) {
            let (first, last) = (range.start / page_bytes, (range.end - 1) / page_bytes);
            let of = last - first + 1;
            let mut next = 0;
            for (&page, uses) in pages.range(first..=last) {
                let index = page - first;
                if index > next {
                    silent.push((next, index - next, of));
                }
                recorded.push(Region { uses, at_home: 0.0, first: page, index, of });
                next = index + 1;
            }
            if next < of {
                silent.push((next, of - next, of));
            }
        }
        let seen: BTreeSet<u16> = recorded.iter().flat_map(|region| region.uses.keys().copied()).collect();
        if let Some(stripe) = stripe(run) {
            estimate_homes(&mut recorded, &seen, run.nodes, stripe);
        }
        Self { recorded, silent, seen, page_bytes }
    }

    /// What is saved if each page is at the node that `home` says, given its index and the length of its block.
    fn total(&self, home: &dyn Fn(u64, u64) -> u16) -> Gain {
        self.recorded.iter().fold(Gain::default(), |sum, page| {
            let more = gain(page.uses, page.at_home, home(page.index, page.of), self.page_bytes);
            Gain { requests: sum.requests + more.requests, bytes: sum.bytes + more.bytes }
        })
    }

    /// As [`Blocks::total`], less what speaks against it: pages that nobody was seen at are used by their home, if at all,
    /// which then is no node that was seen elsewhere; unless it happened to be the right one.
    fn score(&self, home: &dyn Fn(u64, u64) -> u16) -> f64 {
        let total = self.total(home).requests;
        let average = total / self.recorded.len().max(1) as f64;
        let moved = |&(index, count, of): &(u64, u64, u64)| {
            let samples = count.min(SAMPLES);
            let at =
                |sample: u64| index + (u128::from(sample) * u128::from(count) / u128::from(samples)) as u64;
            let moved = (0..samples).filter(|sample| self.seen.contains(&home(at(*sample), of))).count();
            moved as f64 / samples as f64 * count as f64
        };
        total - average * self.silent.iter().map(moved).sum::<f64>() / 2.0
    }

    fn best(&self, page: &Region<'_>) -> Option<(u16, f64)> {
        let gain = |node: &u16| gain(page.uses, page.at_home, *node, self.page_bytes).requests;
        let gains = page.uses.keys().map(|node| (*node, gain(node)));
        gains.filter(|(_, gain)| *gain > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// A home for each page of the only block, as parts; `None` if there would be too many.
    fn parts(&self) -> Option<Vec<Part>> {
        let of = self.recorded.first()?.of;
        let best: Vec<_> = self.recorded.iter().map(|page| (page.index, self.best(page))).collect();
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
        let part =
            |((start, node), end): (&(u64, u16), u64)| Part { pages: end - start, node: NodeId(*node) };
        Some(runs.iter().zip(ends).map(part).collect())
    }

    /// True if blocks at higher addresses are used by nodes with higher numbers, as if each had allocated its own: nodes
    /// allocate from parts of the memory in this order.
    fn is_in_order_of_nodes(&self) -> bool {
        let mut pages: Vec<_> =
            self.recorded.iter().filter_map(|page| Some((page.first, self.best(page)?))).collect();
        pages.sort_unstable_by_key(|(first, _)| *first);
        let all: f64 = pages.iter().map(|(_, (_, gain))| gain).sum();
        let mut highest = 0;
        let mut in_order = 0.0;
        for (_, (node, gain)) in pages {
            if node >= highest {
                highest = node;
                in_order += gain;
            }
        }
        in_order >= all * AS_GOOD
    }
}

/// The length of the stripes that memory was dealt out to the nodes in, in pages; `None` if homes were others.
fn stripe(run: &Run) -> Option<usize> {
    run.memory.strip_prefix("striped:")?.parse().ok()
}

/// Estimates what the homes of pages in stripes do with them. A home asks for nothing: it is one of the nodes that were not
/// seen at its page, and does there what it does at the pages around that are others' by chance.
fn estimate_homes(recorded: &mut [Region<'_>], seen: &BTreeSet<u16>, nodes: u16, stripe: usize) {
    let nodes = usize::from(nodes).max(2);
    let reach = stripe.saturating_mul(2 * nodes);
    // Of the pages around, these are not its own.
    let others = (nodes - 1) as f64 / nodes as f64;
    for node in seen {
        let requests = |region: &Region<'_>| region.uses.get(node).map_or(0.0, |usage| usage.requests);
        let sums: Vec<f64> = std::iter::once(0.0)
            .chain(recorded.iter().map(requests).scan(0.0, |sum, more| {
                *sum += more;
                Some(*sum)
            }))
            .collect();
        for at in 0..recorded.len() {
            if recorded[at].uses.contains_key(node) {
                continue;
            }
            let (from, to) = (at.saturating_sub(reach), at.saturating_add(reach + 1).min(recorded.len()));
            let average = (sums[to] - sums[from]) / (to - from) as f64 / others;
            recorded[at].at_home = recorded[at].at_home.max(average);
        }
    }
}

/// The roundest of some numbers. Where a part begins between pages that two nodes are known to use, nobody knows: parts
/// of programs have round lengths more often than others.
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

/// One form of homes for an area.
struct Form {
    kind: AdviceKind,
    homes: Homes,
    score: f64,
    total: Gain,
}

/// The homes that save the most, if any do.
pub fn advise(analysis: &Analysis, area: &Area, pages: &Pages) -> Option<Advice> {
    let nodes = analysis.run.nodes.max(1);
    let blocks = Blocks::new(&analysis.run, area, pages, page_bytes(analysis));
    let local = local(analysis, area, &blocks);
    let forms = local.into_iter().chain(forms(&blocks, nodes, area)).filter(|form| form.score > 0.0);
    let forms: Vec<Form> = forms.collect();
    let most = forms.iter().map(|form| form.score).fold(0.0, f64::max);
    // The simplest forms come first.
    let form = forms.into_iter().find(|form| form.score >= most * AS_GOOD)?;
    let saving = Traffic { requests: form.total.requests as u64, bytes: form.total.bytes as u64 };
    let share = percent(form.total.requests, area.totals.requests() as f64);
    let all = area.totals.requests();
    let reason = match (&form.kind, &form.homes) {
        (AdviceKind::Home, Homes::Policy(MemoryPolicy::Explicit(nodes))) => {
            let node = nodes.first().map_or(0, |node| node.0);
            format!("node {node} makes {share} of the {all} requests")
        }
        (AdviceKind::Local, _) => {
            format!(
                "{share} of the {all} requests are by nodes for blocks that their own threads have allocated"
            )
        }
        (AdviceKind::Block, _) => {
            format!("each node works on a block of its own, which makes {share} of the {all} requests")
        }
        (_, Homes::Parts(parts)) => {
            format!(
                "{} parts are each used by one node above all, which makes {share} of the {all} requests",
                parts.len()
            )
        }
        _ => format!("nodes take turns, and {share} of the {all} requests are by the node whose turn it is"),
    };
    let entry = entry(analysis, area, form.homes, false, &reason, saving);
    if entry.is_none() && form.kind != AdviceKind::Local {
        return None;
    }
    let change = match entry {
        Some(_) => String::new(),
        None => "the blocks are too small for pages of their own: run with --memory local".to_owned(),
    };
    let entries = entry.into_iter().collect();
    Some(Advice { area: area.name.clone(), kind: form.kind, reason, saving, entries, change })
}

/// The node that allocates, if that is the one that uses.
fn local(analysis: &Analysis, area: &Area, blocks: &Blocks<'_>) -> Option<Form> {
    let Origin::Allocation { threads, .. } = &area.origin else { return None };
    let node_of =
        |number: &u32| analysis.threads.iter().find(|thread| thread.number == *number).map(|it| it.node);
    let allocating: BTreeSet<u16> = threads.iter().filter_map(node_of).collect();
    let used: BTreeSet<u16> =
        blocks.recorded.iter().filter_map(|page| blocks.best(page)).map(|(node, _)| node).collect();
    let fits = !used.is_empty() && used.is_subset(&allocating) && blocks.is_in_order_of_nodes();
    if !fits {
        return None;
    }
    let total = blocks.recorded.iter().fold(Gain::default(), |sum, page| {
        let more = blocks
            .best(page)
            .map_or(Gain::default(), |(node, _)| gain(page.uses, page.at_home, node, blocks.page_bytes));
        Gain { requests: sum.requests + more.requests, bytes: sum.bytes + more.bytes }
    });
    let homes = Homes::Policy(MemoryPolicy::Local);
    Some(Form { kind: AdviceKind::Local, homes, score: total.requests, total })
}

/// The forms that do not depend on who allocates, the simplest ones first.
fn forms(blocks: &Blocks<'_>, nodes: u16, area: &Area) -> Vec<Form> {
    let form = |kind, homes, home: &dyn Fn(u64, u64) -> u16| Form {
        kind,
        homes,
        score: blocks.score(home),
        total: blocks.total(home),
    };
    let mut forms: Vec<Form> = blocks
        .seen
        .iter()
        .map(|&node| {
            let policy = MemoryPolicy::Explicit(NodeSet::only(NodeId(node)));
            form(AdviceKind::Home, Homes::Policy(policy), &|_, _| node)
        })
        .collect();
    let of = u128::from(nodes);
    let block = |index: u64, pages: u64| (u128::from(index) * of / u128::from(pages.max(1))) as u16;
    forms.push(form(AdviceKind::Block, Homes::Policy(MemoryPolicy::Block), &block));
    let longest = blocks.recorded.iter().map(|page| page.of).max().unwrap_or(0) / u64::from(nodes);
    let mut stride = NonZeroU64::MIN;
    while stride.get() <= longest.min(LONGEST_STRIDE) {
        let striped = |index: u64, _| (index / stride % u64::from(nodes)) as u16;
        forms.push(form(AdviceKind::Striped, Homes::Policy(MemoryPolicy::Striped(stride)), &striped));
        let Some(next) = stride.checked_mul(NonZeroU64::MIN.saturating_add(1)) else { break };
        stride = next;
    }
    if area.ranges.len() == 1
        && let Some(parts) = blocks.parts()
    {
        let ends: Vec<(u64, u16)> = parts
            .iter()
            .scan(0, |end, part| {
                *end += part.pages;
                Some((*end, part.node.0))
            })
            .collect();
        let home = |index: u64, _| ends[ends.partition_point(|(end, _)| *end <= index).min(ends.len() - 1)].1;
        forms.push(form(AdviceKind::Parts, Homes::Parts(parts.clone()), &home));
    }
    forms
}
