//! What a node knows from its start and does not change while it runs.

use crate::start::{MOST_STACK, stack_limit};
use crate::{Hooks, MappedFiles};
use gondwana_coherence::{Layout, Page};
use gondwana_control::{Boot, Consistency, FabricBoot, machine};
use gondwana_memory::{CommonSet, Geometry, ThreadMemory};
use gondwana_page::{PAGE_SIZE, to_usize};
use gondwana_topology::{Id, Machine, NodeId};

/// What a node knows from its start.
pub struct Setup {
    pub(crate) me: NodeId,
    pub(crate) boot: Boot,
    pub(crate) hooks: Hooks,
    pub(crate) geometry: Geometry,
    pub(crate) layout: Layout,
    pub(crate) thread_memory: ThreadMemory,
    pub(crate) mapped_files: MappedFiles,
    /// The common pages that the program uses.
    pub(crate) common_pages: Option<CommonSet>,
    /// Bytes of stack that a thread gets unless it asks otherwise.
    pub(crate) stack_bytes: usize,
}

impl Setup {
    /// True on the node that runs `main`.
    #[inline]
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.me == NodeId(0)
    }

    /// This node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.me
    }

    /// How many nodes the run has.
    #[must_use]
    pub fn nodes(&self) -> usize {
        usize::from(self.boot.nodes)
    }

    /// All nodes but this one.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.id();
        (0..self.nodes()).map(NodeId::from_index).filter(move |node| *node != me)
    }

    /// How many processors the whole machine has, if all nodes have as many as this one.
    #[must_use]
    pub fn processors(&self) -> u32 {
        u32::from(self.boot.nodes) * u32::from(self.boot.processors)
    }

    /// True if the program runs sequentially consistent.
    #[must_use]
    pub fn is_sequentially_consistent(&self) -> bool {
        self.boot.consistency == Consistency::Sc
    }

    /// What the program runs under.
    #[must_use]
    pub fn consistency(&self) -> Consistency {
        self.boot.consistency
    }

    /// True if some pages, or all, have an owner that keeps them for a while.
    pub(crate) fn has_owners(&self) -> bool {
        self.boot.consistency != Consistency::Rc
    }

    /// True if the program is right as it runs only because its code was searched for atomic instructions: no other code may have some.
    #[must_use]
    pub fn relies_on_search(&self) -> bool {
        match self.boot.consistency {
            Consistency::Rc => self.boot.chosen,
            Consistency::C11 => true,
            Consistency::Sc => false,
        }
    }

    /// Atomic instructions of the program, in its file's numbering, that are executed under a lock.
    #[must_use]
    pub fn locked_instructions(&self) -> &[u64] {
        &self.boot.locked
    }

    /// True if all nodes are known to be processes of one computer.
    #[must_use]
    pub fn is_on_one_computer(&self) -> bool {
        matches!(self.boot.fabric, FabricBoot::Shm { .. })
    }

    /// The other nodes that are known to be processes of this node's computer.
    pub fn neighbours(&self) -> impl Iterator<Item = NodeId> {
        let is_here = |other: &NodeId| match &self.boot.fabric {
            FabricBoot::Tcp { peers, .. } => peers[other.index()].ip() == peers[self.id().index()].ip(),
            FabricBoot::Shm { .. } => true,
        };
        self.others().filter(is_here)
    }

    /// The first node of this node's computer.
    #[must_use]
    pub fn first_on_computer(&self) -> NodeId {
        let FabricBoot::Tcp { peers, .. } = &self.boot.fabric else { return NodeId(0) };
        let own = self.id().index();
        let first = peers.iter().position(|peer| peer.ip() == peers[own].ip());
        NodeId(u16::try_from(first.unwrap_or(own)).expect("there are fewer nodes"))
    }

    /// True if the address is shared by all nodes.
    #[inline]
    #[must_use]
    pub fn is_shared(&self, address: usize) -> bool {
        self.geometry.page_of(address).is_some()
    }

    /// True if all of this memory is in common pages, which no node takes from another: the kernel can access it as the program can.
    #[must_use]
    pub fn is_in_common_pages(&self, start: usize, length: usize) -> bool {
        self.common_pages.as_ref().is_some_and(|pages| pages.holds(&self.geometry, start, length))
    }

    /// True if the address is a shared one of [`LOW`](gondwana_memory::LOW).
    #[must_use]
    pub fn is_low(&self, address: usize) -> bool {
        self.geometry.low().is_some_and(|low| low.page_of(address).is_some())
    }

    /// True if the address means the same on all nodes: it is shared, or in the memory of a thread or a mapped file.
    #[inline]
    #[must_use]
    pub fn is_common(&self, address: usize) -> bool {
        self.is_shared(address)
            || self.thread_memory.node_of(address).is_some()
            || self.mapped_files.node_of(address).is_some()
    }

    /// The shared mappings of files of all nodes.
    #[must_use]
    pub fn mapped_files(&self) -> &MappedFiles {
        &self.mapped_files
    }

    /// The memory of the threads of all nodes.
    #[must_use]
    pub fn thread_memory(&self) -> &ThreadMemory {
        &self.thread_memory
    }

    /// The node that manages the object at an address: the manager of its page.
    pub(crate) fn manager(&self, address: usize) -> NodeId {
        manager_of(&self.geometry, &self.layout, address)
    }

    /// The cluster as a machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        machine(self.boot.nodes, self.boot.processors_each, self.boot.span)
    }

    /// The number of this node.
    #[must_use]
    pub fn number(&self) -> NodeId {
        self.me
    }

    /// Bytes that the stack of `main` may grow to when the program raises its limit.
    #[must_use]
    pub fn longest_main_stack(&self) -> usize {
        // A small part of the node's part.
        let of_span = to_usize(self.boot.span / u64::from(self.boot.nodes) / 16) / PAGE_SIZE * PAGE_SIZE;
        stack_limit(|limit| limit.rlim_max).min(MOST_STACK).min(of_span).max(self.stack_bytes)
    }

    /// Bytes of stack that a thread gets unless it asks otherwise.
    #[must_use]
    pub fn default_stack(&self) -> usize {
        self.stack_bytes
    }
}

/// The manager of the page of an address; node 0 for addresses that are not shared.
pub(crate) fn manager_of(geometry: &Geometry, layout: &Layout, address: usize) -> NodeId {
    geometry.page_of(address).map_or(NodeId(0), |page| layout.manager(Page(page)))
}
