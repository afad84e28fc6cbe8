//! Tests of advice about allocation sites.

use super::*;

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
                uses(&mut analysis, page, node(first / 1000), 1, 20);
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

/// An allocation function is distinguished by its callers.
#[test]
fn allocations_of_one_call_are_told_apart_by_caller() {
    let mut analysis = empty();
    for place in 0..2 {
        let blocks = vec![pages(place * 1000..place * 1000 + 16)];
        analysis.areas.push(area("a = malloc", allocation("xmalloc+0x12", &[0]), blocks));
        let Origin::Allocation { caller, .. } = &mut analysis.areas[usize::from(node(place))].origin else {
            unreachable!()
        };
        *caller = format!("main+0x{place}f");
        (place * 1000..place * 1000 + 16).for_each(|page| uses(&mut analysis, page, 2 + node(place), 1, 20));
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
    for (place, name) in (0_u16..).zip(["a = malloc", "b = malloc"]) {
        let first = u64::from(place) * 1000;
        analysis.areas.push(area(
            name,
            allocation("xmalloc+0x12", &[0]),
            vec![pages(first..first + 16 * (u64::from(place) + 1))],
        ));
        for page in first..first + 16 {
            uses(&mut analysis, page, 2 + place, 1, 20);
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
                uses(&mut analysis, page, user(place), 1, 20 + u32::from(node(place)));
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
    assert_eq!(planned(|place| 2 + node(place)), (on(3), true, false));
    assert_eq!(planned(|_| 2), (on(2), false, true));
}
