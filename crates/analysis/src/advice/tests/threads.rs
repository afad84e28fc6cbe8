//! Tests of advice about threads.

use super::*;

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
