//! The fabric of one computer: rings in shared memory.

mod doorbell;
mod primitive;
mod ring;
mod segment;
#[cfg(test)]
mod tests;

use gondwana_locks::{lock, try_lock};
pub use segment::{DEFAULT_RING_BYTES, ShmSegment};

use crate::counters::MessageCounter;
use crate::{Counters, Deliver, Event, Fabric, LostReason, SegmentError, SendError, check_message};
use gondwana_racing::RacingBytes;
use gondwana_topology::{Id, NodeId};
use ring::{Consumer, Producer, RingControl};
use segment::{MappedLines, Mapping};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most messages that one poll takes from one ring before the next ring.
const BATCH: usize = 64;

/// One node's end of the rings that the nodes of a computer share.
///
/// The fabric does not detect the death of a peer's process; the launcher does. A peer is lost only if its ring is
/// damaged.
pub struct ShmFabric {
    map: Arc<Mapping>,
    node: NodeId,
    nodes: usize,
    /// By node. The entry of this node is unused.
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// The positions in the rings of `incoming`; the receiving thread locks them.
    consumers: Mutex<Vec<Consumer>>,
    received: Vec<MessageCounter>,
    events: Mutex<VecDeque<Event>>,
    /// The number of events, readable without the lock.
    event_count: AtomicUsize,
    /// How many bytes are in backlogs.
    unsent: AtomicUsize,
}

struct Outgoing {
    to: NodeId,
    lines: MappedLines,
    sender: Mutex<Sender>,
    /// The length of the backlog, readable without the lock.
    backlog: AtomicUsize,
    sent: MessageCounter,
    /// Set when the peer's own ring turned out to be damaged.
    lost: AtomicBool,
    /// Set once this node is in the peer's set of senders.
    begun: AtomicBool,
}

struct Sender {
    producer: Producer,
    backlog: VecDeque<Backlogged>,
}

/// A message that the ring could not take yet.
struct Backlogged {
    head: Box<[u8]>,
    bulk: Box<[u8]>,
}

struct Incoming {
    from: NodeId,
    lines: MappedLines,
    damaged: AtomicBool,
}

impl ShmFabric {
    /// Joins the segment as `node` of `nodes`. The descriptor is needed during the call only.
    ///
    /// # Errors
    /// If the descriptor is not a segment for so many nodes, if the node has been attached before, or if the
    /// segment cannot be mapped.
    pub fn attach(segment: impl AsFd, node: NodeId, nodes: usize) -> Result<Self, SegmentError> {
        let map = Arc::new(Mapping::attach(segment.as_fd(), node, nodes)?);
        let all = || (0..nodes).map(NodeId::from_index);
        let outgoing = all().map(|to| Outgoing {
            to,
            lines: map.ring(node, to),
            sender: Mutex::new(Sender { producer: Producer::new(), backlog: VecDeque::new() }),
            backlog: AtomicUsize::new(0),
            sent: MessageCounter::default(),
            lost: AtomicBool::new(false),
            begun: AtomicBool::new(false),
        });
        let incoming =
            all().map(|from| Incoming { from, lines: map.ring(from, node), damaged: AtomicBool::new(false) });
        let incoming: Vec<_> = incoming.collect();
        Ok(Self {
            node,
            nodes,
            outgoing: outgoing.collect(),
            consumers: Mutex::new(incoming.iter().map(|_| Consumer::new()).collect()),
            incoming,
            received: all().map(|_| MessageCounter::default()).collect(),
            events: Mutex::default(),
            event_count: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
            map,
        })
    }

    /// Moves messages from the backlogs into the rings, as far as there is room.
    fn drain(&self) {
        if self.unsent.load(Ordering::Relaxed) == 0 {
            return;
        }
        for out in &self.outgoing {
            if out.backlog.load(Ordering::Relaxed) > 0 && self.drain_one(out, &mut lock(&out.sender)) {
                self.map.doorbell(out.to).ring();
            }
        }
    }

