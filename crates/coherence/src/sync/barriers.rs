//! All barriers of one node as a state machine: arrivals are gathered in the node, then along a tree of nodes whose root is
//! the barrier's manager. The design note `synchronisation.md` gives the reasons.

use super::barrier::{Barrier, Permitted};
use super::gathering::Share;
use super::tree::{FAN_IN, Tree};
use super::{BarrierMessage, BarrierViolation, Object};
use crate::{Outcome, Waiter};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The node as the machine of barriers sees it.
pub trait BarrierEnv {
    /// The node that manages a barrier: the same answer on every node.
    fn manager(&self, barrier: Object) -> NodeId;
    /// Sends a message; `to` is never this node. Messages between two nodes arrive in the order sent.
    fn send(&mut self, to: NodeId, message: &BarrierMessage);
    /// As [`BarrierEnv::send`], but the node need not hear of it before one of its threads is at a barrier, or, if it is about the
    /// thread that is arriving here, before that one has waited for a while.
    fn leave(&mut self, to: NodeId, message: &BarrierMessage);
    /// Threads have arrived: what this node wrote must be released. `Done` if it is already, otherwise the node
    /// calls [`Barriers::flushed`] when it is.
    fn release(&mut self, barrier: Object) -> Outcome;
    /// Threads of this node are about to go on: the node acquires.
    fn acquire(&mut self, barrier: Object);
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

/// Barriers on one node: arrivals are gathered within the node, then along a tree of nodes whose root is the
/// barrier's manager; each parent hears once in an episode from each child, and answers once.
///
/// A barrier does not know how many of its threads live on a node, so a node expects as many as last time and
/// reports them together, after one flush. What comes beyond that, or when nothing is known, is reported at once;
/// `Gathering` tells why nobody waits for ever when the distribution has changed. The barrier's state is never
/// forgotten: an address that was a barrier once will mostly be one again.
///
/// Where there are two nodes, whoever is last need not wait for an answer: a root whose own threads have come permits its child to
/// go on as soon as the rest have come there. Its report then ends the episode on both nodes. (With more nodes, the others
/// would have to hear of that report from the root in any case.)
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

    /// The barriers at which threads of this node wait, with the counts of threads that make an episode.
    pub fn awaited(&self) -> impl Iterator<Item = (Object, u32)> {
        let with_waiting = self.barriers.iter().filter(|(_, state)| !state.waiting.is_empty());
        with_waiting.map(|(barrier, state)| (*barrier, state.count))
    }

    /// A thread of this node arrives at a barrier of `count` threads (at least 1). It is resumed when they have
    /// all come, perhaps before this returns. The node for which its report was left, if it was: the thread sees to it that the
    /// node hears of it when it has waited for a while.
    pub fn arrive(
        &mut self,
        barrier: Object,
        count: u32,
        waiter: Waiter,
        env: &mut dyn BarrierEnv,
    ) -> Option<NodeId> {
        self.counters.arrivals += 1;
        let tree = self.tree;
        let state = self.barrier(barrier, env);
        state.waiting.push_back(waiter);
        if state.note_count(count)
            && let Some(parent) = tree.parent(state.root)
        {
            env.send(parent, &BarrierMessage::Decline { barrier });
        }
        self.advance(barrier, true, env)
    }

