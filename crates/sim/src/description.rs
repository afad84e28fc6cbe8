//! Machines as files (TOML).

use crate::directory_cache::DirectoryCachePart;
use crate::system_parts::{ReplicationPart, SchedulerPart};
use crate::{MAX_NODES, MAX_PROCESSORS};
use gondwana_coherence::directory::Hops;
use gondwana_rset::{MemoryPolicy, Registry};
use gondwana_topology::{Bytes, DescriptionError, Machine};
use serde::{Deserialize, Serialize};

/// A simulated machine. All nodes are alike. Times are in nanoseconds, if not said otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What people call it.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u64,
    /// How many processors each node has.
    pub processors: u64,
    /// Each processor.
    pub processor: ProcessorPart,
    /// The translation buffer of each processor; without one, a translation takes no time.
    pub tlb: Option<TlbPart>,
    /// The first cache of each processor.
    pub l1: CachePart,
    /// The second cache of each processor; has all that is in the first.
    pub l2: CachePart,
    /// The bus of each node.
    pub bus: BusPart,
    /// The memory of each node.
    pub memory: MemoryPart,
    /// The node controller of each node, with the directory of its memory. A machine of one node has none.
    pub controller: Option<ControllerPart>,
    /// The directory cache of each controller; without one, the directory is as fast as `controller.home` says.
    pub directory_cache: Option<DirectoryCachePart>,
    /// The network between nodes. A machine of one node has none.
    pub network: Option<NetworkPart>,
    /// The far memory cache of each node, if there are some.
    pub far_cache: Option<FarCachePart>,
    /// Migration and replication of pages, if the operating system does so.
    pub replication: Option<ReplicationPart>,
    /// How threads get processors, if not as [`SchedulerPart::default`] says.
    #[serde(default)]
    pub scheduler: SchedulerPart,
}

/// A processor. It works in order and waits for each miss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorPart {
    /// Cycles in a microsecond.
    pub mhz: u64,
    /// Cycles from one access to the next if all hit the first cache: what the instructions in between take, too, as
    /// the simulator sees only accesses.
    pub cycles_per_access: u64,
}

/// A translation buffer (TLB). The entry that came first goes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbPart {
    /// Pages that it has; 0 is as good as no translation buffer.
    pub entries: u64,
    /// Entries in a set (associativity).
    pub ways: u64,
    /// Bytes in a page; `memory.page_size` if not given.
    pub page_size: Option<Bytes>,
    /// The time that a miss takes.
    pub miss: u64,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachePart {
    /// Its capacity.
    pub size: Bytes,
    /// Bytes in a line.
    pub line: u64,
    /// Lines in a set (associativity).
    pub ways: u64,
    /// The time that a look-up takes; of the first cache, it is in `cycles_per_access`.
    #[serde(default)]
    pub latency: u64,
}

/// A bus on which the caches of a node snoop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusPart {
    /// From the request to the snoop result.
    pub latency: u64,
    /// For how long a transaction keeps the bus busy.
    pub occupancy: u64,
    /// From the snoop result until another cache of the node has supplied the line.
    pub cache_supply: u64,
}

/// The memory of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryPart {
    /// From the snoop result until memory has supplied the line.
    pub latency: u64,
    /// Banks, interleaved by line.
    pub banks: u64,
    /// For how long an access keeps its bank busy.
    pub occupancy: u64,
    /// Bytes in a page.
    pub page_size: Bytes,
    /// Which node a page is on: a policy of resource sets.
    #[serde(default = "usual_placement")]
    pub placement: String,
    /// Which colour of the second cache a page gets.
    #[serde(default)]
    pub colouring: Colouring,
}

/// How pages get their colours. Two pages of one colour take each other's place in the second cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colouring {
    /// The colours of neighbours in virtual memory follow each other.
    #[default]
    Virtual,
    /// The colours of pages that a node gives away after each other follow each other.
    Cyclic,
    /// Any colour, as by a system that does not look at colours; the same ones in each run.
    Random,
}

fn usual_placement() -> String {
    "local".to_owned()
}

