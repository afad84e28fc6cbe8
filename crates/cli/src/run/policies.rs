//! What the user has said about threads and memory, on the nodes of a run.

use super::options::RunOptions;
use crate::doctor::{DEFAULT_SPAN, probes};
use crate::exec::parsed;
use crate::failure::Failure;
use gondwana_node::placement::{Homes, machine};
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet, Registry, ThreadPlan, ThreadPolicy};

/// Where threads and pages go.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    /// Threads.
    pub threads: ThreadPolicy,
    /// Homes of pages.
    pub homes: Homes,
    /// How many processors each node has for those who name some.
    pub processors_each: u16,
}

impl Policies {
    /// What the options mean on the nodes of the run.
    pub fn of(options: &RunOptions) -> Result<Self, Failure> {
        let nodes = options.nodes()?;
        let share = (probes::processors() / usize::from(nodes)).clamp(1, 4096) as u16;
        let processors_each = options.processors()?.unwrap_or(share);
        let machine = machine(nodes, processors_each, options.span()?.unwrap_or(DEFAULT_SPAN));
        let (threads, memory) = (options.threads.as_str(), options.memory.as_str());
        // Whoever names no set need not have names that can be read.
        let plain = |text: &str| matches!(text, "fill" | "round-robin" | "float" | "local" | "remote");
        let names = match plain(threads) && plain(memory) {
            true => Registry::default(),
            false => crate::rset::named_sets()?,
        };
        let threads = parsed("--threads", threads, ThreadPolicy::parse, &machine, &names)?;
        let policy = parsed("--memory", memory, MemoryPolicy::parse, &machine, &names)?;
        let global = RSet::global(&machine);
        let refused =
            |option: &str, error: PlacementError| Failure::usage(format!("{option}: {error}"));
        ThreadPlan::new(threads.clone(), &global, &machine).map_err(|error| refused("--threads", error))?;
        Placement::new(policy, &global, &machine).map_err(|error| refused("--memory", error))?;
        Ok(Self { threads, homes: Homes { policy, rules: vec![] }, processors_each })
    }
}
