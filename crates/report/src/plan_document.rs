//! A plan with the advice behind it, as a file and as JSON.

use crate::advice;
use gondwana_analysis::{Advice, Analysis};
use gondwana_plan::Plan;
use serde_json::{Value, json};

/// The version of the JSON: one more whenever a name or a meaning changes.
const VERSION: u32 = 1;

/// The plan as a file, with the advice as comments in front.
pub fn document(analysis: &Analysis, advice: &[Advice], plan: &Plan) -> String {
    let comment = |line: &str| format!("# {line}").trim_end().to_owned() + "\n";
    let advice: String = advice::text(analysis, advice).lines().map(comment).collect();
    format!("{advice}\n{}", plan.to_toml())
}

/// Advice and plan for programs.
pub fn to_json(analysis: &Analysis, advice: &[Advice], plan: &Plan) -> Value {
    json!({
        "version": VERSION,
        "command": analysis.run.command,
        "nodes": analysis.run.nodes,
        "before": plan.before,
        "expected": plan.expected,
        "advice": advice,
        "plan": plan.to_toml(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::{Bytes, Machine};

    #[test]
    fn the_document_is_a_plan() {
        let (analysis, advice) = crate::sample::sample();
        let plan = gondwana_analysis::plan(&analysis, &advice);
        let document = document(&analysis, &advice, &plan);
        assert!(document.starts_with("# "), "{document}");
        let machine = Machine::uniform(2, 1, Bytes(1 << 30));
        let read = Plan::parse(&document, &machine, &gondwana_rset::Registry::default()).unwrap();
        assert_eq!((read.variables[0].name.as_str(), read.before), ("grid", plan.before));
        let json = to_json(&analysis, &advice, &plan);
        assert_eq!((&json["version"], &json["advice"][0]["kind"]), (&json!(1), &json!("block")));
    }
}
