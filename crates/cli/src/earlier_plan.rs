//! The plan that a recorded run was under.

use gondwana_plan::Plan;
use gondwana_recording::RunRecord;
use gondwana_rset::Registry;
use std::path::Path;

/// The plan of the recorded run; an empty one if there was none, or, with a message, if it cannot be read any more.
pub(crate) fn of(run: &RunRecord, say: &mut dyn FnMut(&str)) -> Plan {
    if run.plan.is_empty() {
        return Plan::default();
    }
    let machine = gondwana_control::machine(run.nodes.max(1), 1, 1 << 40);
    let path = Path::new(&run.plan);
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let names = gondwana_launcher::names::named_sets().unwrap_or_else(|_| Registry::default());
    let plan = read.and_then(|text| Plan::parse(&text, &machine, &names).map_err(|error| error.to_string()));
    plan.unwrap_or_else(|error| {
        say(&format!("the run was under the plan {}, which is not kept: {error}", run.plan));
        Plan::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_is_gone_is_said_to_be() {
        let mut said = vec![];
        let run = RunRecord { plan: "/nonexistent/plan.toml".to_owned(), nodes: 2, ..RunRecord::default() };
        assert_eq!(of(&run, &mut |line| said.push(line.to_owned())), Plan::default());
        assert!(said.len() == 1 && said[0].contains("/nonexistent/plan.toml"), "{said:?}");
        of(&RunRecord::default(), &mut |line| panic!("{line}"));
    }
}
