//! The machine and its parts.

use crate::cache::Cache;
use crate::colour::Colours;
use crate::counters::Counters;
use crate::description::{ControllerPart, Description};
use crate::directory_cache::DirectoryCache;
use crate::far::FarCache;
use crate::l1::L1;
use crate::lines::Lines;
use crate::network::Network;
use crate::placed::Placed;
use crate::port::Port;
use crate::replication::Replication;
use crate::resource::Resource;
use crate::sharing::Sharing;
use crate::tlb::Tlb;
use crate::transaction::Scratch;
use crate::watch::Watch;
use crate::{NANOSECOND, Time};
use gondwana_coherence::directory::{Hops, Node};
use gondwana_rset::{MemoryPolicy, Placement, RSet};
use gondwana_topology::{NodeId, ProcessorId};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A load.
    Read,
    /// A store, or an atomic read-modify-write.
    Write,
}

/// The times of a machine in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub l2: Time,
    pub bus: Time,
    pub bus_busy: Time,
    pub cache_supply: Time,
    pub memory: Time,
    pub memory_busy: Time,
    pub request: Time,
    pub home: Time,
    pub slave: Time,
    pub reply: Time,
    pub controller_busy: Time,
    pub intervention: Time,
    pub far: Time,
    pub far_busy: Time,
}

/// One node's shared parts.
#[derive(Clone, Debug)]
pub(crate) struct NodeParts {
    pub bus: Resource,
    pub banks: Vec<Resource>,
    pub controller: Resource,
    pub directory: Option<DirectoryCache>,
    pub far: Option<FarCache>,
}

/// A simulated machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) times: Times,
    pub(crate) hops: Hops,
    /// By processor.
    pub(crate) ports: Vec<Port>,
    /// None in a machine without translation buffers.
    pub(crate) tlbs: Vec<Tlb>,
    pub(crate) l2: Vec<Cache>,
    pub(crate) counters: Vec<Counters>,
    pub(crate) node_of: Vec<Node>,
    /// By node: its processors.
    pub(crate) members: Vec<u128>,
    pub(crate) nodes: Vec<NodeParts>,
    pub(crate) network: Option<Network>,
    pub(crate) lines: Lines,
    pub(crate) placement: Placement,
    /// Memory that is not placed by the policy for all.
    pub(crate) placed: Placed,
    pub(crate) scratch: Scratch,
    pub(crate) sharing: Sharing,
    /// None on a machine without migration and replication of pages.
    pub(crate) replication: Option<Box<Replication>>,
    /// None if no monitor wants to know.
    pub(crate) watch: Option<Box<Watch>>,
    /// Binary logarithms of the lines' bytes in both caches.
    pub(crate) l1_shift: u32,
    pub(crate) line_shift: u32,
    /// Bytes in a block, the unit of the directory, and the binary logarithm of the second caches' lines in it.
    pub(crate) block_bytes: u64,
    pub(crate) block_shift: u32,
    quantum: Time,
    cycle: Time,
}

