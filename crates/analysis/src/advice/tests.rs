use super::*;
use crate::{AreaNode, NodeTotal, PageUse, Shared, ThreadInfo, Totals, Writer};
use gondwana_recording::Run;
use gondwana_rset::{MemoryPolicy, Part, Registry};
use gondwana_topology::{Bytes, Machine, NodeId};
use std::num::NonZeroU64;
use std::ops::Range;

const PAGE: u64 = 4096;
const NODES: u16 = 4;
/// First page of the first area.
const FIRST: u64 = 1 << 20;

/// Thread 0 on node 0, and eight others, two on each node in turn.
fn empty() -> Analysis {
    let thread = |number: u32| ThreadInfo {
        number,
        node: (number % u32::from(NODES)) as u16,
        ..ThreadInfo::default()
    };
    Analysis {
        run: Run { nodes: NODES, consistency: "rc".to_owned(), page_bytes: PAGE as u32, ..Run::default() },
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
    if analysis.run.memory.starts_with("striped") { (page % u64::from(NODES)) as u16 } else { 0 }
}

fn uses_by(analysis: &mut Analysis, page: u64, node: u16, thread: u32, reads: u32, writes: u32) {
    let bytes = u64::from(reads) * PAGE + u64::from(writes) * 100;
    let peer = home(analysis, page);
    let of_page =
        PageUse { node, thread: thread + 1, peer, reads, upgrades: writes, diffs: writes, bytes, ..of(page) };
    add(analysis, of_page);
}

/// `node` is told so often that `writer` has written the page.
fn notices(analysis: &mut Analysis, page: u64, node: u16, writer: u16, count: u32) {
    add(analysis, PageUse { node, peer: writer, notices: count, ..of(page) });
}

fn of(page: u64) -> PageUse {
    PageUse { address: (FIRST + page) * PAGE, unit: 12, ..PageUse::default() }
}

fn add(analysis: &mut Analysis, uses: PageUse) {
    let is_there = |area: &Area| area.ranges.iter().any(|range| range.contains(&uses.address));
    let area = analysis.areas.iter().position(is_there).expect("the page is of an area");
    analysis.pages.push(PageUse { area: area as u32, ..uses });
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

#[test]
fn what_one_node_uses_has_its_home_there() {
    let analysis = striped_by_chance(64, |_| 2);
    let (kind, homes) = homes(&analysis);
    assert_eq!(
        (kind, homes),
        (AdviceKind::Home, Homes::Policy(MemoryPolicy::Explicit([NodeId(2)].into_iter().collect())))
    );
    assert!(only(&analysis).reason.starts_with("node 2 makes 9"), "{}", only(&analysis).reason);
}

#[test]
fn equal_parts_are_blocks() {
    let block = striped_by_chance(128, |page| (page / 32) as u16);
    assert_eq!(homes(&block), (AdviceKind::Block, Homes::Policy(MemoryPolicy::Block)));
}

#[test]
fn turns_are_stripes() {
    let turns = striped_by_chance(128, |page| (page / 4 % 4) as u16);
    let stride = NonZeroU64::new(4).unwrap();
    assert_eq!(homes(&turns), (AdviceKind::Striped, Homes::Policy(MemoryPolicy::Striped(stride))));
}

#[test]
fn other_parts_are_listed() {
    let user = |page: u64| {
        if page < 15 {
            1
        } else if page < 60 {
            0
        } else {
            3
        }
    };
    let part = |pages, node| Part { pages, node: NodeId(node) };
    let (kind, homes) = homes(&striped_by_chance(128, user));
    assert_eq!((kind, homes), (AdviceKind::Parts, Homes::Parts(vec![part(15, 1), part(45, 0), part(68, 3)])));
}

#[test]
fn irregular_use_makes_no_endless_plan() {
    // Runs of 1 to 7 pages.
    let advice = advise(&striped_by_chance(4096, |page| (page / (1 + page % 7) % 4) as u16));
    for entry in advice.iter().flat_map(|advice| &advice.entries) {
        let Entry::Variable(Variable { homes: Homes::Parts(parts), .. }) = entry else { continue };
        assert!(parts.len() <= 64, "{}", parts.len());
        assert_eq!(parts.iter().map(|part| part.pages).sum::<u64>(), 4096);
    }
}

/// Pages homed at node 0, whose own use nobody sees: only the other half is moved.
#[test]
fn silent_pages_are_left_where_they_may_be_in_use() {
    let mut analysis = empty();
    analysis.run.nodes = 2;
    analysis.areas.push(area("grid", variable("grid"), vec![pages(0..64)]));
    for page in 32..64 {
        uses(&mut analysis, page, 1, 1, 20);
    }
    assert_eq!(homes(&analysis).0, AdviceKind::Block);
}

/// Each time the home has written.
#[test]
fn pages_that_their_home_writes_as_well_stay() {
    let mut analysis = empty();
    analysis.areas.push(area("flags", variable("flags"), vec![pages(0..8)]));
    for page in 0..8 {
        uses(&mut analysis, page, 1, 20, 20);
        notices(&mut analysis, page, 1, 0, 20);
    }
    let advice = only(&analysis);
    assert_eq!((advice.kind, advice.saving), (AdviceKind::Nothing, Traffic::default()));
}

/// They come along with others, so that hardly any is fetched by itself.
#[test]
fn pages_of_which_nodes_are_told_by_their_home_stay() {
    let mut analysis = empty();
    analysis.areas.push(area("halo", variable("halo"), vec![pages(0..64)]));
    (0..4).for_each(|page| uses(&mut analysis, page * 16, 1, 20, 0));
    for page in 0..64 {
        add(&mut analysis, PageUse { node: 1, ahead: 20, bytes: 20 * PAGE, ..of(page) });
        notices(&mut analysis, page, 1, 0, 20);
    }
    assert_eq!(only(&analysis).kind, AdviceKind::Nothing);
}

/// In stripes, what a home does with its pages is what it does with those beside them.
#[test]
fn homes_that_use_their_pages_as_much_as_others_keep_them() {
    let mut analysis = empty();
    analysis.run.memory = "striped:1".to_owned();
    analysis.areas.push(area("pool", variable("pool"), vec![pages(0..64)]));
    for page in 0..64 {
        let home = home(&analysis, page);
        (0..NODES).filter(|node| *node != home).for_each(|node| uses(&mut analysis, page, node, 0, 10));
    }
    let of_homes = advise(&analysis).into_iter().filter(|advice| advice.kind != AdviceKind::Together);
    let saved: u64 = of_homes.map(|advice| advice.saving.requests).sum();
    assert!(saved <= analysis.totals.requests() / 4, "{saved} of {}", analysis.totals.requests());
}

/// They belong to others, and were brought along with what the node works on.
#[test]
fn copies_that_came_along_for_nothing_hide_no_gain() {
    let mut analysis = striped_by_chance(128, |page| (page / 32) as u16);
    for page in (0..96).filter(|page| page % 4 != 3) {
        add(
            &mut analysis,
            PageUse { node: 3, peer: (page % 4) as u16, ahead: 20, bytes: 20 * PAGE, ..of(page) },
        );
        notices(&mut analysis, page, 3, (page / 32) as u16, 20);
    }
    let advice = only(&analysis);
    assert_eq!(advice.kind, AdviceKind::Block);
    let left = analysis.totals.requests() - advice.saving.requests;
    assert!(left < 200, "{left} of {}: {advice:?}", analysis.totals.requests());
}

#[test]
fn pages_beside_each_other_come_together_from_one_home() {
    let mut analysis = empty();
    analysis.run.memory = "striped:1".to_owned();
    analysis.areas.push(area("table", variable("table"), vec![pages(0..64)]));
    // Node 3 writes everything, and nodes 1 and 2 read it, page by page.
    for page in 0..64 {
        let home = home(&analysis, page);
        if home != 3 {
            uses(&mut analysis, page, 3, 0, 20);
        }
        for node in [1, 2].into_iter().filter(|node| *node != home) {
            uses(&mut analysis, page, node, 20, 0);
            notices(&mut analysis, page, node, 3, 20);
        }
    }
    let advice = advise(&analysis);
    let on = |node| Homes::Policy(MemoryPolicy::Explicit([NodeId(node)].into_iter().collect()));
    let Entry::Variable(entry) = &advice[0].entries[0] else { panic!("{advice:?}") };
    assert!([on(1), on(2), on(3)].contains(&entry.homes), "{advice:?}");
    // Half of the fetches from homes that differ.
    assert!(advice[0].saving.requests >= 64 * 10, "{advice:?}");
}

#[test]
fn blocks_of_those_who_allocate_are_local() {
    let mut analysis = empty();
    analysis.run.memory = "striped:1".to_owned();
    // Each node allocates from a part of the memory of its own.
    let parts = (0..4_u64).flat_map(|part| (0..4).map(move |block| part * 1000 + block * 16));
    let ranges: Vec<_> = parts.clone().map(|first| pages(first..first + 16)).collect();
    analysis.areas.push(area("rows = malloc", allocation("make_rows+0x1f", &[4, 1, 2, 3]), ranges));
    for first in parts {
        for page in first..first + 16 {
            if page % 4 != first / 1000 {
                uses(&mut analysis, page, (first / 1000) as u16, 1, 20);
            }
        }
    }
    let advice = only(&analysis);
    let [Entry::Allocation(entry)] = &advice.entries[..] else { panic!("no allocation: {advice:?}") };
    assert_eq!((advice.kind, &entry.homes), (AdviceKind::Local, &Homes::Policy(MemoryPolicy::Local)));
    assert_eq!((entry.site.to_string(), entry.min_bytes), ("make_rows+0x1f".to_owned(), SMALLEST_PLACED));

    analysis.areas[0].objects = 16 * 1000;
    let advice = only(&analysis);
    let [Entry::Allocation(entry)] = &advice.entries[..] else { panic!("no allocation: {advice:?}") };
    assert_eq!((advice.kind, &entry.homes), (AdviceKind::Local, &Homes::Policy(MemoryPolicy::Local)));
    assert_eq!(entry.min_bytes, 0);
}

/// The function that calls `malloc` for all has callers of its own.
#[test]
fn allocations_of_one_call_are_told_apart_by_caller() {
    let mut analysis = empty();
    for place in 0..2 {
        let blocks = vec![pages(place * 1000..place * 1000 + 16)];
        analysis.areas.push(area("a = malloc", allocation("xmalloc+0x12", &[0]), blocks));
        let Origin::Allocation { caller, .. } = &mut analysis.areas[place as usize].origin else {
            unreachable!()
        };
        *caller = format!("main+0x{place}f");
        (place * 1000..place * 1000 + 16).for_each(|page| uses(&mut analysis, page, 2 + place as u16, 1, 20));
    }
    let mut entries = plan(&analysis, &advise(&analysis)).allocations;
    entries.sort_by_key(|entry| entry.caller.clone().map(|caller| caller.to_string()));
    let on = |node| Homes::Policy(MemoryPolicy::Explicit([NodeId(node)].into_iter().collect()));
    let told: Vec<_> =
        entries.into_iter().map(|it| (it.caller.unwrap().to_string(), it.max_bytes, it.homes)).collect();
    assert_eq!(told, [("main+0x1f".to_owned(), u64::MAX, on(3)), ("main+0xf".to_owned(), u64::MAX, on(2))]);
}

/// Without callers, a plan tells two blocks of one call apart by size.
#[test]
fn allocations_of_one_call_are_told_apart_by_size() {
    let mut analysis = empty();
    for (place, name) in ["a = malloc", "b = malloc"].iter().enumerate() {
        let first = place as u64 * 1000;
        analysis.areas.push(area(
            name,
            allocation("xmalloc+0x12", &[0]),
            vec![pages(first..first + 16 * (place as u64 + 1))],
        ));
        for page in first..first + 16 {
            uses(&mut analysis, page, 2 + place as u16, 1, 20);
        }
    }
    let plan = plan(&analysis, &advise(&analysis));
    let mut sizes: Vec<_> = plan.allocations.iter().map(|entry| (entry.min_bytes, entry.max_bytes)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [(16 * PAGE, 16 * PAGE), (32 * PAGE, 32 * PAGE)]);
}

#[test]
fn of_allocations_that_a_plan_cannot_tell_apart_it_takes_those_that_save_most() {
    let planned = |user: fn(u64) -> u16| {
        let mut analysis = empty();
        for place in 0..2 {
            let blocks = vec![pages(place * 1000..place * 1000 + 16)];
            analysis.areas.push(area("a = malloc", allocation("xmalloc+0x12", &[0]), blocks));
            for page in place * 1000..place * 1000 + 16 {
                uses(&mut analysis, page, user(place), 1, 20 + place as u32);
            }
        }
        let advice = advise(&analysis);
        let all: u64 = advice.iter().map(|advice| advice.saving.requests).sum();
        let plan = plan(&analysis, &advice);
        let saved = plan.before.unwrap().requests - plan.expected.unwrap().requests;
        let homes: Vec<_> = plan.allocations.into_iter().map(|entry| entry.homes).collect();
        (homes, advice[0].saving.requests == saved, all == saved)
    };
    let on = |node| vec![Homes::Policy(MemoryPolicy::Explicit([NodeId(node)].into_iter().collect()))];
    assert_eq!(planned(|place| 2 + place as u16), (on(3), true, false));
    assert_eq!(planned(|_| 2), (on(2), false, true));
}

/// Who works at home asks for nothing: those who were seen there are the others.
#[test]
fn homes_that_follow_the_writers_are_left_alone() {
    let mut analysis = striped_by_chance(128, |page| (page / 32) as u16);
    assert_eq!(only(&analysis).kind, AdviceKind::Block);
    analysis.run.memory = "float".to_owned();
    let advice = only(&analysis);
    assert_eq!((advice.kind, advice.entries.len()), (AdviceKind::Nothing, 0));
    assert!(advice.reason.contains("homes follow"), "{advice:?}");
}

#[test]
fn stripes_that_all_use_alike_are_left_alone() {
    let mut analysis = empty();
    analysis.run.memory = "striped:1".to_owned();
    analysis.areas.push(area("cube", variable("cube"), vec![pages(0..128)]));
    for page in 0..128 {
        let home = home(&analysis, page);
        // Not all of them equally often.
        let reads = |node: u16| 20 + (page as u32 * 7 + u32::from(node) * 5) % 9;
        (0..NODES)
            .filter(|node| *node != home)
            .for_each(|node| uses(&mut analysis, page, node, reads(node), 0));
    }
    // That nobody else was seen to write makes it worth fetching as a whole.
    assert_eq!(only(&analysis).kind, AdviceKind::Replicate);
}

#[test]
fn blocks_are_found_in_stripes() {
    let mut analysis = striped_by_chance(128, |page| (page / 32) as u16);
    analysis.run.memory = "striped:1".to_owned();
    assert_eq!(only(&analysis).kind, AdviceKind::Block);
}

#[test]
fn what_all_read_is_replicated() {
    let mut analysis = empty();
    analysis.areas.push(area("table", variable("table"), vec![pages(0..256)]));
    analysis.areas[0].pattern = Pattern::ReadOnly;
    for page in 0..256 {
        (1..4).for_each(|node| uses(&mut analysis, page, node, 1, 0));
    }
    let advice = only(&analysis);
    let [Entry::Variable(entry)] = &advice.entries[..] else { panic!("no variable: {advice:?}") };
    assert_eq!(
        (advice.kind, entry.replicate, &entry.homes),
        (AdviceKind::Replicate, true, &Homes::default())
    );
    assert_eq!(advice.saving, Traffic { requests: 3 * (256 - 2), bytes: 0 });
}

#[test]
fn what_is_hardly_read_is_not_replicated() {
    let mut analysis = empty();
    analysis.areas.push(area("table", variable("table"), vec![pages(0..256)]));
    analysis.areas[0].pattern = Pattern::ReadOnly;
    for page in 0..32 {
        (1..4).for_each(|node| uses(&mut analysis, page * 8, node, 1, 0));
    }
    assert_eq!(only(&analysis).kind, AdviceKind::Nothing);
}

#[test]
fn threads_that_exchange_pages_come_together() {
    let mut analysis = empty();
    analysis.areas.push(area("boxes", variable("boxes"), vec![pages(0..8)]));
    analysis.areas[0].pattern = Pattern::Migratory;
    // 1 (node 1) with 3 (node 3), 5 (node 1) with 7 (node 3).
    for (page, one, other) in [(0, 1, 3), (1, 5, 7)] {
        uses_by(&mut analysis, page, 1, one, 30, 30);
        uses_by(&mut analysis, page, 3, other, 30, 30);
    }
    let advice = advise(&analysis);
    let together = &advice[0];
    assert_eq!((together.kind, together.saving.requests), (AdviceKind::Together, 2 * 60));
    assert!(
        together.reason.contains("1 and 3") && together.reason.contains("5 and 7"),
        "{}",
        together.reason
    );
    let nodes: Vec<_> = together
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::Threads(group) => (group.node.unwrap().0, group.threads.clone()),
            entry => panic!("{entry:?}"),
        })
        .collect();
    let sizes: Vec<_> = nodes.iter().map(|(node, threads)| (*node, threads.len())).collect();
    assert_eq!(sizes, [(0, 2), (1, 2), (2, 2), (3, 2)], "as many on each node as before");
    let of = |thread: u32| nodes.iter().find(|(_, threads)| threads.contains(&thread)).map(|(node, _)| *node);
    assert_eq!((of(1), of(5)), (of(3), of(7)));
    assert_ne!(of(1), of(5));
}

