//! What a run comes to.

use crate::counters::Counters;
use crate::directory_cache::DirectoryLookups;
use crate::far::FarCache;
use crate::machine::Machine;
use crate::network::Network;
use crate::schedule::Scheduling;
use crate::{Description, Time};
use serde::{Deserialize, Serialize};

/// How much a resource was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Picoseconds for which it was busy.
    pub busy: Time,
    /// How often it was used.
    pub uses: u64,
}

/// Of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatistics {
    /// The node that sends; none: the switch.
    pub from: Option<usize>,
    /// The node that receives; none: the switch.
    pub to: Option<usize>,
    /// How much it was used.
    pub used: Use,
}

/// Of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatistics {
    /// Sums over its processors.
    pub counters: Counters,
    /// Its bus.
    pub bus: Use,
    /// Its memory banks together.
    pub memory: Use,
    /// Its controller.
    pub controller: Use,
    /// Its far memory cache.
    pub far_cache: Use,
    /// Look-ups of its directory; left out in files if it has no directory cache.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub directory: DirectoryLookups,
    /// Messages that it sent to other nodes.
    pub messages: u64,
    /// Of these, requests: its own to homes, and those of its homes to owners and sharers. The others are responses.
    pub requests: u64,
    /// Bytes of these, with headers.
    pub message_bytes: u64,
    /// Pages in its memory that it is the home of.
    pub pages: u64,
    /// Picoseconds for which its processors had no thread to run, together; the machine does not know.
    #[serde(default)]
    pub idle: Time,
    /// The part of it in which a thread that ran on the node last slept.
    #[serde(default)]
    pub asleep: Time,
    /// What migration and replication of pages came to; left out in files if they did nothing.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub replication: NodeReplication,
}

/// What migration and replication of pages came to in a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReplication {
    /// Pages that moved to the node.
    pub migrated: u64,
    /// Replicas that it got, that it gave up, and that it has at the end.
    pub replicated: u64,
    /// The second of these.
    pub given_up: u64,
    /// The third.
    pub replicas: u64,
    /// Misses that replicas have served; they are among those of local memory.
    pub served: u64,
    /// Fetches of other nodes' blocks that the node had, and had to make room for.
    pub excess: u64,
}

/// Of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// The machine's name.
    pub machine: String,
    /// Processors in each node.
    pub processors_per_node: u64,
    /// Picoseconds from the start to the end of the program.
    pub time: Time,
    /// Memory banks in each node.
    pub banks_per_node: u64,
    /// Sums over all processors.
    pub counters: Counters,
    /// By node.
    pub nodes: Vec<NodeStatistics>,
    /// The network's links, if they were used.
    pub links: Vec<LinkStatistics>,
    /// What the scheduler has done, which the machine does not know; left out in files if that is nothing.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub scheduling: Scheduling,
}

fn is_nothing<T: Default + PartialEq>(counts: &T) -> bool {
    *counts == T::default()
}

impl Statistics {
    /// Of the network's links, how much the busiest was used.
    #[must_use]
    pub fn busiest_link(&self) -> Use {
        self.links.iter().map(|link| link.used).max_by_key(|used| used.busy).unwrap_or_default()
    }

    /// The share of misses that are local beyond those that would be if memory were spread at random: less than 0 if
    /// fewer are. None on a machine of one node. (WildFire, formula F2, solved for the created locality.)
    #[must_use]
    pub fn created_locality(&self) -> Option<f64> {
        let for_free = 1.0 / self.nodes.len() as f64;
        (self.nodes.len() > 1).then(|| (self.counters.locality() - for_free) / (1.0 - for_free))
    }
}

impl Machine {
    /// What has happened up to `time`.
    #[must_use]
    pub fn statistics(&self, description: &Description, time: Time) -> Statistics {
        let pages = self.lines.pages_by_home(self.nodes.len());
        let mut nodes: Vec<NodeStatistics> = vec![];
        for (number, parts) in self.nodes.iter().enumerate() {
            let sent = self.network.as_ref().map(|network| network.sent(number)).unwrap_or_default();
            nodes.push(NodeStatistics {
                counters: Counters::default(),
                bus: Use { busy: parts.bus.busy(), uses: parts.bus.uses() },
                memory: Use {
                    busy: parts.banks.iter().map(|bank| bank.busy()).sum(),
                    uses: parts.banks.iter().map(|bank| bank.uses()).sum(),
                },
                controller: Use { busy: parts.controller.busy(), uses: parts.controller.uses() },
                far_cache: parts.far.as_ref().map(FarCache::used).unwrap_or_default(),
                directory: parts.directory.as_ref().map(|cache| cache.lookups).unwrap_or_default(),
                messages: sent.messages,
                requests: sent.requests,
                message_bytes: sent.bytes,
                pages: pages[number],
                idle: 0,
                asleep: 0,
                replication: self.replicated(number),
            });
        }
        let mut all = Counters::default();
        for (processor, counters) in self.counters.iter().enumerate() {
            let (accesses, fast_writes) = self.ports[processor].counts();
            let mut counters = counters.clone();
            counters.writes += fast_writes;
            counters.reads = accesses - counters.writes;
            nodes[usize::from(self.node_of[processor])].counters.add(&counters);
            all.add(&counters);
        }
        Statistics {
            machine: description.name.clone(),
            processors_per_node: description.processors,
            time,
            banks_per_node: description.memory.banks,
            counters: all,
            nodes,
            links: self.network.as_ref().map(Network::links).unwrap_or_default(),
            scheduling: Scheduling::default(),
        }
    }
}
