//! The parts of a machine's file that are about its operating system.

use crate::description::{Wrong, range, require, time};
use gondwana_topology::Bytes;
use serde::{Deserialize, Serialize};

/// Migration of pages and coherent memory replication (CMR), as in WildFire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicationPart {
    /// From one look of the daemon at the counters, with what follows from it, to the next; 0 is as good as no
    /// replication.
    pub period: u64,
    /// Excess misses of a node to a page between two looks, from which on the daemon does something about the page.
    pub threshold: u64,
    /// Counters of each node; one for each page if not given.
    pub counters: Option<u64>,
    /// How often a page moves before it is replicated.
    #[serde(default = "usual_migrations")]
    pub migrations: u64,
    /// Whether pages are replicated at all.
    #[serde(default = "usual_replicate")]
    pub replicate: bool,
    /// The most pages that move or are replicated after one look.
    #[serde(default = "usual_pages")]
    pub pages: u64,
    /// Memory of each node, for the pages that it is home of and replicas; without an end if not given.
    pub memory: Option<Bytes>,
    /// The processor's time for a look.
    pub look: u64,
    /// The processor's time for each page that moves, is replicated or given up, beside that of flushing and copying.
    pub page: u64,
    /// The translation of a local address to a global one, in a request for a block of a replica.
    pub lpa2ga: u64,
    /// The translation of a global address to a local one, in a demand to a node with a replica.
    pub ga2lpa: u64,
}

/// The scheduler of the machine's operating system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerPart {
    /// Which processors a thread may run on.
    pub policy: SchedulerPolicy,
    /// For how long a thread may keep a processor that others wait for.
    pub slice: u64,
    /// What a processor takes to change to another thread, beside the misses that this causes.
    pub switch: u64,
    /// By how many threads a node may have more than another one before threads leave it.
    pub imbalance: u64,
    /// From one comparison of the nodes' loads to the next, with [`SchedulerPolicy::Dynamic`].
    pub period: u64,
    /// From one measurement of the loads by which threads start to the next, with [`SchedulerPolicy::Static`] and
    /// [`SchedulerPolicy::Dynamic`]; 0: they are always known.
    pub measure: u64,
}

impl Default for SchedulerPart {
    /// Threads stay on the processors where they start, for 10 ms at a time, and changing takes no time.
    fn default() -> Self {
        Self {
            policy: SchedulerPolicy::Bound,
            slice: 10_000_000,
            switch: 0,
            imbalance: 2,
            period: 1_000_000_000,
            measure: 0,
        }
    }
}

/// Which processor a thread gets that can run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerPolicy {
    /// The one where it started.
    #[default]
    Bound,
    /// Any that has nothing to do.
    Float,
    /// The last one that it had, or else any.
    Affinity,
    /// The last one that it had, or else one of the same node, or else, if the imbalance is too great, one of another
    /// node (WildFire's hierarchical affinity scheduling, HAS).
    Hierarchical,
    /// One of the node where it started, which had the least load then (UnixWare's static load balancing).
    Static,
    /// The same, and from time to time a thread moves from the node with the most to that with the least load (UnixWare's
    /// dynamic load balancing).
    Dynamic,
}

fn usual_migrations() -> u64 {
    1
}

fn usual_replicate() -> bool {
    true
}

fn usual_pages() -> u64 {
    64
}

impl ReplicationPart {
    /// Finds what is wrong, given the bytes of a page.
    pub(crate) fn check(&self, page: u64) -> Result<(), Wrong> {
        const SECOND: u64 = 1_000_000_000;
        require(self.period <= 100 * SECOND, &["replication", "period"], || {
            format!("{} ns: a period is at most 100 s", self.period)
        })?;
        require(self.threshold >= 1, &["replication", "threshold"], || {
            "0: a page without excess misses gives no reason for anything; 1 is the least".to_owned()
        })?;
        require(self.counters != Some(0), &["replication", "counters"], || {
            "0 counters: a node has one at least; without this field it has one for each page".to_owned()
        })?;
        require(self.pages >= 1, &["replication", "pages"], || "0: the daemon would do nothing".to_owned())?;
        let memory = self.memory.map_or(page, |memory| memory.0);
        require(memory >= page, &["replication", "memory"], || {
            format!("{memory} bytes: a node has memory for one page at least, {page}")
        })?;
        time(self.look, &["replication", "look"])?;
        time(self.page, &["replication", "page"])?;
        time(self.lpa2ga, &["replication", "lpa2ga"])?;
        time(self.ga2lpa, &["replication", "ga2lpa"])
    }
}

impl SchedulerPart {
    /// Finds what is wrong.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        range(self.slice, 10_000_000_000, &["scheduler", "slice"])?;
        time(self.switch, &["scheduler", "switch"])?;
        range(self.imbalance, 1_000_000, &["scheduler", "imbalance"])?;
        range(self.period, 100_000_000_000, &["scheduler", "period"])?;
        require(self.measure <= 100_000_000_000, &["scheduler", "measure"], || {
            format!("{} ns: loads are measured each 100 s at least", self.measure)
        })
    }
}
