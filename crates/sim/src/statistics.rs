//! What a run comes to.

use crate::counters::Counters;
use crate::far::FarCache;
use crate::machine::Machine;
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
    /// Messages that it sent to other nodes.
    pub messages: u64,
    /// Bytes of these, with headers.
    pub message_bytes: u64,
    /// Pages in its memory.
    pub pages: u64,
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
    /// Sums over all processors.
    pub counters: Counters,
    /// By node.
    pub nodes: Vec<NodeStatistics>,
    /// Of the network's links, the busiest.
    pub busiest_link: Use,
}

impl Machine {
    /// What has happened up to `time`.
    #[must_use]
    pub fn statistics(&self, description: &Description, time: Time) -> Statistics {
        let pages = self.lines.pages_by_home(self.nodes.len());
        let mut nodes: Vec<NodeStatistics> = vec![];
        for (number, parts) in self.nodes.iter().enumerate() {
            let (messages, message_bytes) =
                self.network.as_ref().map_or((0, 0), |network| network.sent(number));
            nodes.push(NodeStatistics {
                counters: Counters::default(),
                bus: Use { busy: parts.bus.busy(), uses: parts.bus.uses() },
                memory: Use {
                    busy: parts.banks.iter().map(|bank| bank.busy()).sum(),
                    uses: parts.banks.iter().map(|bank| bank.uses()).sum(),
                },
                controller: Use { busy: parts.controller.busy(), uses: parts.controller.uses() },
                far_cache: parts.far.as_ref().map(FarCache::used).unwrap_or_default(),
                messages,
                message_bytes,
                pages: pages[number],
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
        let (busy, uses) = self.network.as_ref().map_or((0, 0), |network| network.busiest());
        Statistics {
            machine: description.name.clone(),
            processors_per_node: description.processors,
            time,
            counters: all,
            nodes,
            busiest_link: Use { busy, uses },
        }
    }
}
