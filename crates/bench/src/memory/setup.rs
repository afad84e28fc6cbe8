//! What is to be measured on which machine: this computer, or a cluster of nodes on it.

use super::case::{self, MemoryCase};
use super::options::MemoryOptions;
use gondwana_console::failure::Failure;
use gondwana_memory::PAGE_SIZE;
use gondwana_rset::{RSet, ThreadPlan, ThreadPolicy};
use gondwana_topology::{
    Bytes, Cache, CacheKind, MAX_NODES, Machine, NodeId, NodeSet, ProcessorId, ProcessorSet,
};

/// A working set is so many times as large as the caches in front of it, which then hold little of it.
const TIMES_CACHE: u64 = 4;

/// Working sets that nobody has chosen are between these: the one will do where caches are unknown, the other takes some
/// seconds a case.
const USUAL: (u64, u64) = (64 << 20, 1 << 30);

/// How many nodes a cluster has if nobody says it.
const USUAL_NODES: u16 = 2;

/// A machine, its nodes that are measured, and how large the working set is.
#[derive(Debug)]
pub(super) struct MemorySetup {
    /// This computer.
    pub machine: Machine,
    /// The number of nodes if a cluster is measured; otherwise nodes are the computer's own.
    pub cluster: Option<u16>,
    /// The nodes that threads run on, with the greatest number of threads on each.
    threads: Vec<(NodeId, usize)>,
    /// The nodes that memory is on.
    memories: Vec<NodeId>,
    /// The working set.
    pub size: Bytes,
}

impl MemorySetup {
    /// Finds out what the options mean for a computer.
    pub(super) fn new(options: &MemoryOptions, machine: Machine) -> Result<Self, Failure> {
        let mut this = Self { machine, cluster: None, threads: vec![], memories: vec![], size: Bytes(0) };
        if options.cluster {
            this.choose_cluster(options)?;
        } else {
            this.choose_nodes(options)?;
        }
        this.size = this.choose_size(options.size)?;
        Ok(this)
    }

    /// What is measured, in words.
    pub(super) fn title(&self) -> String {
        let nodes = match (self.cluster, self.memories.len()) {
            (Some(nodes), _) => format!("{nodes} nodes of a run"),
            (None, 1) => "1 node of this computer".to_owned(),
            (None, nodes) => format!("{nodes} nodes of this computer"),
        };
        format!("Memory of {nodes}, {} to work on", self.size)
    }

    /// Everything that is to be measured.
    pub(super) fn cases(&self) -> Vec<MemoryCase> {
        case::all(&self.threads, &self.memories)
    }

    /// How many pages each of so many threads works on.
    pub(super) fn pages_each(&self, threads: usize) -> u64 {
        self.size.0 / PAGE_SIZE as u64 / threads as u64
    }

    /// The processors of a node of this computer for its first threads: one of each core before the second of any.
    pub(super) fn processors(&self, node: NodeId, threads: usize) -> Result<Vec<ProcessorId>, Failure> {
        let rset = RSet::new(self.processors_of(node), NodeSet::EMPTY);
        let plan = ThreadPlan::new(ThreadPolicy::Fill, &rset, &self.machine);
        let plan = plan.map_err(|error| Failure::cannot(error.to_string()))?;
        Ok((0..threads).map(|thread| plan.place_of(thread).processor).collect())
    }

    fn processors_of(&self, node: NodeId) -> ProcessorSet {
        let all = self.machine.node(node).map(|node| node.processors).unwrap_or_default();
        all.intersection(&self.machine.allowed_processors())
    }

    fn choose_cluster(&mut self, options: &MemoryOptions) -> Result<(), Failure> {
        let nodes = match options.nodes.as_deref() {
            None => USUAL_NODES,
            Some(text) => {
                let fits = |&number: &u16| (2..=MAX_NODES).contains(&usize::from(number));
                let number = text.parse().ok().filter(fits);
                number.ok_or_else(|| {
                    Failure::usage(format!("--nodes: '{text}' is no number of nodes from 2 to {MAX_NODES}"))
                })?
            }
        };
        let share = self.machine.allowed_processors().len() / usize::from(nodes);
        let threads = options.threads.map_or(share.max(1), usize::from);
        self.cluster = Some(nodes);
        self.threads = (0..nodes).map(|node| (NodeId(node), threads)).collect();
        self.memories = (0..nodes).map(NodeId).collect();
        Ok(())
    }

