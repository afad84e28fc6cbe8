//! The network between nodes: which links a message goes over.

use crate::description::{NetworkPart, Topology};
use crate::resource::Resource;
use crate::statistics::{LinkStatistics, Use};
use crate::{NANOSECOND, Time};
use gondwana_coherence::directory::Node;

/// Links, one for each direction.
#[derive(Clone, Debug)]
pub struct Network {
    topology: Topology,
    nodes: usize,
    latency: Time,
    hop_latency: Time,
    /// Picoseconds for 1000 bytes.
    per_kilobyte: Time,
    header: u64,
    /// By `from * nodes + to`; of a switch, what a node sends to it at `node` and what it receives behind those.
    links: Vec<Resource>,
    sent: Vec<Sent>,
}

/// What a node has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub messages: u64,
    /// Of these, those that ask for something.
    pub requests: u64,
    /// With headers.
    pub bytes: u64,
}

impl Network {
    pub(crate) fn new(part: &NetworkPart, nodes: usize) -> Self {
        Self {
            topology: part.topology,
            nodes,
            latency: part.latency * NANOSECOND,
            hop_latency: part.hop_latency * NANOSECOND,
            // 1000 bytes take 1000 / (MB/s) microseconds.
            per_kilobyte: 1_000_000_000 / part.bandwidth,
            header: part.header,
            links: vec![Resource::default(); nodes * nodes],
            sent: vec![Sent::default(); nodes],
        }
    }

    /// The next node on the way; links are taken in the same order by all messages.
    fn next(&self, at: usize, to: usize) -> usize {
        match self.topology {
            Topology::Direct | Topology::Switch => to,
            Topology::Ring => {
                let forward = (to + self.nodes - at) % self.nodes;
                if forward * 2 <= self.nodes {
                    (at + 1) % self.nodes
                } else {
                    (at + self.nodes - 1) % self.nodes
                }
            }
            Topology::Hypercube => at ^ (1 << (at ^ to).trailing_zeros()),
        }
    }

    /// How many links are between two nodes.
    #[must_use]
    pub fn hops(&self, from: Node, to: Node) -> u32 {
        let (mut at, to, mut hops) = (usize::from(from), usize::from(to), 0);
        while at != to {
            at = self.next(at, to);
            hops += 1;
        }
        hops
    }

    /// Sends a message with `contents` bytes beside its header at a time; returns when it begins to arrive.
    ///
    /// The latency is that of the first bytes; the rest keeps the links busy, and messages behind it wait.
    pub(crate) fn send(&mut self, at: Time, from: Node, to: Node, is_request: bool, contents: u64) -> Time {
        let bytes = self.header + contents;
        let length = bytes * self.per_kilobyte / 1000;
        let sent = &mut self.sent[usize::from(from)];
        sent.messages += 1;
        sent.requests += u64::from(is_request);
        sent.bytes += bytes;
        let (mut node, to) = (usize::from(from), usize::from(to));
        if self.topology == Topology::Switch {
            let sent = self.links[node].reserve(at, length);
            let received = self.links[self.nodes + to].reserve(sent + self.hop_latency, length);
            return received + self.latency - self.hop_latency;
        }
        let (mut time, mut latency) = (at, self.latency);
        while node != to {
            let next = self.next(node, to);
            time = self.links[node * self.nodes + next].reserve(time, length) + latency;
            (node, latency) = (next, self.hop_latency);
        }
        time
    }

    /// The shortest time between two nodes.
    pub(crate) fn least(&self) -> Time {
        self.latency
    }

    /// What a node has sent.
    pub(crate) fn sent(&self, node: usize) -> Sent {
        self.sent[node]
    }

    /// All links that were used, each in one direction.
    pub(crate) fn links(&self) -> Vec<LinkStatistics> {
        let used = self.links.iter().enumerate().filter(|(_, link)| link.uses() > 0);
        used.map(|(at, link)| {
            let (row, column) = (at / self.nodes, at % self.nodes);
            let (from, to) = match self.topology {
                Topology::Switch if row == 0 => (Some(column), None),
                Topology::Switch => (None, Some(column)),
                _ => (Some(row), Some(column)),
            };
            LinkStatistics { from, to, used: Use { busy: link.busy(), uses: link.uses() } }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(topology: Topology, nodes: usize) -> Network {
        let part = NetworkPart { topology, latency: 100, hop_latency: 20, bandwidth: 1000, header: 16 };
        Network::new(&part, nodes)
    }

    #[test]
    fn messages_take_the_shortest_way() {
        let hops = |topology, nodes, from, to| network(topology, nodes).hops(from, to);
        assert_eq!([1, 2, 3, 4, 5].map(|to| hops(Topology::Ring, 6, 0, to)), [1, 2, 3, 2, 1]);
        assert_eq!(hops(Topology::Ring, 6, 5, 0), 1);
        assert_eq!([1, 3, 7, 6].map(|to| hops(Topology::Hypercube, 8, 0, to)), [1, 2, 3, 2]);
        assert_eq!(hops(Topology::Direct, 4, 3, 1), 1);
    }

    #[test]
    fn latency_grows_by_the_hop_and_links_are_busy() {
        let mut ring = network(Topology::Ring, 6);
        assert_eq!(ring.send(0, 0, 1, true, 64), 100_000);
        assert_eq!(ring.send(0, 0, 2, true, 64), 80_000 + 120_000, "behind 80 bytes at 1 GB/s");
        assert_eq!(ring.send(0, 3, 2, true, 64), 100_000, "the other direction");
        let mut switch = network(Topology::Switch, 4);
        assert_eq!(switch.send(0, 0, 1, false, 64), 100_000);
        assert_eq!(switch.send(0, 2, 3, false, 64), 100_000);
        assert_eq!(switch.send(0, 3, 1, false, 64), 180_000, "node 1 receives one at a time");
        assert_eq!(switch.sent(0), Sent { messages: 1, requests: 0, bytes: 80 });
        let link = |from, to, uses| LinkStatistics { from, to, used: Use { busy: uses * 80_000, uses } };
        let all = [
            link(Some(0), None, 1),
            link(Some(2), None, 1),
            link(Some(3), None, 1),
            link(None, Some(1), 2),
            link(None, Some(3), 1),
        ];
        assert_eq!(switch.links(), all);
        let of_ring = [link(Some(0), Some(1), 2), link(Some(1), Some(2), 1), link(Some(3), Some(2), 1)];
        assert_eq!((ring.links(), ring.sent(0).requests), (of_ring.to_vec(), 2));
    }
}
