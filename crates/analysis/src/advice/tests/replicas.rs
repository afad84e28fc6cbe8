//! Tests of advice about replicas.

use super::*;

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
