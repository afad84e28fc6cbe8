//! Policies for a whole program: the binding of each of its threads.

use crate::binding::{Binding, Malformed};
use crate::sys::Policy;
use crate::unmet_request::UnmetRequest;
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet, ThreadPlan, ThreadPolicy};
use gondwana_topology::{Machine, NodeId, NodeSet, ProcessorSet};
use std::fmt;
use std::str::FromStr;

/// The environment variable with the bindings of a program's threads.
pub const THREADS_VARIABLE: &str = "GONDWANA_THREADS";

/// The bindings of a program's threads: the first for the first thread, and so on, cyclically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// How many threads in a row have each binding.
    bindings: Vec<(Binding, usize)>,
}

/// A request, translated for the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// For the process as a whole: all its threads are inside.
    pub process: Binding,
    /// For each of its threads, if that is more exact.
    pub threads: Option<Threads>,
    /// The memory policy, if it is finer than the kernel's policies for whole programs. It applies to regions of
    /// memory ([`crate::place_untouched`]) only; the bindings approximate it for the rest.
    pub regions: Option<MemoryPolicy>,
    /// Requests without a counterpart in the kernel.
    pub remarks: Vec<UnmetRequest>,
}

/// Translates a request for threads and memory to bindings of the kernel.
pub fn translate(
    machine: &Machine,
    rset: &RSet,
    threads: Option<ThreadPolicy>,
    memory: MemoryPolicy,
) -> Result<Asked, PlacementError> {
    let placement = Placement::new(memory, rset, machine)?;
    // A program without a policy for its threads is anywhere in the set.
    let plan = ThreadPlan::new(threads.clone().unwrap_or_default(), rset, machine)?;
    let process = Binding {
        processors: *rset.processors(),
        policy: policy(machine, &placement, machine.nodes_of(rset.processors()).iter()),
    };
    let threads = threads.map(|threads| Threads::new(machine, rset, &plan, &threads, &placement));
    let is_on_several = placement.nodes().len() > 1;
    let regions = match memory {
        MemoryPolicy::Striped(stride) if stride.get() > 1 => Some(memory),
        MemoryPolicy::Block => Some(memory),
        _ => None,
    };
    let nodes_of_threads = machine.nodes_of(rset.processors()).len();
    let depends = memory == MemoryPolicy::Remote && is_on_several && nodes_of_threads > 1;
    let remarks = depends.then(|| UnmetRequest::Other(REMOTE_FOR_SOME.to_owned()));
    let regions = regions.filter(|_| is_on_several);
    Ok(Asked { process, threads, regions, remarks: remarks.into_iter().collect() })
}

/// The kernel's policy for threads that run on these nodes.
fn policy(machine: &Machine, placement: &Placement, at: impl Iterator<Item = NodeId>) -> Policy {
    let nodes: NodeSet = placement.nodes().iter().copied().collect();
    let everywhere = nodes.contains_all(&machine.memory_nodes());
    match placement.policy() {
        MemoryPolicy::Float | MemoryPolicy::Block if everywhere => Policy::Default,
        MemoryPolicy::Local if everywhere => Policy::Local,
        MemoryPolicy::Striped(_) => Policy::Interleave(nodes),
        MemoryPolicy::Remote => Policy::Bind(at.filter_map(|at| placement.node_of(0, 1, at)).collect()),
        // Of the bound nodes, the kernel takes the nearest one with free memory.
        _ => Policy::Bind(nodes),
    }
}

const REMOTE_FOR_SOME: &str = "memory is remote for threads with a policy of their own (--threads) only: for others it \
     is from any of the nodes that are remote for some";

impl Threads {
    fn new(
        machine: &Machine,
        rset: &RSet,
        plan: &ThreadPlan,
        policy_of_threads: &ThreadPolicy,
        placement: &Placement,
    ) -> Self {
        let binding = |processors: ProcessorSet| Binding {
            processors,
            policy: policy(machine, placement, machine.nodes_of(&processors).iter()),
        };
        if let ThreadPolicy::Explicit(sets) = policy_of_threads {
            return Self { bindings: sets.iter().map(|set| (binding(*set.processors()), 1)).collect() };
        }
        // Threads are bound to the processors of a node: the kernel balances between them.
        let mut bindings: Vec<(Binding, usize)> = vec![];
        let mut nodes: Vec<NodeId> =
            (0..plan.processors()).map(|thread| plan.place_of(thread).node).collect();
        if *policy_of_threads == ThreadPolicy::RoundRobin {
            nodes.truncate(machine.nodes_of(rset.processors()).len());
        }
        for node in nodes {
            let there = machine.node(node).map(|node| node.processors).unwrap_or_default();
            let binding = binding(there.intersection(rset.processors()));
            match bindings.last_mut().filter(|(last, _)| *last == binding) {
                Some((_, count)) => *count += 1,
                None => bindings.push((binding, 1)),
            }
        }
        Self { bindings }
    }

