//! Resolves the texts of the options on this computer.

use super::options::ExecOptions;
use gondwana_console::failure::Failure;
use gondwana_host::{Asked, UnmetRequest, translate};
use gondwana_launcher::names::{named_sets, parsed};
use gondwana_rset::{MemoryPolicy, RSet, Registry, ThreadPolicy};
use gondwana_topology::{Machine, NodeSet};

/// This computer, the program's set, and the requested policies.
pub(crate) struct Wanted {
    pub machine: Machine,
    pub registry: Registry,
    pub rset: RSet,
    pub asked: Asked,
}

impl ExecOptions {
    /// Resolves the texts.
    pub(crate) fn wanted(&self) -> Result<Wanted, Failure> {
        // Reading the files of caches takes most of the time, and only colours need them.
        let machine = if self.colours { gondwana_host::discover() } else { gondwana_host::discover_nodes() };
        let machine = machine.map_err(|error| Failure::cannot(error.to_string()))?;
        let registry = named_sets()?;
        let rset = match &self.rset {
            Some(text) => parsed("--rset", text, RSet::parse, &machine, &registry)?,
            None => RSet::allowed(&machine),
        };
        let (rset, remark) = with_processors(rset, &machine);
        let threads = self.threads.as_deref();
        let threads = threads.map(|text| parsed("--threads", text, ThreadPolicy::parse, &machine, &registry));
        let memory = match &self.memory {
            Some(text) => parsed("--memory", text, MemoryPolicy::parse, &machine, &registry)?,
            None => MemoryPolicy::Float,
        };
        let mut asked = translate(&machine, &rset, threads.transpose()?, memory)
            .map_err(|error| Failure::usage(error.to_string()))?;
        asked.remarks.extend(remark);
        Ok(Wanted { machine, registry, rset, asked })
    }
}

/// Threads must run somewhere: a set with memory only gets the processors nearest to its memory.
fn with_processors(rset: RSet, machine: &Machine) -> (RSet, Option<UnmetRequest>) {
    if !rset.processors().is_empty() || rset.memory().is_empty() {
        return (rset, None);
    }
    let allowed = machine.allowed_processors();
    let with_processors: NodeSet = machine.nodes_of(&allowed);
    let nearest: NodeSet =
        rset.memory().iter().filter_map(|node| machine.nearest(node, &with_processors)).collect();
    let processors = RSet::of_nodes(machine, &nearest).processors().intersection(&allowed);
    let sentence =
        format!("the resource set {rset} has no processors: threads run on {processors}, the nearest ones");
    (RSet::new(processors, *rset.memory()), Some(UnmetRequest::Other(sentence)))
}
