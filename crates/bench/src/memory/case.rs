//! What is measured: a test, where its threads are, and where its memory is.

use gondwana_topology::NodeId;
use std::fmt;

/// What the threads do to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kernel {
    /// Copy it.
    Copy,
    /// Read and add it up.
    Read,
    /// Write it.
    Write,
    /// Go from one line to the next, each of which says where the next one is.
    Chase,
}

impl Kernel {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Copy, Self::Read, Self::Write, Self::Chase];

    /// The name that the measuring program knows.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Read => "read",
            Self::Write => "write",
            Self::Chase => "chase",
        }
    }

    /// The name of the test, of which there are a form for one thread and one for several.
    pub(super) fn test(self, threads: usize) -> &'static str {
        match (self, threads) {
            (Self::Copy, 1) => "BwMemCp",
            (Self::Copy, _) => "BwMTMemCp",
            (Self::Read, 1) => "BwMemRd",
            (Self::Read, _) => "BwMTMemRd",
            (Self::Write, 1) => "BwMemWr",
            (Self::Write, _) => "BwMTMemWr",
            (Self::Chase, _) => "latency",
        }
    }

    /// How many arrays it works on.
    pub(super) fn arrays(self) -> usize {
        if self == Self::Copy { 2 } else { 1 }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MemoryCase {
    /// What is done.
    pub kernel: Kernel,
    /// By how many threads.
    pub threads: usize,
    /// The node of the threads.
    pub node: NodeId,
    /// The node of the memory.
    pub memory: NodeId,
}

impl MemoryCase {
    /// The same with memory on the node of the threads.
    pub(super) fn local(self) -> Self {
        Self { memory: self.node, ..self }
    }

    /// The same with one thread.
    pub(super) fn single(self) -> Self {
        Self { threads: 1, ..self }
    }

    /// True if the memory is on the node of the threads.
    pub(super) fn is_local(self) -> bool {
        self.memory == self.node
    }
}

impl fmt::Display for MemoryCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads =
            if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        let Self { kernel, node, memory, .. } = self;
        write!(f, "{}, {threads} on node {node}, memory on node {memory}", kernel.test(self.threads))
    }
}

/// All cases: each kernel by threads of each of `nodes`, which are given with their numbers of threads, on the memory of
/// each of `memories`. Remote memory is for one thread and for all; local memory also for the powers of 2 between them,
/// which show how a node scales. Latency is measured by one thread.
pub(super) fn all(nodes: &[(NodeId, usize)], memories: &[NodeId]) -> Vec<MemoryCase> {
    let mut cases = vec![];
    for &(node, most) in nodes {
        for kernel in Kernel::ALL {
            let most = if kernel == Kernel::Chase { 1 } else { most };
            let powers = std::iter::successors(Some(1), |threads| Some(2 * threads));
            for threads in powers.take_while(|&threads| threads < most).chain([most]) {
                let case = |memory| MemoryCase { kernel, threads, node, memory };
                let wanted = |case: &MemoryCase| case.is_local() || threads == 1 || threads == most;
                cases.extend(memories.iter().copied().map(case).filter(wanted));
            }
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(most: usize) -> Vec<(&'static str, usize, u16)> {
        let (here, there) = (NodeId(1), NodeId(3));
        let cases = all(&[(here, most)], &[here, there]);
        cases.iter().map(|case| (case.kernel.test(case.threads), case.threads, case.memory.0)).collect()
    }

    #[test]
    fn local_memory_is_for_all_numbers_of_threads_and_remote_memory_for_the_least_and_the_most() {
        let copies: Vec<_> = listed(6).into_iter().filter(|(test, ..)| test.ends_with("MemCp")).collect();
        let many = "BwMTMemCp";
        let expected =
            [("BwMemCp", 1, 1), ("BwMemCp", 1, 3), (many, 2, 1), (many, 4, 1), (many, 6, 1), (many, 6, 3)];
        assert_eq!(copies, expected);
    }

    #[test]
    fn one_processor_has_no_multi_threaded_form_and_latency_never_has() {
        assert_eq!(listed(1).len(), 4 * 2);
        assert_eq!(listed(8).iter().filter(|(test, ..)| *test == "latency").count(), 2);
        assert_eq!(
            all(&[(NodeId(2), 1)], &[NodeId(0)])[0].to_string(),
            "BwMemCp, 1 thread on node 2, memory on node 0"
        );
    }
}
