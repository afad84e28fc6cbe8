//! What a monitor sees of the machine: the transactions between nodes, and the words that each node has written. Keeping it
//! changes neither times nor counts.
//!
//! | kind | what it is here |
//! |---|---|
//! | read, write | an access waited for a block that came from another node, and that its own node had lost to a writer |
//! | cold | the same of a block that the node never had |
//! | excess | the same of a block that the node had to make room for |
//! | upgrade | a write waited for other nodes: its own one had the block, and only to read it |
//! | diff | a block that was written back to its home |
//! | prefetched | a page that the operating system moved to the node, or the part of it that a recording takes for a page |
//! | notice | the home told a node that another one writes |
//! | invalidation | a node gave a copy up because another one writes |
//! | recall | a node that had a block for itself alone supplied it |

use crate::lines::{Mix, NOBODY, Place};
use crate::machine::Machine;
use gondwana_coherence::directory::{Demand, Node, State};
use gondwana_monitor::{Direction, Kind, Transaction};
use gondwana_page::{PAGE_BITS, PAGE_SIZE};
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

/// The words of a page that were written, one bit for each word of 4 bytes.
pub type WrittenWords = [u64; PAGE_SIZE / 4 / 64];

/// What a home's own processors have used of a page without a message: lines from and to its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtHome {
    /// Lines from memory for reads.
    pub reads: u64,
    /// Lines from memory for writes.
    pub writes: u64,
    /// Lines written back.
    pub written_back: u64,
}

/// Nodes, one bit for each, by what they have of a block of another node.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    /// They have had it.
    had: u64,
    /// They have lost it to a writer, and not got it back.
    lost: u64,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// The home of the block.
    pub home: Node,
    /// The other node that has sent it, if one has.
    pub supplier: Option<Node>,
    /// The other node that was asked first, by the home.
    pub asked: Option<Node>,
}

/// What is kept for a monitor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    seen: Vec<(Node, Transaction)>,
    /// The node of the access that is under way has a copy of the block.
    has: bool,
    /// The answer to the request of the access that is under way.
    answered: Option<Answered>,
    /// By the number of the block.
    copies: HashMap<u64, Copies, BuildHasherDefault<Mix>>,
    written: BTreeMap<(Node, u64), WrittenWords>,
    /// By home and number of the page: a page that moves has several.
    at_home: BTreeMap<(Node, u64), AtHome>,
}

impl Watch {
    fn see(&mut self, node: Node, kind: Kind, direction: Direction, address: u64, bytes: u32, peer: Node) {
        let peer = peer.into();
        let seen = Transaction { kind, direction, address, bytes, peer, thread: None, code: 0 };
        self.seen.push((node, seen));
    }

    /// A request was answered.
    pub(crate) fn answer(&mut self, answered: Answered) {
        self.answered = Some(answered);
    }

    /// An access is complete. If its node has made a request for it, and another one had to do with that, it is a
    /// transaction.
    pub(crate) fn complete(&mut self, node: Node, address: u64, block: u64, write: bool, bytes: u32) {
        let Some(Answered { home, supplier, asked }) = self.answered.take() else { return };
        let peer = if home == node { supplier.or(asked) } else { Some(home) };
        let Some(peer) = peer else { return };
        let copies = self.copies.entry(block).or_default();
        let bit = 1 << node;
        let kind = match supplier {
            None => Kind::Upgrade,
            Some(_) if write && self.has => Kind::Upgrade,
            Some(_) if copies.lost & bit != 0 => [Kind::Read, Kind::Write][usize::from(write)],
            Some(_) if home != node && copies.had & bit == 0 => {
                [Kind::ColdRead, Kind::ColdWrite][usize::from(write)]
            }
            Some(_) => [Kind::ExcessRead, Kind::ExcessWrite][usize::from(write)],
        };
        copies.had |= bit;
        copies.lost &= !bit;
        let bytes = if supplier.is_some() { bytes } else { 0 };
        self.see(node, kind, Direction::Out, address, bytes, peer);
    }