    /// The same threads with other bindings.
    #[must_use]
    pub fn map(&self, other: impl Fn(&Binding) -> Binding) -> Self {
        Self { bindings: self.bindings.iter().map(|(binding, count)| (other(binding), *count)).collect() }
    }

    /// The bindings that differ from those before them.
    pub fn bindings(&self) -> impl Iterator<Item = Binding> + '_ {
        self.bindings.iter().map(|(binding, _)| *binding)
    }

    /// The binding of a thread, counted from 0 in the order in which threads are made.
    #[must_use]
    pub fn of(&self, thread: usize) -> Binding {
        let all = self.bindings.iter().map(|(_, count)| count).sum::<usize>();
        let mut rest = thread % all;
        for (binding, count) in &self.bindings {
            match rest.checked_sub(*count) {
                None => return *binding,
                Some(less) => rest = less,
            }
        }
        unreachable!("the number is less than the sum")
    }
}

/// The text form for other processes: `0-3/bind:0*4;4-7/bind:1*4`.
impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (binding, count)) in self.bindings.iter().enumerate() {
            write!(f, "{}{binding}*{count}", if index == 0 { "" } else { ";" })?;
        }
        Ok(())
    }
}

impl FromStr for Threads {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let binding = |part: &str| {
            let (binding, count) = part.split_once('*').ok_or(Malformed)?;
            let count = count.parse().ok().filter(|&count| (1..1 << 20).contains(&count)).ok_or(Malformed)?;
            Ok((binding.parse()?, count))
        };
        Ok(Self { bindings: text.split(';').map(binding).collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_rset::Registry;
    use gondwana_topology::Bytes;

    fn asked(rset: &str, threads: Option<&str>, memory: &str) -> (String, String, usize) {
        let (machine, registry) = (Machine::uniform(4, 2, Bytes(1 << 30)), Registry::default());
        let rset = RSet::parse(rset, &machine, &registry).unwrap();
        let threads = threads.map(|text| ThreadPolicy::parse(text, &machine, &registry).unwrap());
        let memory = MemoryPolicy::parse(memory, &machine, &registry).unwrap();
        let asked = translate(&machine, &rset, threads, memory).unwrap();
        let threads = asked.threads.map(|threads| threads.to_string()).unwrap_or_default();
        (asked.process.to_string(), threads, asked.remarks.len() + usize::from(asked.regions.is_some()))
    }

    #[test]
    fn memory_policies_are_those_of_the_kernel() {
        for (rset, memory, expected, remarks) in [
            ("all", "float", "0-7/default", 0),
            ("node:0-1", "float", "0-3/bind:0-1", 0),
            ("all", "local", "0-7/local", 0),
            ("node:2", "local", "4-5/bind:2", 0),
            ("cpu:0|mem:2-3", "remote", "0/bind:2", 0),
            ("all", "striped", "0-7/interleave:0-3", 0),
            ("node:1-2", "striped:4", "2-5/interleave:1-2", 1),
            ("node:1", "striped:4", "2-3/interleave:1", 0),
            ("node:0-1", "block", "0-3/bind:0-1", 1),
            ("all", "mem:3", "0-7/bind:3", 0),
        ] {
            assert_eq!(
                asked(rset, None, memory),
                (expected.to_owned(), String::new(), remarks),
                "{rset} {memory}"
            );
        }
    }

    #[test]
    fn threads_have_bindings_of_their_own() {
        let (_, fill, _) = asked("node:0-1", Some("fill"), "local");
        assert_eq!(fill, "0-1/bind:0-1*2;2-3/bind:0-1*2");
        let (_, in_turn, _) = asked("all", Some("round-robin"), "remote");
        assert_eq!(in_turn, "0-1/bind:1*1;2-3/bind:2*1;4-5/bind:3*1;6-7/bind:0*1");
        let (_, explicit, _) = asked("all", Some("proc:3;node:0"), "float");
        assert_eq!(explicit, "3/default*1;0-1/default*1");
    }

    #[test]
    fn each_thread_finds_its_binding_in_the_text() {
        let threads: Threads = "0-1/local*2;2-3/bind:1*1".parse().unwrap();
        let found: Vec<String> = (0..5).map(|thread| threads.of(thread).processors.to_string()).collect();
        assert_eq!(found, ["0-1", "0-1", "2-3", "0-1", "0-1"]);
        for text in ["", "0/local", "0/local*0", "0/local*99999999999", "0/local*1;"] {
            assert_eq!(text.parse::<Threads>(), Err(Malformed), "{text}");
        }
    }
}