    /// Moves messages from one backlog into its ring, as far as there is room; true if it moved any.
    fn drain_one(&self, out: &Outgoing, sender: &mut Sender) -> bool {
        let control = self.map.control(self.node, out.to);
        let mut moved = false;
        while let Some(message) = sender.backlog.front() {
            if !sender.producer.push_or_block(&out.lines, control, &message.head, &[(&*message.bulk).into()])
            {
                break;
            }
            self.unsent.fetch_sub(message.head.len() + message.bulk.len(), Ordering::Relaxed);
            sender.backlog.pop_front();
            moved = true;
        }
        out.backlog.store(sender.backlog.len(), Ordering::Relaxed);
        moved
    }

    /// True if a poll has work. It checks the rings even while another thread polls them: that thread may just have
    /// found them empty, and stop.
    fn is_ready(&self) -> bool {
        self.has_arrived() || self.has_work()
    }

    /// As [`ShmFabric::is_ready`], without messages of `leave` for which no `prompt` has come.
    fn is_urgent(&self) -> bool {
        self.any_ring(RingControl::is_urgent) || self.has_work()
    }

    /// True if this is true of any ring of messages for this node.
    fn any_ring(&self, holds: impl Fn(&RingControl, &MappedLines) -> bool) -> bool {
        self.senders().any(|Incoming { from, lines, damaged }| {
            holds(self.map.control(*from, self.node), lines) && !damaged.load(Ordering::Relaxed)
        })
    }

    /// The rings of the nodes that have ever sent anything.
    fn senders(&self) -> impl Iterator<Item = &Incoming> {
        // Another process may have set bits of nodes that do not exist.
        self.map.senders(self.node).numbers().filter_map(|number| self.incoming.get(number))
    }

    /// Makes the peer poll this ring from now on. Called before the first message is published.
    fn begin(&self, out: &Outgoing) {
        if !out.begun.load(Ordering::Relaxed) {
            self.map.senders(out.to).note(self.node);
            out.begun.store(true, Ordering::Relaxed);
        }
    }

    /// True if there are events, or backlogs that have room now.
    fn has_work(&self) -> bool {
        let has_room = |out: &Outgoing| {
            out.backlog.load(Ordering::Relaxed) > 0 && !self.map.control(self.node, out.to).is_blocked()
        };
        self.event_count.load(Ordering::Relaxed) > 0
            || self.unsent.load(Ordering::Relaxed) > 0 && self.outgoing.iter().any(has_room)
    }

    fn report(&self, event: Event) {
        let mut events = lock(&self.events);
        events.push_back(event);
        self.event_count.store(events.len(), Ordering::Relaxed);
        drop(events);
        self.interrupt();
    }
}

