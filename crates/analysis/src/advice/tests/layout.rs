//! Changes to the source.

use super::*;

/// The bytes of the page that nodes write, in units of 8 bytes.
fn share(analysis: &mut Analysis, page: u64, writers: Vec<(u16, bool, &str)>) {
    let start = (FIRST + page) * PAGE;
    let writer = |(place, (node, writes, name)): (usize, &(u16, bool, &str))| UsedBytes {
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
    analysis.areas[0].falsely_shared.push(FalselySharedPage { page: start, fetches: 100, writers });
}

#[test]
fn counters_of_several_nodes_are_padded() {
    let mut analysis = empty();
    analysis.areas.push(area("counters", variable("counters"), vec![pages(0..1)]));
    let names = ["counters[0]", "counters[1]", "counters[2]", "counters[3]"];
    share(&mut analysis, 0, (0..).zip(names).map(|(place, name)| (place / 2, true, name)).collect());
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

/// Its pages are hardly requested, as they come along with those of another area.
#[test]
fn a_page_that_comes_along_with_others_costs_as_much() {
    let mut analysis = empty();
    analysis.areas.push(area("grid", variable("grid"), vec![pages(0..1)]));
    uses(&mut analysis, 0, 1, 1000, 1000);
    let start = (FIRST + 1) * PAGE;
    let user = |node, writes, at: u64, name: &str| UsedBytes {
        node,
        writes,
        bytes: start + at..start + at + 8,
        name: name.to_owned(),
    };
    let fetched = |fetches| FalselySharedPage {
        page: start,
        fetches,
        writers: vec![user(1, false, 0, "state.limit"), user(0, true, 8, "state.hits")],
    };
    let mut state = area("state", variable("state"), vec![pages(1..2)]);
    (state.totals.reads, state.totals.ahead) = (8, 90);
    (analysis.totals.reads, analysis.totals.ahead) = (analysis.totals.reads + 8, 90);
    state.falsely_shared = vec![fetched(98)];
    analysis.areas.push(state);
    let advised = |analysis: &Analysis| {
        let advice = advise(analysis).into_iter().find(|advice| advice.kind == AdviceKind::Regroup);
        advice.map(|advice| (advice.area, advice.saving.requests))
    };
    assert_eq!(advised(&analysis), Some(("state".to_owned(), 7)));
    analysis.areas[1].falsely_shared = vec![fetched(12)];
    assert_eq!(advised(&analysis), None);
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
