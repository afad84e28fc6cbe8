//! Memory with homes by policy, and where homes are.

use super::cluster::{Cluster, asking, unsupported};
use gondwana_api::{Backend, Block, Error, Extras, Host};
use gondwana_memory::PAGE_SIZE;
use gondwana_node::Node;
use gondwana_rset::{MemoryPolicy, Placement, RSet};
use gondwana_topology::{NodeSet, ProcessorSet};
use libc::c_int;
use std::sync::Arc;

/// A page that is nowhere.
const NOWHERE: c_int = -1;

/// The pages per system call.
const AT_ONCE: usize = 4096;

/// The attempts to fetch a page that other nodes keep taking.
const ATTEMPTS: usize = 64;

impl Cluster {
    /// As [`Backend::allocate`].
    pub(super) fn allocate_block(
        &self,
        node: &'static Node,
        pages: usize,
        placement: &Placement,
        extras: Extras,
    ) -> Result<Block, Error> {
        let mut remarks = vec![];
        if extras.lock {
            remarks.push("pages cannot be locked on the nodes of a run".to_owned());
        }
        if extras.coloured {
            remarks.extend(self.colours().err().map(|error| error.sentence));
        }
        let wanted = Arc::new(self.within_its_set(placement)?);
        let address =
            node.allocate_placed(1, pages, &wanted, extras.prefault).map_err(|error| match error {
                libc::ENOMEM => no_room(node, pages),
                _ => Error::new(error, "a node has no room for the thread that clears its pages"),
            })?;
        let seen_from = placement.follows_touch().then_some(node.number());
        Ok(Block { address, seen_from, remarks })
    }

    /// Homes that move to writers could leave a partial set. With such a set, pages stay near the calling thread.
    fn within_its_set(&self, placement: &Placement) -> Result<Placement, Error> {
        let nodes: NodeSet = placement.nodes().iter().copied().collect();
        if placement.policy() != MemoryPolicy::Float || nodes.contains_all(&self.machine.memory_nodes()) {
            return Ok(placement.clone());
        }
        let set = RSet::new(ProcessorSet::EMPTY, nodes);
        Placement::new(MemoryPolicy::Local, &set, &self.machine)
            .map_err(|error| unsupported(error.to_string()))
    }
}

fn no_room(node: &Node, pages: usize) -> Error {
    let (bytes, part) = (pages.saturating_mul(PAGE_SIZE), node.number());
    let sentence = format!(
        "there is no room for {bytes} bytes in node {part}'s part of the span; give a larger --span to the run"
    );
    Error::new(libc::ENOMEM, sentence)
}

/// As [`Backend::nodes_of_pages`]: shared pages are on their homes, present private pages on this node.
pub(super) fn nodes_of_pages(
    node: &'static Node,
    host: &Host,
    address: usize,
    nodes: &mut [c_int],
) -> Result<(), Error> {
    nodes.fill(NOWHERE);
    let end = address.saturating_add(nodes.len().saturating_mul(PAGE_SIZE));
    node.visit_homes(&(address..end), |pages, home| nodes[pages].fill(home.0.into()));
    let is_shared = |page: usize| node.is_shared(address + page * PAGE_SIZE);
    let mut page = 0;
    while page < nodes.len() {
        let shared = is_shared(page);
        let most = (nodes.len() - page).min(AT_ONCE);
        let count = (1..most).take_while(|more| is_shared(page + more) == shared).count() + 1;
        if !shared {
            let found = asking(|| {
                let mut found = vec![NOWHERE; count];
                host.nodes_of_pages(address + page * PAGE_SIZE, &mut found).map(|()| found)
            })?;
            for (to, found) in nodes[page..page + count].iter_mut().zip(found) {
                *to = if found >= 0 { node.number().0.into() } else { NOWHERE };
            }
        }
        page += count;
    }
    Ok(())
}

/// As [`Backend::peek`].
pub(super) fn peek(host: &Host, address: usize, bytes: &mut [u8]) -> bool {
    let Some(last) = bytes.len().checked_sub(1).and_then(|more| address.checked_add(more)) else {
        return false;
    };
    let length = bytes.len();
    let node = Node::current();
    let read = asking(|| {
        let mut read = vec![0; length];
        for _ in 0..ATTEMPTS {
            if host.peek(address, &mut read) {
                return Some(read);
            }
            // The kernel reports no page if this node has not fetched it yet.
            let node = node.filter(|node| node.is_shared(address) && node.is_shared(last))?;
            node.fault(address, false, 0, libc::SIGBUS);
            node.fault(last, false, 0, libc::SIGBUS);
        }
        None
    });
    read.inspect(|read| bytes.copy_from_slice(read)).is_some()
}