/// What the nodes write of the page, in units of 8 bytes.
fn share(analysis: &mut Analysis, page: u64, writers: Vec<(u16, bool, &str)>) {
    let start = (FIRST + page) * PAGE;
    let writer = |(place, (node, writes, name)): (usize, &(u16, bool, &str))| Writer {
        node: *node,
        writes: *writes,
        bytes: start + 8 * place as u64..start + 8 * place as u64 + 8,
        name: (*name).to_owned(),
    };
    let writers = writers.iter().enumerate().map(writer).collect();
    for node in [0, 1] {
        uses(analysis, page, node, 50, 50);
    }
    analysis.areas[0].pattern = Pattern::FalselyShared;
    analysis.areas[0].falsely_shared.push(Shared { page: start, fetches: 100, writers });
}

#[test]
fn counters_of_several_nodes_are_padded() {
    let mut analysis = empty();
    analysis.areas.push(area("counters", variable("counters"), vec![pages(0..1)]));
    let names = ["counters[0]", "counters[1]", "counters[2]", "counters[3]"];
    share(
        &mut analysis,
        0,
        names.iter().enumerate().map(|(place, name)| ((place / 2) as u16, true, *name)).collect(),
    );
    let advice =
        advise(&analysis).into_iter().find(|advice| advice.kind == AdviceKind::Pad).expect("there is one");
    assert!(advice.entries.is_empty() && advice.change.contains("pad counters"));
    let shared = "counters[0] to counters[1] (node 0 writes) and counters[2] to counters[3] (node 1 writes) are on 1 page";
    assert!(advice.reason.starts_with(shared), "{}", advice.reason);
    assert!(advice.saving.requests > 150 && advice.saving.requests <= analysis.totals.requests());
}

