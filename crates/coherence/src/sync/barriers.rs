use super::gathering::{Gathering, Share};
use super::tree::{FAN_IN, Tree};
use super::{BarrierMessage, BarrierViolation, Object};
use crate::{Outcome, Waiter};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The node as the machine of barriers sees it.
pub trait BarrierEnv {
    /// The node that manages a barrier: the same answer on every node.
    fn manager(&self, barrier: Object) -> NodeId;
    /// Sends a message; `to` is never this node. Messages between two nodes arrive in the order sent.
    fn send(&mut self, to: NodeId, message: &BarrierMessage);
    /// Threads have arrived: what this node wrote must be released. `Done` if it is already, otherwise the node
    /// calls [`Barriers::flushed`] when it is.
    fn release(&mut self, barrier: Object) -> Outcome;
    /// Threads of this node are about to go on: the node acquires.
    fn acquire(&mut self);
    /// A thread goes on, as the serial one or not.
    fn resume(&mut self, waiter: Waiter, serial: bool);
}

/// What barriers did on this node so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BarrierCounters {
    /// Threads of this node that arrived.
    pub arrivals: u64,
    /// Episodes of barriers that this node manages.
    pub episodes: u64,
    /// Children that were told to keep back nothing, because threads were distributed otherwise than before.
    pub hurries: u64,
}

/// One barrier on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Barrier {
    root: NodeId,
    /// How many threads make an episode, as far as this node has heard.
    count: u32,
    gathering: Gathering,
    /// Arrivals reported to the parent and not yet released.
    sent: u32,
    /// The parent expects so many together.
    expected: u32,
    /// Threads of this node, first come first.
    waiting: VecDeque<Waiter>,
    /// How many of them the flush that is under way covers.
    flushing: u32,
}

impl Barrier {
    fn new(root: NodeId) -> Self {
        Self {
            root,
            count: 0,
            gathering: Gathering::default(),
            sent: 0,
            expected: 0,
            waiting: VecDeque::new(),
            flushing: 0,
        }
    }

    /// Arrivals bring the count along. Another one belongs to a new barrier at the same address, of which nothing
    /// is agreed with the parent.
    fn note_count(&mut self, count: u32) {
        if self.count != count {
            self.count = count;
            self.expected = 0;
        }
    }

    /// True if enough threads of this node have come for a flush, which then begins.
    fn begin_flush(&mut self, me: NodeId) -> bool {
        let passed = self.gathering.received_from(me);
        let kept = self.waiting.len() as u32 - passed - self.flushing;
        if self.flushing > 0 || kept == 0 || passed + kept < self.gathering.expected_from(me) {
            return false;
        }
        self.flushing = kept;
        true
    }

    fn end_flush(&mut self, me: NodeId) {
        let threads = std::mem::take(&mut self.flushing);
        self.gathering.receive(me, threads);
    }
}

/// Barriers on one node: arrivals are gathered within the node, then along a tree of nodes whose root is the
/// barrier's manager; each parent hears once in an episode from each child, and answers once.
///
/// A barrier does not know how many of its threads live on a node, so a node expects as many as last time and
/// reports them together, after one flush. What comes beyond that, or when nothing is known, is reported at once;
/// `Gathering` tells why nobody waits for ever when the distribution has changed. The barrier's state is never
/// forgotten: an address that was a barrier once will mostly be one again.
///
/// The node calls these one at a time, under its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Barriers {
    tree: Tree,
    barriers: BTreeMap<Object, Barrier>,
    /// Empty between episodes.
    shares: Vec<Share>,
    counters: BarrierCounters,
}

