//! Advice about homes.

use super::blocks::{AreaPages, MOST_PARTS, follow_writers};
use super::gains::Gain;
use super::pages::{Pages, page_bytes};
use super::{Advice, AdviceKind, entry, percent};
use crate::numbers::{scaled, whole};
use crate::{Analysis, Area, Origin};
use gondwana_plan::{Homes, Traffic};
use gondwana_rset::{MemoryPolicy, PlacementPart};
use gondwana_topology::{Id, NodeId, NodeSet};
use std::collections::BTreeSet;
use std::num::NonZeroU64;

/// A simpler form is preferred if it saves this share of the saving of the best one.
const AS_GOOD: f64 = 0.95;

/// The weight of the saving of a form with more parts than nodes. Each part is where the recorded run had the most
/// requests; where locks change hands by chance, the next run differs. For water-nsquared such parts promised up to
/// half more than a block for each node, and saved less.
const OF_MANY_PARTS: f64 = 2.0 / 3.0;

/// The longest stride that is tried, in pages.
const LONGEST_STRIDE: u64 = 1 << 12;

/// One form of homes for an area.
struct Form {
    kind: AdviceKind,
    homes: Homes,
    score: f64,
    total: Gain,
}

impl Form {
    /// The score, reduced for what may differ in the next run.
    fn lasting(&self, nodes: u16) -> f64 {
        match &self.homes {
            Homes::Parts(parts) if parts.len() > usize::from(nodes) => self.score * OF_MANY_PARTS,
            _ => self.score,
        }
    }
}

/// The homes that save the most, if any save enough.
pub(super) fn advise(analysis: &Analysis, area: &Area, pages: &Pages) -> Option<Advice> {
    let nodes = analysis.run.nodes.max(1);
    let blocks = AreaPages::new(&analysis.run, area, pages, page_bytes(analysis));
    // If homes follow the writers, only the home uses these pages.
    if follow_writers(&analysis.run) && blocks.are_known_in_part() {
        return None;
    }
    let local = local(analysis, area, &blocks);
    let forms = local.into_iter().chain(forms(&blocks, nodes, area)).filter(|form| form.score > 0.0);
    let forms: Vec<Form> = forms.collect();
    let most = forms.iter().map(|form| form.lasting(nodes)).fold(0.0, f64::max);
    // The simplest forms come first.
    let form = forms.into_iter().find(|form| form.lasting(nodes) >= most * AS_GOOD)?;
    let all = area.totals.requests();
    // Estimates of unrecorded accesses may be too high.
    let saving = Traffic {
        requests: whole(form.total.requests).min(all),
        bytes: whole(form.total.bytes).min(area.totals.bytes),
    };
    let share = percent(saving.requests as f64, all as f64);
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
    let entry = entry(analysis, area, form.homes, false, &reason, saving)?;
    let (area, entries) = (area.name.clone(), vec![entry]);
    Some(Advice { area, kind: form.kind, reason, saving, entries, change: String::new() })
}

/// The local policy, if the allocating nodes use the blocks.
fn local(analysis: &Analysis, area: &Area, blocks: &AreaPages<'_>) -> Option<Form> {
    let Origin::Allocation { threads, .. } = &area.origin else { return None };
    let node_of =
        |number: &u32| analysis.threads.iter().find(|thread| thread.number == *number).map(|it| it.node);
    let allocating: BTreeSet<u16> = threads.iter().filter_map(node_of).collect();
    let used = blocks.best_homes();
    let fits = !used.is_empty() && used.is_subset(&allocating) && blocks.is_in_order_of_nodes();
    if !fits {
        return None;
    }
    let total = blocks.most();
    let homes = Homes::Policy(MemoryPolicy::Local);
    Some(Form { kind: AdviceKind::Local, homes, score: total.requests, total })
}

/// The forms that do not depend on the allocating node, simplest first.
fn forms(blocks: &AreaPages<'_>, nodes: u16, area: &Area) -> Vec<Form> {
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
    let node = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    let block = |index: u64, pages: u64| node(scaled(index, nodes.into(), pages.max(1)));
    forms.push(form(AdviceKind::Block, Homes::Policy(MemoryPolicy::Block), &block));
    let longest = blocks.longest() / u64::from(nodes);
    let mut stride = NonZeroU64::MIN;
    while stride.get() <= longest.min(LONGEST_STRIDE) {
        let striped = |index: u64, _| node(index / stride % u64::from(nodes));
        forms.push(form(AdviceKind::Striped, Homes::Policy(MemoryPolicy::Striped(stride)), &striped));
        let Some(next) = stride.checked_mul(NonZeroU64::MIN.saturating_add(1)) else { break };
        stride = next;
    }
    if area.objects == 1 && area.ranges.len() == 1 {
        let in_parts = |parts: Vec<PlacementPart>| {
            let ends: Vec<(u64, u16)> = parts
                .iter()
                .scan(0, |end, part| {
                    *end += part.pages;
                    Some((*end, part.node.0))
                })
                .collect();
            let home =
                |index: u64, _| ends[ends.partition_point(|(end, _)| *end <= index).min(ends.len() - 1)].1;
            form(AdviceKind::Parts, Homes::Parts(parts), &home)
        };
        let pages = blocks.longest();
        let firsts = (1..nodes).filter(|_| pages > 0 && usize::from(nodes) <= MOST_PARTS);
        let rotated = firsts.map(|first| in_parts(rotated(pages, nodes, first)));
        forms.extend(rotated.max_by(|one, other| one.score.total_cmp(&other.score)));
        forms.extend(blocks.parts().map(in_parts));
    }
    forms
}

/// A block for each node, as under the policy of that name, but starting at node `first`: the first thread need not
/// be on node 0.
fn rotated(pages: u64, nodes: u16, first: u16) -> Vec<PlacementPart> {
    let begin = |part: u16| {
        let page = (u128::from(pages) * u128::from(part)).div_ceil(u128::from(nodes));
        u64::try_from(page).unwrap_or(u64::MAX)
    };
    let part = |number: u16| PlacementPart {
        pages: begin(number + 1) - begin(number),
        node: NodeId::from_index((usize::from(number) + usize::from(first)) % usize::from(nodes)),
    };
    (0..nodes).map(part).filter(|part| part.pages > 0).collect()
}

#[cfg(test)]
#[test]
fn rotated_blocks_are_those_of_the_policy() {
    for (pages, nodes) in [(1, 4), (7, 4), (128, 3), (129, 4), (5, 1), (1000, 65535)] {
        for first in [0, 1, nodes - 1] {
            let parts = rotated(pages, nodes, first);
            let listed = parts
                .iter()
                .flat_map(|part| vec![u64::from(part.node.0); usize::try_from(part.pages).unwrap()]);
            let of = u64::from(nodes);
            let expected = (0..pages).map(|page| (page * of / pages + u64::from(first)) % of);
            assert!(listed.eq(expected), "{pages} pages, {nodes} nodes, from {first}");
        }
    }
}