    fn choose_nodes(&mut self, options: &MemoryOptions) -> Result<(), Failure> {
        let all = self.machine.node_ids();
        let nodes = match options.nodes.as_deref() {
            None => all,
            Some(text) => text.parse().map_err(|error| Failure::usage(format!("--nodes: {error}")))?,
        };
        let missing = nodes.difference(&all);
        if !missing.is_empty() {
            return Err(Failure::usage(format!(
                "--nodes: this computer has no node {missing} (it has {all})"
            )));
        }
        let processors = nodes.iter().map(|node| (node, self.processors_of(node).len()));
        self.threads = processors.filter(|&(_, processors)| processors > 0).collect();
        self.memories = self.machine.allowed_memory_nodes().intersection(&nodes).iter().collect();
        if self.threads.is_empty() || self.memories.is_empty() {
            let what = if self.threads.is_empty() { "processors" } else { "memory" };
            return Err(Failure::usage(format!("--nodes: this process may use no {what} of node {nodes}")));
        }
        if let Some(asked) = options.threads.map(usize::from) {
            let most = self.threads.iter().map(|(_, processors)| *processors).max().unwrap_or(0);
            if asked > most {
                return Err(Failure::usage(format!(
                    "--threads: each thread has a processor for itself, and no node has more than {most}, so {asked} \
                     are too many"
                )));
            }
            self.threads.iter_mut().for_each(|(_, threads)| *threads = asked.min(*threads));
        }
        Ok(())
    }

    fn choose_size(&self, asked: Option<Bytes>) -> Result<Bytes, Failure> {
        let room = self.room();
        let Some(asked) = asked else {
            let wanted = (TIMES_CACHE * self.largest_caches()).clamp(USUAL.0, USUAL.1);
            // Half of the room: others live there too.
            return Ok(Bytes(wanted.min(room / 2)));
        };
        let threads = self.threads.iter().map(|(_, threads)| *threads).max().unwrap_or(1);
        let least = Bytes((PAGE_SIZE * threads) as u64);
        if asked < least {
            return Err(Failure::usage(format!(
                "--size: {asked} is too little: a page for each thread takes {least}"
            )));
        }
        if asked.0 > room {
            return Err(Failure::usage(format!(
                "--size: {asked} is too much: {} fit in the memory that is measured, where copies take twice as much",
                Bytes(room >> 20 << 20)
            )));
        }
        Ok(asked)
    }

    /// The largest working set for which there is memory at all.
    fn room(&self) -> u64 {
        let total = |node| self.machine.node(node).map_or(0, |node| node.memory.total.0);
        if self.cluster.is_some() {
            // Copies between two nodes: an array and another, at home and where they are used.
            return self.machine.memory_nodes().iter().map(total).sum::<u64>() / 4;
        }
        self.memories.iter().map(|&node| total(node)).min().unwrap_or(0) / 2
    }

    /// The greatest sum of the last caches in front of a node's memory.
    fn largest_caches(&self) -> u64 {
        let data = |cache: &&Cache| cache.kind != CacheKind::Instruction;
        let last = self.machine.caches.iter().filter(data).map(|cache| cache.level).max();
        let last = |cache: &&Cache| Some(cache.level) == last;
        let sum = |processors: ProcessorSet| -> u64 {
            let caches = self.machine.caches.iter().filter(last);
            caches.filter(|cache| cache.processors.intersects(&processors)).map(|cache| cache.size.0).sum()
        };
        if self.cluster.is_some() {
            return sum(self.machine.processors());
        }
        self.threads.iter().map(|&(node, _)| sum(self.processors_of(node))).max().unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
