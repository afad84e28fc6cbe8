//! Advice about threads that exchange so much that they should be on one node.

use super::pages::{Moved, by_thread};
use super::{Advice, AdviceKind, Entry};
use crate::Analysis;
use crate::numbers::whole;
use gondwana_plan::{ThreadGroup, Traffic};
use gondwana_topology::NodeId;
use std::collections::BTreeMap;

/// The least share of all requests for which threads are moved rather than pages.
const LEAST_SHARE: f64 = 0.05;

/// Runs with more threads are skipped, because all pairs would have to be compared.
const MOST_THREADS: usize = 128;

/// Pages that more threads use are skipped: they say little about two of them.
const MOST_SHARING: usize = 8;

/// The saving of two threads on one node.
#[derive(Clone, Copy, Debug, Default)]
struct Mutual {
    requests: f64,
    bytes: f64,
}

/// The threads with their nodes, and the exchange of each pair.
struct Exchange {
    numbers: Vec<u32>,
    nodes: Vec<u16>,
    mutual: Vec<Vec<Mutual>>,
}

impl Exchange {
    fn of(analysis: &Analysis) -> Self {
        let numbers: Vec<u32> = analysis.threads.iter().map(|thread| thread.number).collect();
        let nodes = analysis.threads.iter().map(|thread| thread.node).collect();
        let place: BTreeMap<u32, usize> =
            numbers.iter().enumerate().map(|(place, number)| (*number, place)).collect();
        let mut mutual = vec![vec![Mutual::default(); numbers.len()]; numbers.len()];
        for page in by_thread(analysis).iter().flat_map(BTreeMap::values) {
            let known: Vec<_> = page
                .uses
                .iter()
                .filter_map(|((_, thread), usage)| Some((*place.get(&thread.checked_sub(1)?)?, *usage)))
                .collect();
            if known.len() > MOST_SHARING {
                continue;
            }
            let others = known.len().saturating_sub(1).max(1) as f64;
            for (at, (a, one)) in known.iter().enumerate() {
                // Data that is only read needs no exchange.
                for (b, other) in
                    known[at + 1..].iter().filter(|(_, other)| one.written() + other.written() > 0.0)
                {
                    let more = Mutual {
                        requests: one.requests().min(other.requests()) / others,
                        bytes: one.bytes.min(other.bytes) / others,
                    };
                    for (a, b) in [(*a, *b), (*b, *a)] {
                        mutual[a][b].requests += more.requests;
                        mutual[a][b].bytes += more.bytes;
                    }
                }
            }
        }
        Self { numbers, nodes, mutual }
    }

    /// The exchange of a thread with those on a node.
    fn with(&self, thread: usize, node: u16) -> f64 {
        let there = (0..self.nodes.len()).filter(|other| *other != thread && self.nodes[*other] == node);
        there.map(|other| self.mutual[thread][other].requests).sum()
    }

    /// The swap of two threads that saves the most; `main` stays.
    fn best_swap(&self) -> Option<(usize, usize)> {
        let movable: Vec<usize> = (0..self.numbers.len()).filter(|place| self.numbers[*place] != 0).collect();
        let mut best = (1e-6, None);
        for (at, &a) in movable.iter().enumerate() {
            let (from, stays) = (self.nodes[a], self.with(a, self.nodes[a]));
            for &b in movable[at + 1..].iter().filter(|&&b| self.nodes[b] != from) {
                let to = self.nodes[b];
                let gain = self.with(a, to) + self.with(b, from)
                    - stays
                    - self.with(b, to)
                    - 2.0 * self.mutual[a][b].requests;
                if gain > best.0 {
                    best = (gain, Some((a, b)));
                }
            }
        }
        best.1
    }

    /// The exchange of all threads within nodes.
    fn within(&self) -> Mutual {
        let mut sum = Mutual::default();
        for a in 0..self.nodes.len() {
            for b in (a + 1..self.nodes.len()).filter(|b| self.nodes[*b] == self.nodes[a]) {
                sum.requests += self.mutual[a][b].requests;
                sum.bytes += self.mutual[a][b].bytes;
            }
        }
        sum
    }
}

/// New nodes for threads, if they save enough; each node keeps its number of threads.
pub(super) fn advise(analysis: &Analysis) -> (Moved, Option<Advice>) {
    let nothing = (Moved::new(), None);
    if analysis.threads.len() > MOST_THREADS {
        return nothing;
    }
    let mut exchange = Exchange::of(analysis);
    let (nodes, before) = (exchange.nodes.clone(), exchange.within());
    // Each swap saves something; as many swaps as threads suffice.
    for _ in 0..exchange.numbers.len() {
        let Some((a, b)) = exchange.best_swap() else { break };
        exchange.nodes.swap(a, b);
    }
    let after = exchange.within();
    let saved = after.requests - before.requests;
    if saved < (analysis.totals.requests() as f64 * LEAST_SHARE).max(1.0) {
        return nothing;
    }
    let saving = Traffic { requests: whole(saved), bytes: whole((after.bytes - before.bytes).max(0.0)) };
    let placed = || exchange.numbers.iter().zip(&exchange.nodes).zip(&nodes);
    let moved =
        placed().filter(|((_, to), from)| to != from).map(|((number, to), _)| (*number, *to)).collect();
    let mut groups: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for ((number, node), _) in placed().filter(|((number, _), _)| **number != 0) {
        groups.entry(*node).or_default().push(*number);
    }
    let pairs = heaviest(&exchange, &nodes);
    let reason = format!("threads {pairs} ask for the same pages by turns, from different nodes");
    let entries = groups
        .into_iter()
        .enumerate()
        .map(|(place, (node, threads))| {
            // The saving is that of all of them together.
            let saving = (place == 0).then_some(saving);
            let reason = if place == 0 { reason.clone() } else { String::new() };
            Entry::Threads(ThreadGroup { line: 0, threads, node: Some(NodeId(node)), reason, saving })
        })
        .collect();
    let (area, kind) = ("threads".to_owned(), AdviceKind::Together);
    (moved, Some(Advice { area, kind, reason, saving, entries, change: String::new() }))
}

/// The threads that come together and exchange the most, as text.
fn heaviest(exchange: &Exchange, before: &[u16]) -> String {
    const SHOWN: usize = 3;
    let mut pairs = vec![];
    for a in 0..before.len() {
        for b in (a + 1..before.len())
            .filter(|b| before[*b] != before[a] && exchange.nodes[*b] == exchange.nodes[a])
        {
            pairs.push((exchange.mutual[a][b].requests, exchange.numbers[a], exchange.numbers[b]));
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let texts: Vec<String> = pairs.iter().take(SHOWN).map(|(_, a, b)| format!("{a} and {b}")).collect();
    texts.join(", ")
}
