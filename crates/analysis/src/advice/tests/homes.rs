//! Homes of pages, in all forms that a plan has.

use super::*;

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
    let block = striped_by_chance(128, |page| node(page / 32));
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
    let part = |pages, node| PlacementPart { pages, node: NodeId(node) };
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

/// Pages homed at node 0, whose own use is not recorded: only the other half is moved.
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

#[test]
fn a_home_is_no_help_under_sequential_consistency() {
    let mut analysis = striped_by_chance(128, |page| node(page / 32));
    analysis.run.consistency = "sc".to_owned();
    assert!(advise(&analysis).iter().all(|advice| advice.entries.is_empty()));
}

#[test]
fn small_savings_are_not_worth_a_line() {
    let mut analysis = striped_by_chance(128, |page| node(page / 32));
    analysis.areas.push(area("small", variable("small"), vec![pages(1000..1001)]));
    uses(&mut analysis, 1000, 3, 1, 10);
    assert_eq!(only(&analysis).area, "grid");
}

/// Main on node 0 waits, so the first computing thread is on node 1. Homes that follow small differences between
/// pages would be no better.
#[test]
fn blocks_in_the_order_of_threads_are_found() {
    let owner = |page: u64| node(page / 128 + 1) % NODES;
    let mut analysis = striped_by_chance(512, owner);
    analysis.threads.clear();
    for page in (0..512).filter(|page| page * 7 % 19 < 8) {
        let other = (owner(page) + 1 + (page * 5 % 3) as u16) % NODES;
        if other != home(&analysis, page) {
            uses(&mut analysis, page, other, 1, 21);
        }
    }
    let advice = advise(&analysis);
    let Entry::Variable(entry) = &advice[0].entries[0] else { panic!("{advice:?}") };
    let parts = [1, 2, 3, 0].map(|node| PlacementPart { pages: 128, node: NodeId(node) });
    assert_eq!(entry.homes, Homes::Parts(parts.to_vec()));
}

/// Arrays are often larger than their used part.
#[test]
fn what_nobody_uses_of_striped_memory_does_not_matter() {
    let user = |page| [24, 32, 60].iter().filter(|end| page >= **end).map(|_| 1).sum::<u16>();
    let mut analysis = striped_by_chance(64, user);
    analysis.areas[0].ranges = vec![pages(0..4096)];
    let (kind, homes) = homes(&analysis);
    let parts = [(24, 0), (8, 1), (28, 2), (4036, 3)];
    let parts = parts.map(|(pages, node)| PlacementPart { pages, node: NodeId(node) });
    assert_eq!((kind, homes), (AdviceKind::Parts, Homes::Parts(parts.to_vec())));
}

/// Parts are counted from the beginning of each block, and here it is unknown which blocks were used.
#[test]
fn several_blocks_in_one_range_have_no_parts() {
    let mut analysis = striped_by_chance(128, |page| u16::from(page % 32 >= 20));
    analysis.areas[0].objects = 3;
    let all = advise(&analysis);
    let parts = all.iter().filter(|advice| advice.kind == AdviceKind::Parts);
    assert_eq!(parts.count(), 0, "{all:?}");
}

/// The homes in the plan's first entry for a variable.
fn planned(analysis: &Analysis) -> Homes {
    plan(analysis, &advise(analysis)).variables.remove(0).homes
}

/// As in water-nsquared: each node works on a block, but molecules of all blocks are written under locks, and the
/// most frequent holder of a lock is chance. Parts that follow it would have saved more, but only in that run.
#[test]
fn parts_that_follow_chance_are_not_chosen() {
    let owner = |page: u64| node(page / 128);
    let mut analysis = striped_by_chance(512, owner);
    analysis.threads.clear();
    for first in (0..512).step_by(8) {
        // Some groups of pages were written by one other node even more than by their own.
        let chance = first / 8 * 7 % 19;
        let busy = (owner(first) + 1 + (chance % 3) as u16) % NODES;
        for page in first..first + 8 {
            if chance < 7 && busy != home(&analysis, page) {
                uses(&mut analysis, page, busy, 1, 30);
            }
        }
    }
    assert_eq!(planned(&analysis), Homes::Policy(MemoryPolicy::Block));
}

/// Many parts are chosen if nothing simpler saves nearly as much.
#[test]
fn many_parts_that_are_clear_are_listed() {
    // Each level of a tree has a block for each node, and twice as many pages as the one above it.
    let user = |page: u64| {
        let level = 63 - (page / 16 + 1).leading_zeros();
        let index = page - 16 * ((1 << level) - 1);
        node(index * u64::from(NODES) / (16 << level))
    };
    let Homes::Parts(parts) = planned(&striped_by_chance(16 * 31, user)) else { panic!("no parts") };
    assert_eq!(parts.len(), 5 * usize::from(NODES));
}

#[test]
fn nothing_is_said_about_what_nobody_used() {
    let mut analysis = striped_by_chance(128, |page| node(page / 32));
    analysis.areas.push(area("unused", variable("unused"), vec![pages(1000..1064)]));
    assert_eq!(only(&analysis).area, "grid");
}