/// A node controller. Each of its four parts in a request takes a time; the controller is busy for `occupancy` each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerPart {
    /// The requester's: from the snoop result until the request leaves.
    pub request: u64,
    /// The home's: look-up in the directory, until the demands leave.
    pub home: u64,
    /// The owner's and the sharers': from a demand to the request on their bus.
    pub slave: u64,
    /// The requester's: from a reply to the answer on its bus.
    pub reply: u64,
    /// For how long each of these keeps the controller busy.
    pub occupancy: u64,
    /// From the snoop result until a cache has supplied the line to the controller; `bus.cache_supply` if not given.
    pub intervention: Option<u64>,
    /// By how many messages a line comes from a cache of a third node: 3, or 4 if by way of the home.
    #[serde(default = "usual_hops")]
    pub hops: u64,
}

fn usual_hops() -> u64 {
    3
}

impl ControllerPart {
    /// The way that `hops` stands for.
    pub(crate) fn way(&self) -> Hops {
        if self.hops == 4 { Hops::Four } else { Hops::Three }
    }
}

/// A far memory cache, also called remote cache or node cache: has lines of other nodes' memory for all processors of its
/// node, and all of them that the processors' caches have (inclusion).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarCachePart {
    /// Its capacity; 0 is as good as no far memory cache.
    pub size: Bytes,
    /// Bytes in a line of its own, a *block*: the unit in which nodes exchange memory.
    pub line: u64,
    /// Blocks in a set (associativity).
    pub ways: u64,
    /// From the snoop result until it has supplied a line.
    pub latency: u64,
    /// For how long it is busy with a line of the second caches.
    pub occupancy: u64,
}

/// How nodes are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// A link between each two.
    Direct,
    /// A link to the next and one to the last; messages take the shorter way.
    Ring,
    /// A link to each node whose number differs in one bit.
    Hypercube,
    /// One switch in the middle.
    Switch,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPart {
    /// How nodes are linked.
    pub topology: Topology,
    /// Between neighbours; of a switch, between any two nodes.
    pub latency: u64,
    /// What each further link adds; of a switch, the part of `latency` before it.
    #[serde(default)]
    pub hop_latency: u64,
    /// Of one direction of a link, in megabytes per second.
    pub bandwidth: u64,
    /// Bytes of a message without contents.
    pub header: u64,
}

/// What is wrong with which field.
pub(crate) type Wrong = (&'static [&'static str], String);

pub(crate) fn require(
    ok: bool,
    field: &'static [&'static str],
    message: impl FnOnce() -> String,
) -> Result<(), Wrong> {
    if ok { Ok(()) } else { Err((field, message())) }
}

