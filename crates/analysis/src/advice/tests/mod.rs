//! Tests with small recordings.

mod allocations;
mod estimates;
mod following;
mod homes;
mod layout;
mod plans;
mod replicas;
mod threads;

use super::*;
use crate::{AreaNode, FalselySharedPage, NodeTotal, PageUse, ThreadInfo, Totals, UsedBytes};
use gondwana_page::{PAGE_BITS, PAGE_SIZE};
use gondwana_recording::RunRecord;
use gondwana_rset::{MemoryPolicy, PlacementPart, Registry};
use gondwana_topology::{Bytes, Machine, NodeId};
use std::num::NonZeroU64;
use std::ops::Range;

const PAGE: u64 = PAGE_SIZE as u64;
const NODES: u16 = 4;
/// First page of the first area.
const FIRST: u64 = 1 << 20;

/// A small number as that of a node.
fn node(number: u64) -> u16 {
    u16::try_from(number).expect("a node")
}

/// Thread 0 on node 0, and eight others, two on each node in turn.
fn empty() -> Analysis {
    let thread = |number: u32| ThreadInfo {
        number,
        node: node(u64::from(number) % u64::from(NODES)),
        ..ThreadInfo::default()
    };
    Analysis {
        run: RunRecord {
            nodes: NODES,
            consistency: "rc".to_owned(),
            page_bytes: 1 << PAGE_BITS,
            ..RunRecord::default()
        },
        nodes: vec![NodeTotal::default(); usize::from(NODES)],
        threads: (0..9).map(thread).collect(),
        ..Analysis::default()
    }
}

fn variable(name: &str) -> Origin {
    Origin::Variable { name: name.to_owned(), library: String::new() }
}

fn allocation(site: &str, threads: &[u32]) -> Origin {
    Origin::Allocation {
        site: site.to_owned(),
        caller: String::new(),
        library: String::new(),
        stack: vec![],
        threads: threads.to_vec(),
    }
}

fn area(name: &str, origin: Origin, ranges: Vec<Range<u64>>) -> Area {
    Area {
        name: name.to_owned(),
        origin,
        objects: ranges.len() as u64,
        bytes: ranges.iter().map(|range| range.end - range.start).sum(),
        ranges,
        totals: Totals::default(),
        nodes: vec![AreaNode::default(); usize::from(NODES)],
        pattern: Pattern::Private,
        places: vec![],
        fields: vec![],
        falsely_shared: vec![],
    }
}

fn pages(range: Range<u64>) -> Range<u64> {
    (FIRST + range.start) * PAGE..(FIRST + range.end) * PAGE
}

/// The thread of a node, each of whose writes is an upgrade that ends in a diff of 100 bytes.
fn uses(analysis: &mut Analysis, page: u64, node: u16, reads: u32, writes: u32) {
    uses_by(analysis, page, node, u32::from(node) + 4, reads, writes);
}

/// The home of a page: in turn, or node 0.
fn home(analysis: &Analysis, page: u64) -> u16 {
    if analysis.run.memory.starts_with("striped") { node(page % u64::from(NODES)) } else { 0 }
}

fn uses_by(analysis: &mut Analysis, page: u64, node: u16, thread: u32, reads: u32, writes: u32) {
    let bytes = u64::from(reads) * PAGE + u64::from(writes) * 100;
    let peer = home(analysis, page);
    let of_page =
        PageUse { node, thread: thread + 1, peer, reads, upgrades: writes, diffs: writes, bytes, ..of(page) };
    add(analysis, of_page);
}

/// `node` receives so many notices of writes of `writer` to the page.
fn notices(analysis: &mut Analysis, page: u64, node: u16, writer: u16, count: u32) {
    add(analysis, PageUse { node, peer: writer, notices: count, ..of(page) });
}

fn of(page: u64) -> PageUse {
    PageUse { address: (FIRST + page) * PAGE, unit: 12, ..PageUse::default() }
}

fn add(analysis: &mut Analysis, uses: PageUse) {
    let is_there = |area: &Area| area.ranges.iter().any(|range| range.contains(&uses.address));
    let area = analysis.areas.iter().position(is_there).expect("the page is of an area");
    analysis.pages.push(PageUse { area: u32::try_from(area).expect("there are few"), ..uses });
    let more = Totals {
        reads: uses.reads.into(),
        upgrades: uses.upgrades.into(),
        ahead: uses.ahead.into(),
        diffs: uses.diffs.into(),
        notices: uses.notices.into(),
        bytes: uses.bytes,
        ..Totals::default()
    };
    let known = &mut analysis.areas[area];
    let of_node = &mut known.nodes[usize::from(uses.node)].totals;
    [&mut known.totals, of_node, &mut analysis.totals].into_iter().for_each(|totals| totals.add(&more));
}

/// A variable whose pages were striped over the nodes, initialised by node 0 and then written 20 times by the node
/// that `user` says.
fn striped_by_chance(count: u64, user: impl Fn(u64) -> u16) -> Analysis {
    let mut analysis = empty();
    analysis.run.memory = "striped:1".to_owned();
    analysis.areas.push(area("grid", variable("grid"), vec![pages(0..count)]));
    for page in 0..count {
        let home = home(&analysis, page);
        if home != 0 {
            uses(&mut analysis, page, 0, 0, 1);
        }
        if home != user(page) {
            uses(&mut analysis, page, user(page), 1, 20);
        }
    }
    analysis
}

fn only(analysis: &Analysis) -> Advice {
    let mut advice = advise(analysis);
    assert_eq!(advice.len(), 1, "{advice:#?}");
    advice.remove(0)
}

/// Where the only advice places the only variable.
fn homes(analysis: &Analysis) -> (AdviceKind, Homes) {
    let advice = only(analysis);
    let [Entry::Variable(entry)] = &advice.entries[..] else { panic!("no variable: {advice:?}") };
    assert!(advice.saving.requests > analysis.totals.requests() / 2, "{advice:?}");
    assert!(advice.saving.requests <= analysis.totals.requests() && advice.change.is_empty());
    (advice.kind, entry.homes.clone())
}
