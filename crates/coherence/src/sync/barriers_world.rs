//! Nodes with threads that wait at barriers, wires between them, and flushes that take their time: what the tests
//! and the model checker drive.

use super::{BarrierEnv, BarrierMessage, Barriers, Object};
use crate::{Outcome, Waiter};
use gondwana_page::to_usize;
use gondwana_topology::{Id, NodeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One step of a thread's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    /// Waits at a barrier of so many threads.
    Wait { barrier: u64, count: u32 },
    /// Goes on when so many threads in all have returned from the barrier: whatever tells the thread that the
    /// barrier is over, or starts it then.
    After { barrier: u64, returns: u32 },
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Step(usize),
    Deliver(NodeId, NodeId),
    Flushed(NodeId, Object),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Runner {
    node: NodeId,
    pc: usize,
    waits: bool,
    /// Returns so far, by barrier and count.
    returns: BTreeMap<(u64, u32), u32>,
}

/// Arrivals at a barrier while it has one count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Counted {
    arrived: u32,
    returned: u32,
    serial: u32,
}

/// An arrival: thread and step.
type Arrival = (usize, usize);

/// Counts of messages, for tests of cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub arrivals: u32,
    pub releases: u32,
    pub hurries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    nodes: Vec<Barriers>,
    runners: Vec<Runner>,
    around: Around,
}

/// All of the world that the machines act on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Around {
    nodes: u16,
    instant: bool,
    wires: BTreeMap<(NodeId, NodeId), VecDeque<BarrierMessage>>,
    /// How many messages, the last of each wire, were left: without another one behind them they may stay there for ever.
    left: BTreeMap<(NodeId, NodeId), usize>,
    /// Threads whose reports were left: when they have waited for a while, the messages of their node are taken.
    reported: BTreeMap<NodeId, usize>,
    /// Flushes under way, with what the node saw when they began.
    flushing: BTreeMap<(NodeId, Object), BTreeSet<Arrival>>,
    /// An arrival stands for what the thread wrote before it: who sees it, and what is released.
    seen: BTreeMap<NodeId, BTreeSet<Arrival>>,
    released: BTreeSet<Arrival>,
    counts: BTreeMap<(u64, u32), Counted>,
    resumed: Vec<(usize, bool)>,
    sent: Option<Sent>,
    broken: Option<&'static str>,
}

struct At<'a> {
    me: NodeId,
    around: &'a mut Around,
}

impl At<'_> {
    fn put(&mut self, to: NodeId, message: &BarrierMessage) {
        if to == self.me {
            self.around.broken = Some("a node sent itself a message");
        }
        if let Some(sent) = &mut self.around.sent {
            match message {
                BarrierMessage::Arrive { .. } => sent.arrivals += 1,
                BarrierMessage::Release { .. } | BarrierMessage::Permit { .. } => sent.releases += 1,
                BarrierMessage::Hurry { .. } | BarrierMessage::Decline { .. } => sent.hurries += 1,
            }
        }
        self.around.wires.entry((self.me, to)).or_default().push_back(*message);
    }
}

impl BarrierEnv for At<'_> {
    fn manager(&self, barrier: Object) -> NodeId {
        NodeId::from_index(to_usize(barrier.0 % u64::from(self.around.nodes)))
    }

    fn send(&mut self, to: NodeId, message: &BarrierMessage) {
        self.around.left.remove(&(self.me, to));
        self.put(to, message);
    }

    fn leave(&mut self, to: NodeId, message: &BarrierMessage) {
        *self.around.left.entry((self.me, to)).or_default() += 1;
        self.put(to, message);
    }

    fn release(&mut self, barrier: Object) -> Outcome {
        let seen = self.around.seen.entry(self.me).or_default().clone();
        if self.around.instant {
            self.around.released.extend(seen);
            return Outcome::Done;
        }
        if self.around.flushing.insert((self.me, barrier), seen).is_some() {
            self.around.broken = Some("a second flush began before the first had ended");
        }
        Outcome::Wait
    }

    fn acquire(&mut self, _barrier: Object) {
        let released = self.around.released.clone();
        self.around.seen.entry(self.me).or_default().extend(released);
    }

    fn resume(&mut self, waiter: Waiter, serial: bool) {
        self.around.resumed.push((to_usize(waiter.0), serial));
    }
}

impl World {
    /// `threads[node]` are the numbers of threads; barrier `n` is managed by node `n % nodes`.
    pub(super) fn new(threads: &[usize], fan_in: u16, instant: bool) -> Self {
        let count = u16::try_from(threads.len()).expect("as many as nodes have numbers");
        let ids = (0..count).map(NodeId);
        let runner = |node| Runner { node, pc: 0, waits: false, returns: BTreeMap::new() };
        Self {
            nodes: ids.clone().map(|node| Barriers::with_fan_in(node, count, fan_in)).collect(),
            runners: ids.flat_map(|node| vec![runner(node); threads[node.index()]]).collect(),
            around: Around { nodes: count, instant, ..Around::default() },
        }
    }

    /// Counts messages from here on; returns those counted so far.
    pub(super) fn count_messages(&mut self) -> Sent {
        self.around.sent.replace(Sent::default()).unwrap_or_default()
    }