impl Fabric for ShmFabric {
    fn node(&self) -> NodeId {
        self.node
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn send(&self, to: NodeId, head: &[u8], bulk: &[RacingBytes<'_>]) -> Result<(), SendError> {
        self.publish(to, head, bulk)?;
        self.ring(to);
        Ok(())
    }

    fn publish(&self, to: NodeId, head: &[u8], bulk: &[RacingBytes<'_>]) -> Result<(), SendError> {
        let bytes = head.len() + check_message((self.node, self.nodes), to, head, bulk)?;
        let out = &self.outgoing[to.index()];
        if out.lost.load(Ordering::Relaxed) {
            return Err(SendError::Lost(to));
        }
        let mut sender = lock(&out.sender);
        self.begin(out);
        out.sent.count(bytes);
        if !sender.backlog.is_empty() {
            self.drain_one(out, &mut sender);
        }
        let control = self.map.control(self.node, to);
        if !sender.backlog.is_empty() || !sender.producer.push_or_block(&out.lines, control, head, bulk) {
            sender.backlog.push_back(Backlogged { head: head.into(), bulk: joined(bulk) });
            self.unsent.fetch_add(bytes, Ordering::Relaxed);
            out.backlog.store(sender.backlog.len(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn ring(&self, to: NodeId) {
        self.map.doorbell(to).ring();
    }

    fn leave(&self, to: NodeId, head: &[u8]) -> Result<(), SendError> {
        check_message((self.node, self.nodes), to, head, &[])?;
        let out = &self.outgoing[to.index()];
        let mut sender = lock(&out.sender);
        self.begin(out);
        let control = self.map.control(self.node, to);
        let can_wait = sender.backlog.is_empty() && !out.lost.load(Ordering::Relaxed);
        if !can_wait || !sender.producer.leave(&out.lines, control, head) {
            drop(sender);
            return self.send(to, head, &[]);
        }
        out.sent.count(head.len());
        drop(sender);
        self.map.doorbell(to).ring_for_waiters();
        Ok(())
    }

    fn prompt(&self, to: NodeId) {
        let Some(out) = self.outgoing.get(to.index()) else { return };
        let control = self.map.control(self.node, to);
        if out.begun.load(Ordering::Relaxed) && lock(&out.sender).producer.urge(control) {
            self.map.doorbell(to).ring();
        }
    }

    fn has_arrived(&self) -> bool {
        self.any_ring(RingControl::is_ready)
    }

    fn poll(&self, deliver: &mut Deliver<'_>) -> usize {
        // Most polls find nothing, so they do not take the lock.
        if !self.is_ready() {
            return 0;
        }
        let Some(mut consumers) = try_lock(&self.consumers) else { return 0 };
        self.drain();
        let mut total = 0;
        for Incoming { from, lines, damaged } in self.senders() {
            let consumer = &mut consumers[from.index()];
            if damaged.load(Ordering::Relaxed) {
                continue;
            }
            let control = self.map.control(*from, self.node);
            let counter = &self.received[from.index()];
            let mut taken = 0;
            while taken < BATCH {
                match consumer.pop(lines, control, |head, bulk| deliver(*from, head, bulk)) {
                    Ok(Some(bytes)) => counter.count(bytes),
                    Ok(None) => break,
                    Err(ring::Damaged) => {
                        damaged.store(true, Ordering::Relaxed);
                        self.outgoing[from.index()].lost.store(true, Ordering::Relaxed);
                        self.report(Event::Lost(*from, LostReason::Damaged("no such record in its ring")));
                        break;
                    }
                }
                taken += 1;
            }
            if taken > 0 && consumer.take_blocked(control) {
                self.map.doorbell(*from).ring();
            }
            total += taken;
        }
        total
    }

    fn wait(&self, timeout: Option<Duration>) {
        self.map.doorbell(self.node).sleep(timeout, || self.is_ready());
    }

    fn interrupt(&self) {
        self.map.doorbell(self.node).interrupt();
    }

    fn begin_polling(&self) {
        self.map.doorbell(self.node).begin_polling();
    }

    fn end_polling(&self) {
        let ready = |any_waits| if any_waits { self.is_ready() } else { self.is_urgent() };
        self.map.doorbell(self.node).end_polling(ready);
    }

    fn begin_waiting(&self) {
        self.map.doorbell(self.node).begin_waiting(|| self.is_ready());
    }

    fn end_waiting(&self) {
        self.map.doorbell(self.node).end_waiting();
    }

    fn is_polled(&self) -> bool {
        self.map.doorbell(self.node).is_polled()
    }

    fn next_event(&self) -> Option<Event> {
        if self.event_count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut events = lock(&self.events);
        let event = events.pop_front();
        self.event_count.store(events.len(), Ordering::Relaxed);
        event
    }

    fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }

    fn counters(&self) -> Counters {
        Counters::sum(self.outgoing.iter().map(|out| &out.sent), self.received.iter())
    }
}

/// A private copy of all pieces.
fn joined(pieces: &[RacingBytes<'_>]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
    pieces.iter().for_each(|piece| piece.append_to(&mut bytes));
    bytes.into()
}
