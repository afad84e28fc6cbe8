//! The plan of a simulated run: what its names mean in the program, as for a run on nodes.

use super::SimOptions;
use gondwana_console::failure::Failure;
use gondwana_console::output::tell;
use gondwana_control::{PlacementRule, ThreadGroup};
use gondwana_launcher::run::plan;
use gondwana_rset::Registry;
use gondwana_sim::Description;
use std::path::Path;

/// What the program is told of a plan.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// About memory.
    pub rules: Vec<PlacementRule>,
    /// About threads.
    pub groups: Vec<ThreadGroup>,
}

/// Resolves the plan, if there is one, for a program on a machine; prints what cannot be resolved.
pub(super) fn resolve(
    options: &SimOptions,
    machine: &Description,
    program: &Path,
) -> Result<Placed, Failure> {
    let Some(path) = &options.plan else { return Ok(Placed::default()) };
    let read = plan::read(path, &machine.topology(), &Registry::default())?;
    let (rules, missing) = plan::resolve(&read, path, program);
    for sentence in &missing {
        tell(sentence);
    }
    if rules.iter().any(|rule| rule.replicate) {
        tell(&format!(
            "{}: replicate does nothing: no page is replicated on a simulated machine",
            path.display()
        ));
    }
    Ok(Placed { rules, groups: plan::groups(&read) })
}
