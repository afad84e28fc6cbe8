//! The plan that the recorded run was under: what it has saved must not be lost.

use gondwana_plan::{Allocation, Plan, Variable};
use gondwana_recording::Run;
use gondwana_rset::Registry;
use std::path::Path;

/// A new plan, with what the plan of the recorded run says about other memory and threads.
pub fn kept(new: Plan, run: &Run, say: &mut dyn FnMut(&str)) -> Plan {
    if run.plan.is_empty() {
        return new;
    }
    let machine = gondwana_node::placement::machine(run.nodes.max(1), 1, 1 << 40);
    let path = Path::new(&run.plan);
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let names = crate::rset::named_sets().unwrap_or_else(|_| Registry::default());
    match read.and_then(|text| Plan::parse(&text, &machine, &names).map_err(|error| error.to_string())) {
        Ok(earlier) => joined(new, earlier),
        Err(error) => {
            say(&format!("the run was under the plan {}, which is not kept: {error}", run.plan));
            new
        }
    }
}

/// Entries of the earlier plan about what the new one says nothing about come behind those of the new one.
fn joined(mut new: Plan, earlier: Plan) -> Plan {
    let variable = |entry: &Variable| (entry.name.clone(), entry.library.clone());
    let allocation = |entry: &Allocation| {
        let Allocation { site, caller, library, min_bytes, max_bytes, .. } = entry.clone();
        (site, caller, library, min_bytes, max_bytes)
    };
    let known: Vec<_> = new.variables.iter().map(variable).collect();
    new.variables.extend(earlier.variables.into_iter().filter(|entry| !known.contains(&variable(entry))));
    let known: Vec<_> = new.allocations.iter().map(allocation).collect();
    new.allocations
        .extend(earlier.allocations.into_iter().filter(|entry| !known.contains(&allocation(entry))));
    // New groups are about all threads.
    if new.threads.is_empty() {
        new.threads = earlier.threads;
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let machine = gondwana_node::placement::machine(2, 1, 1 << 30);
        Plan::parse(&format!("version = 1\n{text}"), &machine, &Registry::default()).unwrap()
    }

    #[test]
    fn new_entries_take_the_place_of_earlier_ones() {
        let entry =
            |name: &str, policy: &str| format!("[[variable]]\nname = \"{name}\"\npolicy = \"{policy}\"\n");
        let threads = "[[thread]]\nthreads = [1]\nnode = 1\n";
        let earlier = plan(&(entry("a", "block") + &entry("b", "local") + threads));
        let both = joined(plan(&entry("b", "block")), earlier.clone());
        let names: Vec<_> = both.variables.iter().map(|it| (it.name.as_str(), it.homes.clone())).collect();
        let block = plan(&entry("b", "block")).variables[0].homes.clone();
        assert_eq!(names, [("b", block.clone()), ("a", block)]);
        assert_eq!(both.threads, earlier.threads);
    }

    #[test]
    fn a_plan_that_is_gone_is_said_to_be() {
        let mut said = vec![];
        let run = Run { plan: "/nonexistent/plan.toml".to_owned(), nodes: 2, ..Run::default() };
        let new = kept(Plan::default(), &run, &mut |line| said.push(line.to_owned()));
        assert_eq!(new, Plan::default());
        assert!(said.len() == 1 && said[0].contains("/nonexistent/plan.toml"), "{said:?}");
        kept(Plan::default(), &Run::default(), &mut |line| panic!("{line}"));
    }
}