#[test]
fn a_hot_field_is_moved_away() {
    let mut analysis = empty();
    analysis.areas.push(area("state", variable("state"), vec![pages(0..1)]));
    let writers = vec![(1, false, "state.limits"), (0, true, "state.lock_count"), (1, false, "state.table")];
    share(&mut analysis, 0, writers);
    let advice = advise(&analysis)
        .into_iter()
        .find(|advice| advice.kind == AdviceKind::Regroup)
        .expect("there is one");
    assert!(advice.change.contains("move .lock_count of state away"), "{}", advice.change);
    assert!(advice.entries.is_empty());
}

#[test]
fn bytes_without_names_are_named_by_address() {
    let mut analysis = empty();
    analysis.areas.push(area("heap", Origin::Other, vec![pages(0..1)]));
    share(&mut analysis, 0, vec![(0, true, ""), (1, true, "")]);
    let advice =
        advise(&analysis).into_iter().find(|advice| advice.kind == AdviceKind::Pad).expect("there is one");
    assert!(advice.reason.starts_with("0x100000000 to 0x100000008 (node 0 writes)"), "{}", advice.reason);
}

#[test]
fn nothing_is_advised_where_nothing_can_be_saved() {
    assert_eq!(advise(&empty()), []);
    let mut analysis = empty();
    analysis.areas.push(area("queue", variable("queue"), vec![pages(0..4)]));
    analysis.areas[0].pattern = Pattern::WidelyWritten;
    for page in 0..4 {
        (0..4).for_each(|node| uses_by(&mut analysis, page, node, 0, 30, 30));
        // All pages are used alike by all.
    }
    let advice = advise(&analysis);
    assert!(
        advice.iter().all(|advice| advice.saving.requests <= analysis.totals.requests() / 3),
        "{advice:#?}"
    );
}

