//! Tests of the estimates of a home's own use.

use super::*;
use crate::HomeUse;

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

/// Simulated runs have it: then nothing is estimated.
#[test]
fn what_is_known_of_a_homes_use_decides() {
    for (used, kind) in [(1, AdviceKind::Home), (41, AdviceKind::Nothing), (100, AdviceKind::Nothing)] {
        let mut analysis = empty();
        analysis.areas.push(area("table", variable("table"), vec![pages(0..8)]));
        for page in 0..8 {
            uses(&mut analysis, page, 1, 20, 20);
            // The home fetches from a cache of the other node what that has written.
            add(&mut analysis, PageUse { node: 0, peer: 1, reads: 30, ..of(page) });
            let home = HomeUse { reads: used, ..HomeUse::default() };
            analysis.homes.insert((FIRST + page, 0), home);
        }
        assert_eq!(only(&analysis).kind, kind, "{used} fetches of the home");
    }
}

/// The other node gets its half only, because the home uses the first one itself.
#[test]
fn pages_that_only_their_home_uses_stay() {
    let mut analysis = empty();
    analysis.run.consistency = RunRecord::CACHES.to_owned();
    analysis.areas.push(area("halves", variable("halves"), vec![pages(0..64)]));
    for page in 0..64 {
        analysis.homes.insert((FIRST + page, 0), HomeUse { reads: 100, ..HomeUse::default() });
    }
    for page in 32..64 {
        uses(&mut analysis, page, 1, 400, 0);
    }
    let advice = only(&analysis);
    assert_eq!((advice.kind, advice.saving.requests), (AdviceKind::Parts, 32 * 300));
    let [Entry::Variable(Variable { homes: Homes::Parts(parts), .. })] = &advice.entries[..] else {
        panic!("{advice:?}")
    };
    let half = |node| PlacementPart { pages: 32, node: NodeId(node) };
    assert_eq!(parts[..], [half(0), half(1)]);
}

/// The pages of a simulated run have moved: what a node asked for before and has used as the home since is for a home there,
/// and what the first home used of them against it.
#[test]
fn homes_of_pages_that_moved_are_weighed_against_each_other() {
    for (first, kind) in [(30, AdviceKind::Home), (210, AdviceKind::Nothing)] {
        let mut analysis = empty();
        analysis.run.consistency = RunRecord::CACHES.to_owned();
        analysis.areas.push(area("table", variable("table"), vec![pages(0..8)]));
        for page in 0..8 {
            uses(&mut analysis, page, 1, 200, 0);
            for (node, reads) in [(0, first), (1, 500)] {
                analysis.homes.insert((FIRST + page, node), HomeUse { reads, ..HomeUse::default() });
            }
        }
        let advice = only(&analysis);
        assert_eq!(advice.kind, kind, "{first} fetches of the first home");
        if kind == AdviceKind::Home {
            assert_eq!(advice.saving.requests, 8 * (200 - first));
        }
    }
}

/// They are prefetched, so hardly any is fetched by itself.
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

/// In stripes, a home uses its own pages as it uses adjacent ones.
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
fn stripes_that_all_use_alike_are_left_alone() {
    let mut analysis = empty();
    analysis.run.memory = "striped:1".to_owned();
    analysis.areas.push(area("cube", variable("cube"), vec![pages(0..128)]));
    for page in 0..128 {
        let home = home(&analysis, page);
        // Not all of them equally often.
        let reads = |reader: u16| 20 + (u32::from(node(page)) * 7 + u32::from(reader) * 5) % 9;
        (0..NODES)
            .filter(|node| *node != home)
            .for_each(|node| uses(&mut analysis, page, node, reads(node), 0));
    }
    // No other node writes, so prefetching the whole is worth it.
    assert_eq!(only(&analysis).kind, AdviceKind::Replicate);
}

#[test]
fn blocks_are_found_in_stripes() {
    let mut analysis = striped_by_chance(128, |page| node(page / 32));
    analysis.run.memory = "striped:1".to_owned();
    assert_eq!(only(&analysis).kind, AdviceKind::Block);
}

/// Recordings may contain arbitrary values.
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