impl Barriers {
    /// The machine of node `me` among `nodes`.
    #[must_use]
    pub fn new(me: NodeId, nodes: u16) -> Self {
        Self {
            tree: Tree { me, nodes, fan_in: FAN_IN },
            barriers: BTreeMap::new(),
            shares: Vec::new(),
            counters: BarrierCounters::default(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &BarrierCounters {
        &self.counters
    }

    /// A thread of this node arrives at a barrier of `count` threads (at least 1). It is resumed when they have
    /// all come, perhaps before this returns.
    pub fn arrive(&mut self, barrier: Object, count: u32, waiter: Waiter, env: &mut dyn BarrierEnv) {
        self.counters.arrivals += 1;
        let state = self.barrier(barrier, env);
        state.note_count(count);
        state.waiting.push_back(waiter);
        self.advance(barrier, env);
    }

    /// The release that [`BarrierEnv::release`] began is complete.
    pub fn flushed(&mut self, barrier: Object, env: &mut dyn BarrierEnv) {
        if let Some(state) = self.barriers.get_mut(&barrier) {
            state.end_flush(self.tree.me);
            self.advance(barrier, env);
        }
    }

    /// A message arrived.
    ///
    /// # Errors
    /// The peer broke the protocol: the run must end.
    pub fn message(
        &mut self,
        from: NodeId,
        message: BarrierMessage,
        env: &mut dyn BarrierEnv,
    ) -> Result<(), BarrierViolation> {
        let (barrier, permitted) = match message {
            BarrierMessage::Arrive { barrier, count, threads } => {
                (barrier, self.child_arrives(barrier, from, count, threads, env))
            }
            BarrierMessage::Release { barrier, count, threads, serial, expected } => {
                let permitted = self.permits_release(barrier, from, threads);
                if permitted {
                    self.release(barrier, count, threads, serial, expected, env);
                }
                (barrier, permitted)
            }
            BarrierMessage::Hurry { barrier } => (barrier, self.hurried(barrier, from)),
        };
        if !permitted {
            return Err(BarrierViolation { from, message });
        }
        self.advance(barrier, env);
        Ok(())
    }

    fn barrier(&mut self, barrier: Object, env: &dyn BarrierEnv) -> &mut Barrier {
        self.barriers.entry(barrier).or_insert_with(|| Barrier::new(env.manager(barrier)))
    }

    fn child_arrives(
        &mut self,
        barrier: Object,
        from: NodeId,
        count: u32,
        threads: u32,
        env: &dyn BarrierEnv,
    ) -> bool {
        let tree = self.tree;
        if count == 0 || threads == 0 || !tree.is_child(from, env.manager(barrier)) {
            return false;
        }
        let state = self.barrier(barrier, env);
        state.note_count(count);
        state.gathering.receive(from, threads)
    }

    fn permits_release(&self, barrier: Object, from: NodeId, threads: u32) -> bool {
        self.barriers.get(&barrier).is_some_and(|state| {
            self.tree.parent(state.root) == Some(from) && (1..=state.sent).contains(&threads)
        })
    }

    fn hurried(&mut self, barrier: Object, from: NodeId) -> bool {
        let Some(state) = self.barriers.get_mut(&barrier) else { return false };
        state.expected = 0;
        self.tree.parent(state.root) == Some(from)
    }

    /// Does whatever is due: hurries children, begins a flush, reports arrivals, completes episodes.
    fn advance(&mut self, barrier: Object, env: &mut dyn BarrierEnv) {
        let me = self.tree.me;
        loop {
            let Some(state) = self.barriers.get_mut(&barrier) else { return };
            let parent = self.tree.parent(state.root);
            let wanted = if parent.is_some() { state.expected } else { state.count };
            for node in state.gathering.restrain(wanted).into_iter().filter(|node| *node != me) {
                self.counters.hurries += 1;
                env.send(node, &BarrierMessage::Hurry { barrier });
            }
            let flushes = state.begin_flush(me);
            if flushes && env.release(barrier) == Outcome::Done {
                state.end_flush(me);
            }
            let (received, count) = (state.gathering.received(), state.count);
            match parent {
                Some(parent) if received > state.sent && received >= state.expected => {
                    let threads = received - state.sent;
                    state.sent = received;
                    env.send(parent, &BarrierMessage::Arrive { barrier, count, threads });
                }
                None if received > 0 && received >= count => {
                    self.counters.episodes += 1;
                    self.release(barrier, count, count, true, count, env);
                }
                _ if !flushes => return,
                _ => {}
            }
        }
    }

    /// `threads` arrivals go on after an episode of `count`.
    fn release(
        &mut self,
        barrier: Object,
        count: u32,
        threads: u32,
        serial: bool,
        expected: u32,
        env: &mut dyn BarrierEnv,
    ) {
        let me = self.tree.me;
        let Some(state) = self.barriers.get_mut(&barrier) else { return };
        let repeats = state.count == count;
        state.sent = state.sent.saturating_sub(threads);
        state.expected = if repeats { expected } else { 0 };
        state.gathering.release(threads, serial, repeats, &mut self.shares);
        // Whoever goes on learns with that message what it may wait for.
        let hurried = state.gathering.restrain(state.expected);
        for share in &mut self.shares {
            share.expected = state.gathering.expected_from(share.source);
        }
        let goes_on = |node: &NodeId| self.shares.iter().any(|share| share.source == *node);
        for node in hurried.into_iter().filter(|node| *node != me && !goes_on(node)) {
            self.counters.hurries += 1;
            env.send(node, &BarrierMessage::Hurry { barrier });
        }
        // Other nodes first: theirs is the longer way.
        for share in self.shares.iter().filter(|share| share.source != me) {
            let Share { source, threads, serial, expected } = *share;
            env.send(source, &BarrierMessage::Release { barrier, count, threads, serial, expected });
        }
        if let Some(own) = self.shares.iter().find(|share| share.source == me) {
            env.acquire();
            for left in (0..own.threads).rev() {
                let waiter = state.waiting.pop_front().expect("every thread that arrived waits");
                env.resume(waiter, own.serial && left == 0);
            }
        }
        self.shares.clear();
    }
}

#[cfg(test)]
impl Barriers {
    /// A machine whose tree has another fan-in, so that small tests have inner nodes.
    pub(super) fn with_fan_in(me: NodeId, nodes: u16, fan_in: u16) -> Self {
        let mut machine = Self::new(me, nodes);
        machine.tree.fan_in = fan_in;
        machine
    }

    /// True if no thread waits here and no arrival is kept.
    pub(super) fn is_quiet(&self) -> bool {
        let quiet = |state: &Barrier| state.waiting.is_empty() && state.gathering.received() == 0;
        self.barriers.values().all(quiet)
    }
}