    /// Everything that can happen now, if thread `i` runs `programs[i]`.
    pub(super) fn events(&self, programs: &[Vec<Op>], out: &mut Vec<Event>) {
        for (index, (runner, program)) in self.runners.iter().zip(programs).enumerate() {
            let possible = match program.get(runner.pc) {
                Some(Op::Wait { .. }) => !runner.waits,
                Some(Op::After { barrier, returns }) => {
                    let counts = self.around.counts.iter().filter(|((number, _), _)| number == barrier);
                    counts.map(|(_, counted)| counted.returned).sum::<u32>() >= *returns
                }
                None => false,
            };
            if possible {
                out.push(Event::Step(index));
            }
        }
        out.extend(self.around.wires.keys().map(|(from, to)| Event::Deliver(*from, *to)));
        out.extend(self.around.flushing.keys().map(|(node, barrier)| Event::Flushed(*node, *barrier)));
    }

    /// True if nothing need happen any more: what was left for a node may be taken or not.
    pub(super) fn may_rest(&self, programs: &[Vec<Op>]) -> bool {
        let mut events = Vec::new();
        self.events(programs, &mut events);
        let Around { wires, left, reported, .. } = &self.around;
        events.iter().all(|event| match event {
            Event::Deliver(from, to) => {
                let prompts = reported.get(from).is_some_and(|thread| self.runners[*thread].waits);
                let waits = self.runners.iter().any(|runner| runner.waits && runner.node == *to);
                let wire = (*from, *to);
                !prompts && !waits && left.get(&wire) == wires.get(&wire).map(VecDeque::len).as_ref()
            }
            _ => false,
        })
    }

    pub(super) fn happen(&mut self, event: Event, programs: &[Vec<Op>]) {
        match event {
            Event::Step(index) => self.step(index, programs),
            Event::Deliver(from, to) => {
                let Some(wire) = self.around.wires.get_mut(&(from, to)) else { return };
                let Some(message) = wire.pop_front() else { return };
                if let Some(left) = self.around.left.get_mut(&(from, to)) {
                    *left = wire.len().min(*left);
                }
                if wire.is_empty() {
                    self.around.wires.remove(&(from, to));
                    self.around.left.remove(&(from, to));
                }
                let mut env = At { me: to, around: &mut self.around };
                if self.nodes[to.index()].message(from, message, &mut env).is_err() {
                    self.around.broken = Some("a machine refused a message");
                }
            }
            Event::Flushed(node, barrier) => {
                let covered = self.around.flushing.remove(&(node, barrier)).unwrap_or_default();
                self.around.released.extend(covered);
                self.nodes[node.index()].flushed(barrier, &mut At { me: node, around: &mut self.around });
            }
        }
        for (index, serial) in std::mem::take(&mut self.around.resumed) {
            self.leave(index, serial, programs);
        }
    }

    fn step(&mut self, index: usize, programs: &[Vec<Op>]) {
        let Runner { node, pc, .. } = self.runners[index];
        let Op::Wait { barrier, count } = programs[index][pc] else {
            self.runners[index].pc += 1;
            return;
        };
        self.runners[index].waits = true;
        self.around.seen.entry(node).or_default().insert((index, pc));
        self.around.counts.entry((barrier, count)).or_default().arrived += 1;
        let mut env = At { me: node, around: &mut self.around };
        let left = self.nodes[node.index()].arrive(Object(barrier), count, Waiter(index as u64), &mut env);
        if left.is_some() {
            self.around.reported.insert(node, index);
        }
    }

    /// The thread returns from the barrier of its present step.
    fn leave(&mut self, index: usize, serial: bool, programs: &[Vec<Op>]) {
        let runner = &mut self.runners[index];
        if !std::mem::take(&mut runner.waits) {
            self.around.broken = Some("a thread was resumed that did not wait");
            return;
        }
        let Op::Wait { barrier, count } = programs[index][runner.pc] else {
            self.around.broken = Some("a thread was resumed elsewhere");
            return;
        };
        runner.pc += 1;
        let times = runner.returns.entry((barrier, count)).or_default();
        *times += 1;
        let same = |(thread, pc): &&Arrival| programs[*thread][*pc] == Op::Wait { barrier, count };
        let seen = self.around.seen.get(&runner.node).map_or(0, |seen| seen.iter().filter(same).count());
        if seen < (*times * count) as usize {
            self.around.broken = Some("a thread does not see what was written before the barrier");
        }
        let counted = self.around.counts.entry((barrier, count)).or_default();
        counted.returned += 1;
        counted.serial += u32::from(serial);
        let complete = counted.arrived / count;
        if counted.returned > complete * count {
            self.around.broken = Some("a thread returned before all had come");
        }
        if counted.serial > complete {
            self.around.broken = Some("an episode has two serial threads");
        }
    }

    /// Nothing happened that must not.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.around.broken
    }

    /// As many threads have returned from each barrier as can, one of each episode as the serial thread. Holds
    /// whenever nothing more can happen.
    pub(super) fn all_episodes_are_over(&self) -> bool {
        self.around.counts.iter().all(|((_, count), counted)| {
            let episodes = counted.arrived / count;
            counted.returned == episodes * count && counted.serial == episodes
        })
    }

    /// All programs have ended and nothing is kept anywhere.
    pub(super) fn is_finished(&self, programs: &[Vec<Op>]) -> bool {
        let ended = |(runner, program): (&Runner, &Vec<Op>)| runner.pc == program.len();
        self.runners.iter().zip(programs).all(ended) && self.nodes.iter().all(Barriers::is_quiet)
    }
}