impl Description {
    /// Reads a machine.
    ///
    /// # Errors
    /// If the text describes none; the error names line and field.
    ///
    /// # Examples
    /// ```
    /// use gondwana_sim::{Description, shipped};
    ///
    /// let text = shipped::find("wildfire-2x8").unwrap();
    /// assert_eq!(Description::parse(text)?.processors, 8);
    /// let error = Description::parse(&text.replace("nodes = 2", "nodes = 10000")).unwrap_err();
    /// assert_eq!(error.field.as_deref(), Some("nodes"));
    /// # Ok::<(), gondwana_topology::DescriptionError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let description: Self = toml::from_str(text)
            .map_err(|error| DescriptionError::of(text, error.span(), error.message()))?;
        let at = |(field, message): Wrong| DescriptionError::at_path(text, field, &message);
        description.check().map_err(at)?;
        description.check_placement(&description.memory.placement).map_err(|message| {
            at((&["memory", "placement"], format!("'{}': {message}", description.memory.placement)))
        })?;
        Ok(description)
    }

    fn check(&self) -> Result<(), Wrong> {
        let most = MAX_NODES as u64;
        require((1..=most).contains(&self.nodes), &["nodes"], || {
            format!("{} nodes: a simulated machine has 1 to {most}", self.nodes)
        })?;
        let most = MAX_PROCESSORS as u64;
        require(self.processors >= 1, &["processors"], || "a node has one processor at least".to_owned())?;
        require(self.processors.saturating_mul(self.nodes) <= most, &["processors"], || {
            format!(
                "{} nodes of {} processors: there may be {most} processors in all",
                self.nodes, self.processors
            )
        })?;
        range(self.processor.mhz, 100_000, &["processor", "mhz"])?;
        range(self.processor.cycles_per_access, 1000, &["processor", "cycles_per_access"])?;
        check_page(self.memory.page_size, &["memory", "page_size"])?;
        check_cache(&self.l1, [&["l1", "size"], &["l1", "line"], &["l1", "ways"], &["l1", "latency"]])?;
        check_cache(&self.l2, [&["l2", "size"], &["l2", "line"], &["l2", "ways"], &["l2", "latency"]])?;
        require(self.l1.line <= self.l2.line, &["l1", "line"], || {
            format!("{} bytes: longer than a line of the second cache, {}", self.l1.line, self.l2.line)
        })?;
        require(self.l1.size <= self.l2.size, &["l1", "size"], || {
            "larger than the second cache, which has all that is in the first".to_owned()
        })?;
        if let Some(tlb) = &self.tlb {
            check_tlb(tlb)?;
        }
        if let Some(far) = &self.far_cache {
            check_far_cache(far, self.l2.line, self.memory.page_size.0)?;
        }
        if let Some(cache) = &self.directory_cache {
            cache.check()?;
        }
        if let Some(replication) = &self.replication {
            replication.check(self.memory.page_size.0)?;
        }
        self.scheduler.check()?;
        range(self.memory.banks, 1024, &["memory", "banks"])?;
        time(self.bus.latency, &["bus", "latency"])?;
        time(self.bus.occupancy, &["bus", "occupancy"])?;
        time(self.bus.cache_supply, &["bus", "cache_supply"])?;
        time(self.memory.latency, &["memory", "latency"])?;
        time(self.memory.occupancy, &["memory", "occupancy"])?;
        if self.nodes == 1 {
            return Ok(());
        }
        let Some(controller) = &self.controller else {
            return Err((&["nodes"], format!("{} nodes need a [controller]", self.nodes)));
        };
        let Some(network) = &self.network else {
            return Err((&["nodes"], format!("{} nodes need a [network]", self.nodes)));
        };
        time(controller.request, &["controller", "request"])?;
        time(controller.home, &["controller", "home"])?;
        time(controller.slave, &["controller", "slave"])?;
        time(controller.reply, &["controller", "reply"])?;
        time(controller.occupancy, &["controller", "occupancy"])?;
        time(controller.intervention.unwrap_or(0), &["controller", "intervention"])?;
        require((3..=4).contains(&controller.hops), &["controller", "hops"], || {
            format!("{}: a line comes from a third node by 3 messages, or by 4", controller.hops)
        })?;
        time(network.latency, &["network", "latency"])?;
        range(network.latency, 1_000_000, &["network", "latency"])?;
        time(network.hop_latency, &["network", "hop_latency"])?;
        let splits = network.topology != Topology::Switch || network.hop_latency <= network.latency;
        require(splits, &["network", "hop_latency"], || {
            format!(
                "{} ns: of a switch, this is a part of the latency, {} ns",
                network.hop_latency, network.latency
            )
        })?;
        range(network.bandwidth, 10_000_000, &["network", "bandwidth"])?;
        range(network.header, 4096, &["network", "header"])?;
        require(
            network.topology != Topology::Hypercube || self.nodes.is_power_of_two(),
            &["network", "topology"],
            || format!("a hypercube has a power of two of nodes, not {}", self.nodes),
        )
    }

    /// Finds out whether pages can be placed like this.
    ///
    /// # Errors
    /// Why they cannot, in words.
    pub fn check_placement(&self, text: &str) -> Result<MemoryPolicy, String> {
        let machine = self.topology();
        let policy = MemoryPolicy::parse(text, &machine, &Registry::default())
            .map_err(|error| error.message().to_owned())?;
        if policy == MemoryPolicy::Block {
            return Err("a simulated memory has no end to divide by; striped is possible".to_owned());
        }
        if policy == MemoryPolicy::Remote && self.nodes == 1 {
            return Err("a machine of one node has no remote memory".to_owned());
        }
        Ok(policy)
    }

    /// The nodes and processors, for policies.
    ///
    /// # Panics
    /// If there are more than a simulated machine may have; [`Description::parse`] refuses that.
    #[must_use]
    pub fn topology(&self) -> Machine {
        let number = |count: u64| u16::try_from(count).expect("machines are checked");
        Machine::uniform(number(self.nodes), number(self.processors), Bytes(1 << 40))
    }
}