#[test]
fn a_home_is_no_help_under_sequential_consistency() {
    let mut analysis = striped_by_chance(128, |page| (page / 32) as u16);
    analysis.run.consistency = "sc".to_owned();
    assert!(advise(&analysis).iter().all(|advice| advice.entries.is_empty()));
}

#[test]
fn small_savings_are_not_worth_a_line() {
    let mut analysis = striped_by_chance(128, |page| (page / 32) as u16);
    analysis.areas.push(area("small", variable("small"), vec![pages(1000..1001)]));
    uses(&mut analysis, 1000, 3, 1, 10);
    assert_eq!(only(&analysis).area, "grid");
}

#[test]
fn a_plan_says_what_was_and_what_is_expected() {
    let analysis = striped_by_chance(128, |page| (page / 32) as u16);
    let advice = advise(&analysis);
    let plan = plan(&analysis, &advice);
    let before = analysis.totals.requests();
    assert_eq!(plan.before, Some(Traffic { requests: before, bytes: analysis.totals.bytes }));
    assert_eq!(plan.expected.unwrap().requests, before - advice[0].saving.requests);
    let machine = Machine::uniform(NODES, 1, Bytes(1 << 30));
    let read = Plan::parse(&plan.to_toml(), &machine, &Registry::default()).unwrap();
    assert_eq!(read.variables[0].name, "grid");
    let json = serde_json::to_value(&advice).unwrap();
    assert!(
        json[0]["plan"].as_str().unwrap().contains("[[variable]]\nname = \"grid\"\npolicy = \"block\""),
        "{json}"
    );
    assert_eq!(json[0]["kind"], "block");
}

