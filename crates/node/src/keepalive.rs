//! Signs of life between computers.
//!
//! TCP notices that a computer is gone only while something waits to be acknowledged. Threads that compute for hours
//! have no message on its way, and the kernel's own probes begin after a second at the earliest. So each node sends the
//! others a message from time to time. That the peer's *kernel* acknowledges it is enough; a node may be stopped, or too
//! busy to answer. Such a node is sent one message more than it has taken, so that they do not heap up.
//!
//! Nodes of one computer send each other none: the launcher or the agent there learns of the end of each process. Many nodes
//! of two computers share the work.

use crate::Node;
use crate::wire::Wire;
use gondwana_control::FabricBoot;
use gondwana_topology::NodeId;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often.
const PERIOD: Duration = Duration::from_millis(250);

/// How many nodes of another computer with many a node sends signs of life to at least; fewer than twice as many.
const ENOUGH: usize = 8;

/// Which nodes have been heard of since they were last sent a sign of life.
pub(crate) struct Keepalives(Box<[Peer]>);

struct Peer {
    /// True if this node sends it signs of life, and it this one.
    is_watched: bool,
    heard: AtomicBool,
}

impl Keepalives {
    /// For nodes that may be on different computers; there is nothing to watch otherwise.
    pub(crate) fn new(fabric: &FabricBoot, me: NodeId) -> Self {
        let watched = match fabric {
            FabricBoot::Shm { .. } => vec![],
            FabricBoot::Tcp { peers, .. } => watched(peers, me),
        };
        if !watched.contains(&true) {
            return Self(Box::default());
        }
        let peer = |is_watched| Peer { is_watched, heard: AtomicBool::new(true) };
        Self(watched.into_iter().map(peer).collect())
    }

    /// How often to call [`Node::give_signs_of_life`].
    pub(crate) fn period(&self) -> Option<Duration> {
        (!self.0.is_empty()).then_some(PERIOD)
    }

    /// The nodes to send a sign of life: those that are watched and have been heard of since the last time.
    fn take_heard(&self) -> impl Iterator<Item = NodeId> {
        let due = |(_, peer): &(NodeId, &Peer)| peer.is_watched && peer.heard.swap(false, Ordering::Relaxed);
        (0..).map(NodeId).zip(&self.0).filter(due).map(|(node, _)| node)
    }

    /// There is news from a node.
    pub(crate) fn note(&self, from: NodeId) {
        // Mostly it is noted already: without a write the processors keep their copies of the line.
        if let Some(peer) = self.0.get(from.index()).filter(|peer| !peer.heard.load(Ordering::Relaxed)) {
            peer.heard.store(true, Ordering::Relaxed);
        }
    }
}

/// By node: whether `me` and that node send each other signs of life. Those do that are on different computers and, of many
/// nodes of both, at the same place among those of their computers.
fn watched(peers: &[SocketAddr], me: NodeId) -> Vec<bool> {
    let computer = |node: usize| peers[node].ip();
    let count = |node: usize| peers.iter().filter(|peer| peer.ip() == computer(node)).count();
    let place = |node: usize| peers[..node].iter().filter(|peer| peer.ip() == computer(node)).count();
    let (me, own) = (me.index(), (count(me.index()), place(me.index())));
    let is_watched = |node: usize| {
        if computer(node) == computer(me) {
            return false;
        }
        let share = (own.0.min(count(node)) / ENOUGH).max(1);
        own.1 % share == place(node) % share
    };
    (0..peers.len()).map(is_watched).collect()
}

impl Node {
    /// Sends signs of life if it is time to, and looks for those of others; `last` is when that was done before.
    pub(crate) fn give_signs_of_life(&self, last: &mut Instant) {
        if self.service.keepalives.0.is_empty() || last.elapsed() < PERIOD {
            return;
        }
        *last = Instant::now();
        for node in self.service.keepalives.take_heard() {
            self.core().env.post(node, &Wire::Alive, &[]);
        }
        self.fabric.look_after_peers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::Id;

    /// Nodes in turn on computers with these numbers of nodes.
    fn peers(computers: &[usize]) -> Vec<SocketAddr> {
        let most = computers.iter().max().copied().unwrap_or(0);
        let round = |turn: usize| {
            let has = move |(_, count): &(usize, &usize)| turn < **count;
            computers.iter().enumerate().filter(has).map(|(computer, _)| computer)
        };
        let address = |computer: usize| SocketAddr::from(([10, 0, 0, u8::try_from(computer).unwrap()], 7000));
        (0..most).flat_map(round).map(address).collect()
    }

    #[test]
    fn nodes_of_one_computer_send_each_other_nothing() {
        let fabric = FabricBoot::Tcp { listener_fd: -1, peers: peers(&[256]), secret: None };
        assert_eq!(Keepalives::new(&fabric, NodeId(3)).period(), None);
        assert_eq!(Keepalives::new(&FabricBoot::Shm { fd: -1 }, NodeId(3)).period(), None);
    }

    #[test]
    fn a_node_that_is_silent_is_sent_no_more_than_one() {
        let fabric = FabricBoot::Tcp { listener_fd: -1, peers: peers(&[1, 2]), secret: None };
        let keepalives = Keepalives::new(&fabric, NodeId(0));
        let due = || keepalives.take_heard().collect::<Vec<_>>();
        assert_eq!(due(), [NodeId(1), NodeId(2)]);
        assert_eq!(due(), []);
        keepalives.note(NodeId(2));
        assert_eq!(due(), [NodeId(2)]);
    }

    #[test]
    fn few_nodes_send_to_all_of_other_computers() {
        assert_eq!(watched(&peers(&[2, 2]), NodeId(0)), [false, true, false, true]);
        assert_eq!(watched(&peers(&[1, 3]), NodeId(2)), [true, false, false, false]);
    }

    #[test]
    fn many_nodes_share_the_work_and_agree_about_it() {
        for computers in [&[128, 128][..], &[200, 56], &[86, 85, 85], &[1, 255], &[20, 9]] {
            let peers = peers(computers);
            let nodes = (0..peers.len()).map(NodeId::from_index);
            let all: Vec<_> = nodes.map(|me| watched(&peers, me)).collect();
            for (me, own) in all.iter().enumerate() {
                assert!((0..peers.len()).all(|peer| own[peer] == all[peer][me]), "{computers:?}");
                let others = peers.iter().filter(|peer| peer.ip() != peers[me].ip());
                for other in others {
                    let sent = (0..peers.len()).filter(|&peer| own[peer] && peers[peer].ip() == other.ip());
                    assert!(sent.count() > 0, "{computers:?}: node {me}");
                }
            }
            let sent = all.iter().flatten().filter(|&&watched| watched).count();
            assert!(sent <= 2 * 2 * ENOUGH * computers.len() * peers.len(), "{computers:?}: {sent}");
        }
    }
}