    /// The release that [`BarrierEnv::release`] began is complete.
    pub fn flushed(&mut self, barrier: Object, env: &mut dyn BarrierEnv) {
        if let Some(state) = self.barriers.get_mut(&barrier) {
            state.end_flush(self.tree.me);
            self.advance(barrier, false, env);
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
        let (barrier, possible) = match message {
            BarrierMessage::Arrive { barrier, count, threads } => {
                (barrier, self.child_arrives(barrier, from, count, threads, env))
            }
            BarrierMessage::Release { barrier, count, threads, serial, expected } => {
                let possible = self.can_release(barrier, from, threads);
                let episode = Episode { count, threads, serial, expected, permitted: None };
                if possible && !self.release(barrier, episode, env) {
                    return Ok(());
                }
                (barrier, possible)
            }
            BarrierMessage::Permit { barrier, count, threads } => {
                (barrier, self.take_permit(barrier, from, count, threads, env))
            }
            BarrierMessage::Decline { barrier } => (barrier, self.permit_declined(barrier, from)),
            BarrierMessage::Hurry { barrier } => (barrier, self.hurried(barrier, from, env)),
        };
        if !possible {
            return Err(BarrierViolation { from, message });
        }
        self.advance(barrier, false, env);
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
        let state = self.barrier(barrier, env);
        if count == 0 || threads == 0 || !tree.is_child(from, state.root) {
            return false;
        }
        // The rest of an episode that was permitted may come after the first arrival of another count.
        let more = state.settle(from, count, threads);
        if more == 0 {
            return true;
        }
        state.note_count(count);
        state.gathering.receive(from, more)
    }

    /// A barrier at which a node is this one's parent.
    fn child_of(&mut self, parent: NodeId, barrier: Object) -> Option<&mut Barrier> {
        let tree = self.tree;
        self.barriers.get_mut(&barrier).filter(|state| tree.parent(state.root) == Some(parent))
    }

    fn can_release(&mut self, barrier: Object, from: NodeId, threads: u32) -> bool {
        self.child_of(from, barrier).is_some_and(|state| (1..=state.sent.total()).contains(&threads))
    }

    fn take_permit(
        &mut self,
        barrier: Object,
        from: NodeId,
        count: u32,
        threads: u32,
        env: &mut dyn BarrierEnv,
    ) -> bool {
        let possible = self.tree.nodes == 2 && threads > 0;
        let state = self.child_of(from, barrier).filter(|state| possible && state.permit == 0);
        let Some(state) = state else { return false };
        if state.sent.first(count) >= threads {
            self.release(barrier, Episode::permitted(count, threads), env);
        } else if state.sent.total() == 0 && state.count == count {
            state.permit = threads;
        } else {
            // What was reported meanwhile was not what was to be expected.
            state.expected = 0;
            env.send(from, &BarrierMessage::Decline { barrier });
        }
        true
    }

    fn permit_declined(&mut self, barrier: Object, from: NodeId) -> bool {
        let Some(state) = self.barriers.get_mut(&barrier) else { return false };
        let Some(permitted) = state.permitted.take_if(|permitted| permitted.child == from) else {
            return false;
        };
        state.gathering.withdraw(from, permitted.missing);
        state.gathering.expect_nothing(from);
        true
    }

    fn hurried(&mut self, barrier: Object, from: NodeId, env: &mut dyn BarrierEnv) -> bool {
        let Some(state) = self.child_of(from, barrier) else { return false };
        state.expected = 0;
        if std::mem::take(&mut state.permit) > 0 {
            env.send(from, &BarrierMessage::Decline { barrier });
        }
        true
    }

    /// Does whatever is due: hurries children, begins a flush, reports arrivals, completes episodes. The thread that `arrives` will
    /// wait; the node for which its report was left.
    fn advance(&mut self, barrier: Object, arrives: bool, env: &mut dyn BarrierEnv) -> Option<NodeId> {
        let me = self.tree.me;
        let mut left = None;
        loop {
            let Some(state) = self.barriers.get_mut(&barrier) else { return left };
            let parent = self.tree.parent(state.root);
            let wanted = if parent.is_some() { state.expected } else { state.count };
            for node in state.gathering.restrain(wanted).into_iter().filter(|node| *node != me) {
                hurry(node, barrier, &mut self.counters, env);
            }
            let flushes = state.begin_flush(me);
            if flushes && env.release(barrier) == Outcome::Done {
                state.end_flush(me);
            }
            let (received, count) = (state.gathering.received(), state.count);
            match parent {
                Some(parent)
                    if received > state.sent.total() && received >= state.expected.max(state.permit) =>
                {
                    let threads = received - state.sent.total();
                    state.sent.add(count, threads);
                    let permit = std::mem::take(&mut state.permit);
                    let permitted = permit > 0;
                    let report = BarrierMessage::Arrive { barrier, count, threads };
                    // A root whose own threads are missing need not be interrupted: they will look.
                    let is_missed = (1..count).contains(&state.expected) && self.tree.nodes == 2;
                    if arrives && is_missed && !permitted {
                        env.leave(parent, &report);
                        left = Some(parent);
                    } else {
                        env.send(parent, &report);
                    }
                    if permitted && !self.release(barrier, Episode::permitted(count, permit), env) {
                        return left;
                    }
                }
                None if state.permitted.is_some() => {
                    let ends = self.end_permitted(barrier, env);
                    if !ends && !flushes {
                        return left;
                    }
                }
                None if received > 0 && received >= count => {
                    let others_wait = self.release(barrier, Episode::whole(count), env);
                    if !others_wait {
                        return left;
                    }
                }
                None if self.tree.nodes == 2
                    && let Some(Permitted { child, threads, .. }) = state.permit(NodeId(1 - me.0)) =>
                {
                    // As long as nobody has come there, it would only interrupt.
                    env.leave(child, &BarrierMessage::Permit { barrier, count, threads });
                }
                _ if !flushes => return left,
                _ => {}
            }
        }
    }

    /// Goes on with an episode of which a child was permitted its part: true if that has been reported. If more has arrived
    /// meanwhile, perhaps in its stead, the child is hurried.
    fn end_permitted(&mut self, barrier: Object, env: &mut dyn BarrierEnv) -> bool {
        let Some(state) = self.barriers.get_mut(&barrier) else { return false };
        let Some(permitted) = &mut state.permitted else { return false };
        if permitted.missing > 0 {
            if state.gathering.received() > permitted.count && !permitted.hurried {
                permitted.hurried = true;
                hurry(permitted.child, barrier, &mut self.counters, env);
            }
            return false;
        }
        let whole = Episode::whole(permitted.count);
        let episode = Episode { permitted: state.permitted.take(), ..whole };
        self.release(barrier, episode, env);
        true
    }

    /// Arrivals go on. True if there are others, about which something may be due; as long as there are none, nothing is.
    fn release(&mut self, barrier: Object, episode: Episode, env: &mut dyn BarrierEnv) -> bool {
        let Episode { count, threads, serial, expected, permitted } = episode;
        let me = self.tree.me;
        let Some(state) = self.barriers.get_mut(&barrier) else { return false };
        let is_root = self.tree.parent(state.root).is_none();
        self.counters.episodes += u64::from(is_root);
        let repeats = state.count == count;
        state.sent.release(threads);
        state.expected = if repeats { expected } else { 0 };
        state.gathering.release(threads, serial, repeats, &mut self.shares);
        if let Some(Permitted { child, hurried: true, .. }) = permitted {
            state.gathering.expect_nothing(child);
        }
        let mut hurried = state.gathering.restrain(state.expected);
        if let Some(Permitted { child, threads, hurried: knows, .. }) = permitted {
            // It goes on, and keeps arrivals back, as it was told with the permit.
            self.shares.retain(|share| share.source != child);
            if !knows && !hurried.contains(&child) && state.gathering.expected_from(child) != threads {
                hurried.push(child);
            }
        }
        // Whoever goes on now learns with that message what it may wait for.
        for share in &mut self.shares {
            share.expected = state.gathering.expected_from(share.source);
        }
        let goes_on = |node: &NodeId| self.shares.iter().any(|share| share.source == *node);
        for node in hurried.into_iter().filter(|node| *node != me && !goes_on(node)) {
            hurry(node, barrier, &mut self.counters, env);
        }
        // Other nodes first: theirs is the longer way.
        for share in self.shares.iter().filter(|share| share.source != me) {
            let Share { source, threads, serial, expected } = *share;
            env.send(source, &BarrierMessage::Release { barrier, count, threads, serial, expected });
        }
        if let Some(own) = self.shares.iter().find(|share| share.source == me) {
            env.acquire(barrier);
            for left in (0..own.threads).rev() {
                let waiter = state.waiting.pop_front().expect("every thread that arrived waits");
                env.resume(waiter, own.serial && left == 0);
            }
        }
        self.shares.clear();
        !state.is_idle()
    }
}

/// Tells a child to keep back nothing.
fn hurry(child: NodeId, barrier: Object, counters: &mut BarrierCounters, env: &mut dyn BarrierEnv) {
    counters.hurries += 1;
    env.send(child, &BarrierMessage::Hurry { barrier });
}

/// What arrivals go on after.
#[derive(Clone, Copy)]
struct Episode {
    /// How many threads made it.
    count: u32,
    /// How many of them go on here or below.
    threads: u32,
    /// One of them is the serial thread.
    serial: bool,
    /// So many may be kept back next time.
    expected: u32,
    /// A child goes on without being told again.
    permitted: Option<Permitted>,
}

impl Episode {
    /// All its threads go on.
    fn whole(count: u32) -> Self {
        Self { count, threads: count, serial: true, expected: count, permitted: None }
    }

    /// The threads that were permitted to go on.
    fn permitted(count: u32, threads: u32) -> Self {
        Self { count, threads, serial: true, expected: threads, permitted: None }
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
        self.barriers.values().all(Barrier::is_idle)
    }
}