/// A recording can say anything.
#[test]
fn absurd_pages_do_no_harm() {
    let mut analysis = striped_by_chance(16, |_| 1);
    for (address, unit, area, node) in [(0, 255, 0, 0), (u64::MAX, 63, 0, 9), (FIRST * PAGE, 0, 7, 1)] {
        let (thread, peer, reads, bytes) = (u32::MAX, u16::MAX, u32::MAX, u64::MAX);
        analysis.pages.push(PageUse {
            address,
            unit,
            area,
            node,
            thread,
            peer,
            reads,
            bytes,
            ..PageUse::default()
        });
    }
    analysis.areas[0].ranges.push(0..u64::MAX);
    for advice in advise(&analysis) {
        assert!(advice.saving.requests <= analysis.totals.requests());
    }
}

#[test]
fn many_uses_are_told_without_numbers() {
    let mut analysis = empty();
    let name = "make, cells.c:7";
    analysis.areas.push(area(name, allocation("make+0x9", &[0]), vec![pages(0..1)]));
    let names: Vec<String> = (1..9).map(|place| format!("{name}+{:#x}", place * 8)).collect();
    let uses = names.iter().zip(0..).map(|(name, place)| (place % 2, place % 4 < 2, name.as_str())).collect();
    share(&mut analysis, 0, uses);
    // The name of the file has a dot, and no field.
    let advice =
        advise(&analysis).into_iter().find(|advice| advice.kind == AdviceKind::Pad).expect("there is one");
    let shared =
        "make, cells.c:7 (nodes 0 and 1 read) and make, cells.c:7 (nodes 0 and 1 write) are on 1 page";
    assert!(advice.reason.starts_with(shared), "{}", advice.reason);
}