    /// A node has written words of a line of the second caches that begins at an address. What it wrote before another node
    /// than the home had the block has initialised it, and tells nothing of how it is shared.
    fn wrote(&mut self, node: Node, address: u64, block: u64, words: u64) {
        if self.copies.get(&block).is_none_or(|copies| copies.had == 0) {
            return;
        }
        let page = self.written.entry((node, address >> PAGE_BITS)).or_default();
        let first = address % PAGE_SIZE as u64 / 4;
        page[usize::try_from(first / 64).expect("an index")] |= words << (first % 64);
    }
}

impl Machine {
    /// Keeps from now on what [`Machine::seen`] and [`Machine::written`] tell. No access was made yet.
    pub fn watch(&mut self) {
        self.watch = Some(Box::default());
    }

    /// Takes the transactions since the last call, in their order, each with the node that it is about: the one whose
    /// processor waited or wrote back, or of notices, invalidations and recalls the one that suffers it. The machine knows
    /// no threads and no code.
    ///
    /// The address is that of the access, or else of the block.
    pub fn seen(&mut self) -> Vec<(Node, Transaction)> {
        self.watch.as_mut().map_or_else(Vec::new, |watch| std::mem::take(&mut watch.seen))
    }

    /// The binary logarithm of a block's bytes: of the unit that nodes exchange.
    #[must_use]
    pub fn block_unit(&self) -> u8 {
        u8::try_from(self.block_bytes.trailing_zeros()).expect("machines are checked")
    }

    /// Messages and bytes that a node has sent to others.
    #[must_use]
    pub fn messages(&self, node: Node) -> (u64, u64) {
        let sent = self.network.as_ref().map(|network| network.sent(node.into())).unwrap_or_default();
        (sent.messages, sent.bytes)
    }

    /// Lines and rights to write for which processors of a node have left their caches.
    #[must_use]
    pub fn misses(&self, node: Node) -> u64 {
        let of_node = self.counters.iter().zip(&self.node_of).filter(|(_, of)| **of == node);
        of_node.map(|(counters, _)| counters.misses() + counters.upgrades).sum()
    }

    /// Takes the words that each node has written of blocks that another node than the home has had by then, by node and
    /// number of the page (of [`PAGE_SIZE`] bytes), in ascending order.
    #[must_use]
    pub fn written(&mut self) -> BTreeMap<(Node, u64), WrittenWords> {
        for processor in 0..self.ports.len() {
            let written: Vec<(u64, u64)> = self.ports[processor].l1.written().collect();
            for (line, words) in written {
                self.watch_words(processor, line >> (self.line_shift - self.l1_shift), words);
            }
        }
        self.watch.as_mut().map(|watch| std::mem::take(&mut watch.written)).unwrap_or_default()
    }

    /// What nodes have used of pages (of [`PAGE_SIZE`] bytes) while they were the home, by node and number of the page, in
    /// lines of the second caches.
    #[must_use]
    pub fn used_at_home(&self) -> BTreeMap<(Node, u64), AtHome> {
        self.watch.as_ref().map(|watch| watch.at_home.clone()).unwrap_or_default()
    }

    /// Bytes of a line of the second caches.
    #[must_use]
    pub fn line_bytes(&self) -> u64 {
        1 << self.line_shift
    }

    /// The memory of a node gives a line to it, or takes one back.
    pub(crate) fn watch_home(&mut self, node: Node, line: u64, counter: fn(&mut AtHome) -> &mut u64) {
        if let Some(watch) = &mut self.watch {
            let page = (line << self.line_shift) >> PAGE_BITS;
            *counter(watch.at_home.entry((node, page)).or_default()) += 1;
        }
    }

    /// The first address of a line's block.
    fn block_address(&self, line: u64) -> u64 {
        (line << self.line_shift) & !(self.block_bytes - 1)
    }

    /// A node is about to make an access that its bus has to see.
    pub(crate) fn watch_begin(&mut self, node: Node, line: u64, place: Place) {
        if self.watch.is_some() {
            let (has, _) = self.copies(node, line, place);
            self.watch.as_mut().expect("it is there").has = has;
        }
    }