fn check_page(size: Bytes, field: &'static [&'static str]) -> Result<(), Wrong> {
    let page = size.0;
    require(page.is_power_of_two() && (1024..=1 << 30).contains(&page), field, || {
        format!("{page}: a page has a power of two of bytes, from 1KiB to 1GiB")
    })
}

fn check_tlb(tlb: &TlbPart) -> Result<(), Wrong> {
    require(tlb.entries <= 65536, &["tlb", "entries"], || {
        format!("{} entries: a translation buffer has at most 65536", tlb.entries)
    })?;
    require(tlb.ways >= 1, &["tlb", "ways"], || "0 ways: a set has one entry at least".to_owned())?;
    let sets = tlb.entries / tlb.ways;
    let fits = sets.is_power_of_two() && sets * tlb.ways == tlb.entries;
    require(tlb.entries == 0 || fits, &["tlb", "entries"], || {
        format!("{} entries in sets of {}: the number of sets must be a power of two", tlb.entries, tlb.ways)
    })?;
    tlb.page_size.map_or(Ok(()), |size| check_page(size, &["tlb", "page_size"]))?;
    time(tlb.miss, &["tlb", "miss"])
}

fn check_cache(cache: &CachePart, fields: [&'static [&'static str]; 4]) -> Result<(), Wrong> {
    let [size, line, ways, latency] = fields;
    require(cache.line.is_power_of_two() && (8..=256).contains(&cache.line), line, || {
        format!("{} bytes: a line has a power of two of bytes, from 8 to 256", cache.line)
    })?;
    check_sets(cache.size, cache.line, cache.ways, [size, ways])?;
    time(cache.latency, latency)
}

/// Sets of a cache; `line` has been checked.
fn check_sets(size: Bytes, line: u64, ways: u64, fields: [&'static [&'static str]; 2]) -> Result<(), Wrong> {
    require((1..=64).contains(&ways), fields[1], || format!("{ways} ways: a set has 1 to 64 lines"))?;
    require(size.0 <= 1 << 30, fields[0], || "a cache has at most 1GiB".to_owned())?;
    let sets = size.0 / line / ways;
    require(sets.is_power_of_two() && sets * line * ways == size.0, fields[0], || {
        format!("{size} in sets of {ways} lines of {line} bytes: the number of sets must be a power of two")
    })
}

fn check_far_cache(far: &FarCachePart, least: u64, most: u64) -> Result<(), Wrong> {
    require(
        far.line.is_power_of_two() && (least..=most).contains(&far.line),
        &["far_cache", "line"],
        || {
            format!(
                "{} bytes: a line has a power of two of bytes, from those of the second cache's, {least}, to those of a \
             page, {most}",
                far.line
            )
        },
    )?;
    if far.size.0 > 0 || far.ways == 0 {
        check_sets(far.size, far.line, far.ways, [&["far_cache", "size"], &["far_cache", "ways"]])?;
    }
    time(far.latency, &["far_cache", "latency"])?;
    time(far.occupancy, &["far_cache", "occupancy"])
}

pub(crate) fn range(value: u64, most: u64, field: &'static [&'static str]) -> Result<(), Wrong> {
    require((1..=most).contains(&value), field, || format!("{value}: from 1 to {most} is possible"))
}

pub(crate) fn time(value: u64, field: &'static [&'static str]) -> Result<(), Wrong> {
    require(value <= 1_000_000, field, || format!("{value} ns: a time is at most 1000000 ns"))
}
