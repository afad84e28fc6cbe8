//! Migration of pages and coherent memory replication (CMR), as WildFire has them: its sections 3, 4 and 6.
//!
//! A node may have a *replica* of another node's page: a page of its own memory whose blocks are valid or not. Blocks come
//! when they are missed, as without a replica; what is new is that the replica keeps them when the processors' caches have no room
//! any more, and takes what they write back. The protocol between nodes is the same. Counters of the node controllers tell the
//! operating system which pages are worth it ([`excess`]), and its daemon acts ([`policy`], [`system`]).

mod excess;
mod pages;
mod policy;
mod system;

use crate::statistics::NodeReplication;
use crate::system_parts::ReplicationPart;
use crate::{NANOSECOND, Time};
use excess::ExcessCounters;
use pages::Pages;
use policy::{Action, Policy};
use std::collections::VecDeque;

/// What a machine with migration and replication has beside the others.
#[derive(Clone, Debug)]
pub(crate) struct Replication {
    pages: Pages,
    /// By node.
    excess: Vec<ExcessCounters>,
    policy: Policy,
    /// Pages in the memory of a node.
    limit: u64,
    /// What the daemon is about to do, and when it goes on.
    actions: VecDeque<Action>,
    next: Time,
    /// From the end of a look at the counters, with what follows, to the next one.
    period: Time,
    /// The processor's time for a look, and for each page.
    look: Time,
    page: Time,
    /// Translations of addresses, in requests and in demands.
    lpa2ga: Time,
    ga2lpa: Time,
    /// By node.
    done: Vec<NodeReplication>,
}

impl Replication {
    /// Of a machine with so many nodes, and blocks in a page.
    pub(crate) fn new(part: &ReplicationPart, nodes: usize, page_bytes: u64, blocks: u64) -> Self {
        let counters = ExcessCounters::new(part.counters.unwrap_or(u64::MAX));
        Self {
            pages: Pages::new(usize::try_from(blocks).expect("pages are checked"), nodes),
            excess: vec![counters; nodes],
            policy: Policy {
                threshold: part.threshold,
                migrations: part.migrations,
                replicates: part.replicate,
                most: part.pages,
            },
            limit: part.memory.map_or(u64::MAX, |memory| memory.0 / page_bytes),
            actions: VecDeque::new(),
            next: part.period * NANOSECOND,
            period: part.period * NANOSECOND,
            look: part.look * NANOSECOND,
            page: part.page * NANOSECOND,
            lpa2ga: part.lpa2ga * NANOSECOND,
            ga2lpa: part.ga2lpa * NANOSECOND,
            done: vec![NodeReplication::default(); nodes],
        }
    }
}
