//! Tests of runs whose homes follow the writers.

use super::*;

/// A variable of which each node writes a quarter, at home; the last pages of each quarter are read by the next node.
fn followed() -> Analysis {
    let mut analysis = empty();
    analysis.run.memory = "float".to_owned();
    analysis.areas.push(area("grid", variable("grid"), vec![pages(0..128)]));
    for page in (0..128).filter(|page| page % 32 >= 30) {
        let (home, reader) = (node(page / 32), node(page / 32 + 1) % NODES);
        let (reads, bytes) = (20, 20 * PAGE);
        add(
            &mut analysis,
            PageUse { node: reader, peer: home, thread: u32::from(reader) + 5, reads, bytes, ..of(page) },
        );
        notices(&mut analysis, page, reader, home, 20);
    }
    analysis
}

/// A page of another variable, of which node 1 asks its home, node 2, so many times, and that node asks node 1 while this is the home.
fn with_a_page_of_two(asks_1: u32, asks_2: u32) -> Analysis {
    let mut analysis = followed();
    analysis.areas.push(area("queue", variable("queue"), vec![pages(200..201)]));
    for (node, peer, asks) in [(1, 2, asks_1), (2, 1, asks_2)] {
        let bytes = u64::from(asks) * PAGE;
        add(
            &mut analysis,
            PageUse {
                node,
                peer,
                thread: u32::from(node) + 5,
                reads: asks,
                upgrades: asks,
                diffs: asks,
                bytes,
                area: 1,
                ..of(200)
            },
        );
    }
    analysis
}

#[test]
fn homes_that_follow_the_writers_are_left_alone() {
    let analysis = followed();
    let all = advise(&analysis);
    assert!(all.iter().all(|advice| advice.entries.is_empty() && advice.saving.requests == 0), "{all:?}");
    let advice = all.iter().find(|advice| advice.kind == AdviceKind::Follow).expect("it is said");
    assert!(advice.reason.contains("of the 8 pages") && advice.reason.contains("none went"), "{advice:?}");
}

#[test]
fn pages_that_go_back_and_forth_are_counted() {
    let advice = advise(&with_a_page_of_two(6, 6));
    let advice = advice.iter().find(|advice| advice.kind == AdviceKind::Follow).expect("it is said");
    assert!(advice.reason.contains("1 went back and forth, which makes 7 %"), "{}", advice.reason);
}

#[test]
fn a_home_that_stays_is_advised_where_it_saves_much() {
    let analysis = with_a_page_of_two(200, 10);
    let advice = advise(&analysis);
    let placed = advice.iter().find(|advice| advice.kind.is_about_homes()).expect("it pays");
    assert!(placed.saving.requests > 300, "{placed:?}");
    assert!(advice.iter().all(|advice| advice.kind != AdviceKind::Follow), "{advice:?}");
}

#[test]
fn nothing_is_said_of_homes_that_nobody_asks() {
    let mut analysis = empty();
    analysis.run.memory = "float".to_owned();
    assert_eq!(advise(&analysis), []);
}

/// Their homes use them, to an unknown extent.
#[test]
fn pages_that_nobody_asks_for_are_not_moved() {
    let mut analysis = with_a_page_of_two(200, 10);
    analysis.areas[1].ranges = vec![pages(200..300)];
    assert!(advise(&analysis).iter().all(|advice| advice.entries.is_empty()));
}
