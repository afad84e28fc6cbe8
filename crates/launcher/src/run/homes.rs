//! Compares requested homes with actual homes.

use serde_json::Value;

/// Each node reports how many pages it requested on each node; moves these numbers to the requested node, beside the
/// pages found there.
pub(crate) fn by_node(mut nodes: Vec<Option<Value>>) -> Vec<Option<Value>> {
    let mut asked = vec![0u64; nodes.len()];
    let mut any = false;
    for report in nodes.iter_mut().flatten() {
        let Some(homes) = report.get_mut("homes").and_then(Value::as_object_mut) else { continue };
        let Some(of) = homes.remove("asked_of") else { continue };
        any = true;
        for (sum, pages) in asked.iter_mut().zip(of.as_array().into_iter().flatten()) {
            *sum += pages.as_u64().unwrap_or(0);
        }
    }
    if any {
        for (report, pages) in nodes.iter_mut().zip(asked) {
            if let Some(report) = report {
                report["homes"]["asked"] = pages.into();
            }
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_asked_for_stands_with_the_node_that_was_asked_for() {
        let report =
            |asked: [u64; 2], found: u64| Some(json!({"homes": {"asked_of": asked, "found": found}}));
        let nodes = by_node(vec![report([3, 5], 4), report([10, 0], 5)]);
        assert_eq!(nodes[0], Some(json!({"homes": {"asked": 13, "found": 4}})));
        assert_eq!(nodes[1], Some(json!({"homes": {"asked": 5, "found": 5}})));
    }

    #[test]
    fn runs_without_policies_report_nothing_about_them() {
        let nodes = vec![Some(json!({"faults": 1})), None];
        assert_eq!(by_node(nodes.clone()), nodes);
    }
}