    /// Whether a node has a copy of a line's block, and whether a processor of it owns a line of it.
    fn copies(&mut self, node: Node, line: u64, place: Place) -> (bool, bool) {
        let members = self.members[usize::from(node)];
        let (mut held, mut owned) = (self.has_far(node, line, place) || self.has_replica(node, place), false);
        for (_, place) in self.lines.block_lines(line, place) {
            let entry = self.lines.get(place);
            held |= entry.holders & members != 0;
            owned |= entry.owner != NOBODY && members >> entry.owner & 1 == 1;
        }
        (held, owned)
    }

    /// A node's access to an address is complete.
    pub(crate) fn watch_access(&mut self, node: Node, address: u64, write: bool) {
        let block = address / self.block_bytes;
        let bytes = u32::try_from(self.block_bytes).expect("machines are checked");
        if let Some(watch) = &mut self.watch {
            watch.complete(node, address, block, write, bytes);
        }
    }

    /// A processor has written words of a line.
    pub(crate) fn watch_words(&mut self, processor: usize, line: u64, words: u64) {
        if let Some(watch) = self.watch.as_mut().filter(|_| words != 0) {
            let address = line << self.line_shift;
            watch.wrote(self.node_of[processor], address, address / self.block_bytes, words);
        }
    }

    /// A node writes a block back to its home.
    pub(crate) fn watch_write_back(&mut self, node: Node, line: u64, place: Place) {
        let (address, home) = (self.block_address(line), self.lines.home(place));
        let bytes = u32::try_from(self.block_bytes).expect("machines are checked");
        if let Some(watch) = &mut self.watch {
            watch.see(node, Kind::Diff, Direction::Out, address, bytes, home);
        }
    }

    /// The contents of a page have come from its home to another node, which is the home from now on. What other nodes had of
    /// it has gone with it.
    pub(crate) fn watch_move(&mut self, page: u32, to: Node) {
        let (home, shift) = (self.lines.page_home(page), self.line_shift);
        let (start, bytes) = (self.lines.page_start(page) << shift, self.lines.page_bytes(shift));
        let part: u32 = 1 << self.page_unit();
        let Some(watch) = &mut self.watch else { return };
        for block in start / self.block_bytes..(start + bytes) / self.block_bytes {
            watch.copies.remove(&block);
        }
        for address in (start..start + bytes).step_by(part as usize) {
            watch.see(to, Kind::Prefetched, Direction::Out, address, part, home);
        }
    }

    /// The binary logarithm of the unit in which pages that move are seen: a page of the machine or, if that is longer, of a
    /// recording.
    #[must_use]
    pub fn page_unit(&self) -> u8 {
        let bytes = self.lines.page_bytes(self.line_shift).trailing_zeros();
        u8::try_from(bytes).expect("machines are checked").min(PAGE_BITS)
    }

    /// A home is about to demand something of a node, on behalf of a requester that is another one.
    pub(crate) fn watch_demand(
        &mut self,
        demand: Demand,
        node: Node,
        requester: Node,
        line: u64,
        place: Place,
    ) {
        if self.watch.is_none() || node == requester {
            return;
        }
        let (held, owned) = self.copies(node, line, place);
        let is_home = self.lines.home(place) == node;
        let alone = self.lines.block(place).entry.state(node) == State::Modified;
        let address = self.block_address(line);
        let Some(watch) = &mut self.watch else { return };
        let mut suffer = |kind| watch.see(node, kind, Direction::In, address, 0, requester);
        if demand == Demand::Supply {
            // A home whose memory supplies gives up nothing.
            if alone && (owned || !is_home) {
                suffer(Kind::Recall);
            }
            return;
        }
        if !is_home {
            suffer(Kind::Notice);
        }
        if held {
            suffer(Kind::Invalidation);
        }
        watch.copies.entry(address / self.block_bytes).or_default().lost |= 1 << node;
    }
}
