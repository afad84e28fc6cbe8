//! Tests of whole plans.

use super::*;

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
fn a_plan_says_what_was_and_what_is_expected() {
    let analysis = striped_by_chance(128, |page| node(page / 32));
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