impl Machine {
    /// A machine with empty caches, no page of which has been touched.
    ///
    /// # Panics
    /// If the description is not one that [`Description::parse`] accepts.
    #[must_use]
    pub fn new(description: &Description) -> Self {
        let topology = description.topology();
        let count = topology.processors().len();
        let node_count = topology.node_ids().len();
        let cycle = 1_000_000 / description.processor.mhz;
        let step = cycle * description.processor.cycles_per_access;
        let (l1, l2) = (&description.l1, &description.l2);
        let pages = description.memory.page_size;
        let tlb = description.tlb.as_ref().filter(|part| part.entries > 0);
        let tlb = tlb.map(|part| Tlb::new(part, part.page_size.unwrap_or(pages).0));
        let first = L1::new(l1.size.0, l1.line, l1.ways, l2.line);
        let policy =
            description.check_placement(&description.memory.placement).expect("machines are checked");
        // A system without a policy gives memory where it is asked for.
        let policy = if policy == MemoryPolicy::Float { MemoryPolicy::Local } else { policy };
        let placement =
            Placement::new(policy, &RSet::global(&topology), &topology).expect("machines are checked");
        let node_of: Vec<Node> = (0..count)
            .map(|number| {
                let processor = ProcessorId(u16::try_from(number).expect("machines are checked"));
                let node = topology.node_of(processor).expect("each processor is in a node");
                Node::try_from(node.0).expect("machines are checked")
            })
            .collect();
        let mut members = vec![0; node_count];
        for (processor, node) in node_of.iter().enumerate() {
            members[usize::from(*node)] |= 1 << processor;
        }
        let far = description.far_cache.as_ref().filter(|part| part.size.0 > 0 && node_count > 1);
        let block_bytes = far.map_or(l2.line, |part| part.line);
        let banks = usize::try_from(description.memory.banks).expect("machines are checked");
        let node = NodeParts {
            bus: Resource::default(),
            banks: vec![Resource::default(); banks],
            controller: Resource::default(),
            directory: description.directory_cache.as_ref().and_then(DirectoryCache::new),
            far: far.map(FarCache::new),
        };
        let network = description.network.as_ref().filter(|_| node_count > 1);
        let network = network.map(|part| Network::new(part, node_count));
        let replication = description.replication.as_ref();
        let replication = replication.filter(|part| part.period > 0 && node_count > 1);
        let times = Times::new(description);
        let hops = description.controller.as_ref().map_or(Hops::Three, ControllerPart::way);
        let colours = (l2.size.0 / l2.ways / pages.0).max(1);
        let colours = Colours::new(description.memory.colouring, colours, node_count);
        Self {
            times,
            hops,
            ports: vec![Port::new(first, step); count],
            tlbs: tlb.map_or_else(Vec::new, |tlb| vec![tlb; count]),
            l2: vec![Cache::new(l2.size.0, l2.line, l2.ways); count],
            counters: vec![Counters::default(); count],
            node_of,
            members,
            nodes: vec![node; node_count],
            lines: Lines::new(pages.0 / l2.line, block_bytes / l2.line, colours),
            placement,
            placed: Placed::new(pages.0),
            scratch: Scratch::default(),
            sharing: Sharing::default(),
            replication: replication
                .map(|part| Box::new(Replication::new(part, node_count, pages.0, pages.0 / block_bytes))),
            watch: None,
            l1_shift: l1.line.trailing_zeros(),
            line_shift: l2.line.trailing_zeros(),
            block_bytes,
            block_shift: (block_bytes / l2.line).trailing_zeros(),
            quantum: network.as_ref().map_or(times.bus, Network::least).max(step),
            network,
            cycle,
        }
    }

    /// How many processors it has.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.ports.len()
    }

    /// How many nodes it has.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a processor.
    #[must_use]
    pub fn node_of(&self, processor: usize) -> Node {
        self.node_of[processor]
    }

    /// The fast path of a processor.
    #[inline]
    pub fn port(&mut self, processor: usize) -> &mut Port {
        &mut self.ports[processor]
    }

    /// The time of a processor.
    #[inline]
    #[must_use]
    pub fn now(&self, processor: usize) -> Time {
        self.ports[processor].now()
    }

    /// How far a processor may run ahead of the others: the latency of the network, so that what it does cannot have
    /// been seen by other nodes; in a machine of one node, that of the bus.
    #[inline]
    #[must_use]
    pub fn quantum(&self) -> Time {
        self.quantum
    }

    /// The length of a processor's cycle.
    #[must_use]
    pub fn cycle(&self) -> Time {
        self.cycle
    }

    /// Where a page is that `node` touches first.
    pub(crate) fn place(placement: &Placement, placed: &Placed, page: u64, node: Node) -> Node {
        if let Some(home) = placed.home(page, node) {
            return home;
        }
        let at = placement.node_of(page, u64::MAX, NodeId(u16::from(node)));
        at.map_or(node, |at| Node::try_from(at.0).expect("machines are checked"))
    }
}

impl Times {
    fn new(description: &Description) -> Self {
        let ns = |time: u64| time * NANOSECOND;
        let bus = &description.bus;
        let controller = description.controller.as_ref();
        let far = description.far_cache.as_ref();
        let part = |get: fn(&ControllerPart) -> u64| ns(controller.map_or(0, get));
        Self {
            l2: ns(description.l2.latency),
            bus: ns(bus.latency),
            bus_busy: ns(bus.occupancy),
            cache_supply: ns(bus.cache_supply),
            memory: ns(description.memory.latency),
            memory_busy: ns(description.memory.occupancy),
            request: part(|c| c.request),
            home: part(|c| c.home),
            slave: part(|c| c.slave),
            reply: part(|c| c.reply),
            controller_busy: part(|c| c.occupancy),
            intervention: ns(controller.and_then(|c| c.intervention).unwrap_or(bus.cache_supply)),
            far: ns(far.map_or(0, |part| part.latency)),
            far_busy: ns(far.map_or(0, |part| part.occupancy)),
        }
    }
}
