//! Nodes with threads that lock and unlock, wires between them, and flushes that take their time: what the
//! tests and the model checker drive.

use super::entry::Word;
use super::locks::Limits;
use super::{
    Entry, Fast, Kind, LockEnv, LockGrant, LockMessage, Locks, ManagerOf, Object, Thread, TryOutcome,
};
use crate::{Outcome, Waiter};
use gondwana_page::to_usize;
use gondwana_topology::{Id, NodeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// One step of a thread's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Lock(u64),
    /// May be given up while it waits.
    Timed(u64),
    /// If it fails, the thread goes on after the matching unlock.
    Try(u64),
    Unlock(u64),
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Step(usize),
    GiveUp(usize),
    Deliver(NodeId, NodeId),
    Flushed(NodeId, Object),
    LetGo(NodeId),
    /// The node asks for a token that no thread of it waits for.
    Early(NodeId, Object),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Runner {
    pub node: NodeId,
    pub pc: usize,
    pub waits: bool,
    pub holds: BTreeSet<u64>,
    /// Somebody has held the mutex since this thread's trylock began.
    met: bool,
}

/// A machine that can be compared and copied.
#[derive(Debug)]
struct Machine(Locks);

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.essence())
    }
}

impl Clone for Machine {
    fn clone(&self) -> Self {
        Self(self.0.duplicate())
    }
}

impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.0.essence() == other.0.essence()
    }
}

impl Hash for Machine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.essence().hash(state);
    }
}

#[derive(Clone, Debug, PartialEq, Hash)]
pub(super) struct World {
    nodes: Vec<Machine>,
    pub runners: Vec<Runner>,
    around: Around,
}

/// All of the world that the machines act on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Around {
    wires: BTreeMap<(NodeId, NodeId), VecDeque<LockMessage>>,
    flushing: BTreeSet<(NodeId, Object)>,
    /// Flushes complete at once.
    instant: bool,
    /// Critical sections so far, by mutex; and how many of them each node, everybody, and who gets the token can see.
    sections: BTreeMap<u64, u32>,
    seen: BTreeMap<(NodeId, u64), u32>,
    released: BTreeMap<u64, u32>,
    travelling: BTreeMap<u64, u32>,
    passed_to_all: BTreeSet<(NodeId, Object)>,
    resumed: Vec<(usize, LockGrant)>,
    /// The common mutexes, each with the thread that holds it.
    common: BTreeMap<u64, Option<usize>>,
    broken: Option<&'static str>,
}

struct At<'a> {
    me: NodeId,
    around: &'a mut Around,
}

impl Around {
    /// What a node has released before the token leaves is known where that arrives; or everywhere, if it was passed to all.
    fn release(&mut self, node: NodeId, object: Object) {
        let seen = self.seen.get(&(node, object.0)).copied().unwrap_or_default();
        let to_all = self.passed_to_all.remove(&(node, object));
        let known = if to_all { &mut self.released } else { &mut self.travelling };
        known.insert(object.0, seen);
    }
}

impl LockEnv for At<'_> {
    fn send(&mut self, to: NodeId, message: &LockMessage) {
        if to == self.me {
            self.around.broken = Some("a node sent itself a message");
        }
        self.around.wires.entry((self.me, to)).or_default().push_back(*message);
    }

    fn pass(&mut self, object: Object, to: Option<NodeId>) -> Outcome {
        if to.is_none() {
            self.around.passed_to_all.insert((self.me, object));
        }
        if self.around.instant {
            self.around.release(self.me, object);
            return Outcome::Done;
        }
        self.around.flushing.insert((self.me, object));
        Outcome::Wait
    }

    fn arrived(&mut self, object: Object, _from: NodeId) {
        let released = self.around.released.get(&object.0).copied().unwrap_or_default();
        let travelled = self.around.travelling.get(&object.0).copied().unwrap_or_default();
        self.around.seen.insert((self.me, object.0), released.max(travelled));
    }

    /// Everything happens soon.
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn is_active(&self) -> bool {
        true
    }

    fn can_be_common(&self) -> bool {
        true
    }

    fn make_common(&mut self, object: Object) -> bool {
        if self.around.common.insert(object.0, None).is_some() {
            self.around.broken = Some("a mutex became common twice");
        }
        true
    }

    fn is_common(&mut self, object: Object) -> bool {
        self.around.common.contains_key(&object.0)
    }

    fn resume(&mut self, waiter: Waiter, grant: LockGrant) {
        self.around.resumed.push((to_usize(waiter.0), grant));
    }
}

impl World {
    /// `programs[node]` are the numbers of threads; mutex `n` is managed by node `n % nodes`.
    pub(super) fn new(threads: &[usize], limits: Limits, instant: bool) -> Self {
        let count = threads.len() as u64;
        let manager: ManagerOf = Arc::new(move |object| NodeId::from_index(to_usize(object.0 % count)));
        let ids = (0..threads.len()).map(NodeId::from_index);
        let runner = |node| Runner { node, pc: 0, waits: false, holds: BTreeSet::new(), met: false };
        Self {
            nodes: ids
                .clone()
                .map(|node| Machine(Locks::with_limits(node, Arc::clone(&manager), limits)))
                .collect(),
            runners: ids.flat_map(|node| vec![runner(node); threads[node.index()]]).collect(),
            around: Around { instant, ..Around::default() },
        }
    }

    /// Everything that can happen now, if thread `i` runs `programs[i]`.
    pub(super) fn events(&self, programs: &[Vec<Op>], out: &mut Vec<Event>) {
        for (index, (runner, program)) in self.runners.iter().zip(programs).enumerate() {
            match program.get(runner.pc) {
                // The thread sleeps until the mutex is free.
                Some(Op::Lock(number)) if self.is_common(index, *number) && self.is_held(*number) => {}
                Some(_) if !runner.waits => out.push(Event::Step(index)),
                Some(Op::Timed(_)) => out.push(Event::GiveUp(index)),
                _ => {}
            }
        }
        self.background(out);
    }

    /// What can happen without any thread.
    pub(super) fn background(&self, out: &mut Vec<Event>) {
        out.extend(self.around.wires.keys().map(|(from, to)| Event::Deliver(*from, *to)));
        out.extend(self.around.flushing.iter().map(|(node, object)| Event::Flushed(*node, *object)));
        let keeping = self.nodes.iter().zip(0..).filter(|(node, _)| node.0.is_keeping());
        out.extend(keeping.map(|(_, number)| Event::LetGo(NodeId(number))));
    }

    /// Tokens that nodes may ask for early, of mutexes up to a number.
    pub(super) fn early(&self, mutexes: u64, out: &mut Vec<Event>) {
        for (machine, number) in self.nodes.iter().zip(0..) {
            let elsewhere = (1..=mutexes).map(Object).filter(|object| machine.0.can_ask_early(*object));
            out.extend(elsewhere.map(|object| Event::Early(NodeId(number), object)));
        }
    }

    pub(super) fn happen(&mut self, event: Event, programs: &[Vec<Op>]) {
        match event {
            Event::Step(index) => self.step(index, programs),
            Event::GiveUp(index) => {
                let runner = &mut self.runners[index];
                let Op::Timed(object) = programs[index][runner.pc] else {
                    unreachable!("only timed locks give up")
                };
                runner.waits = false;
                if !self.nodes[runner.node.index()].0.cancel(Object(object), Waiter(index as u64)) {
                    self.around.broken = Some("a waiting thread was not queued");
                }
                self.skip(index, programs);
            }
            Event::Deliver(from, to) => {
                let Some(wire) = self.around.wires.get_mut(&(from, to)) else { return };
                let Some(message) = wire.pop_front() else { return };
                if wire.is_empty() {
                    self.around.wires.remove(&(from, to));
                }
                let mut env = At { me: to, around: &mut self.around };
                if self.nodes[to.index()].0.message(from, message, &mut env).is_err() {
                    self.around.broken = Some("a machine refused a message");
                }
            }
            Event::LetGo(node) => {
                let mut env = At { me: node, around: &mut self.around };
                self.nodes[node.index()].0.let_go(&mut env);
            }
            Event::Early(node, object) => {
                let mut env = At { me: node, around: &mut self.around };
                self.nodes[node.index()].0.ask_early(object, Duration::ZERO, &mut env);
            }
            Event::Flushed(node, object) => {
                self.around.flushing.remove(&(node, object));
                self.around.release(node, object);
                let mut env = At { me: node, around: &mut self.around };
                self.nodes[node.index()].0.flushed(object, &mut env);
            }
        }
        for (index, grant) in std::mem::take(&mut self.around.resumed) {
            if !std::mem::take(&mut self.runners[index].waits) {
                self.around.broken = Some("a thread was resumed that did not wait");
            }
            match grant {
                LockGrant::Acquired => self.enter(index, programs),
                LockGrant::Busy => self.fail(index, programs),
                // It does its step again.
                LockGrant::Common => {}
            }
        }
        self.meet(programs);
    }

    /// True if the thread's node knows that the mutex is common.
    fn is_common(&self, index: usize, number: u64) -> bool {
        let machine = &self.nodes[self.runners[index].node.index()];
        machine.0.table().get(Object(number)).is_some_and(Entry::is_common)
    }

    /// A step of a thread on a common mutex.
    fn step_common(&mut self, index: usize, programs: &[Vec<Op>]) {
        let node = self.runners[index].node;
        let (Op::Lock(number) | Op::Timed(number) | Op::Try(number) | Op::Unlock(number)) =
            programs[index][self.runners[index].pc];
        let Some(holder) = self.around.common.get_mut(&number) else {
            self.around.broken = Some("a mutex is common that nobody has made so");
            return;
        };
        if programs[index][self.runners[index].pc] == Op::Unlock(number) {
            if holder.take() != Some(index) {
                self.around.broken = Some("not the holder unlocks");
            }
            // What it has written is released before.
            let sections = self.around.sections.entry(number).or_default();
            *sections += 1;
            self.around.released.insert(number, *sections);
            self.runners[index].holds.remove(&number);
            self.runners[index].pc += 1;
        } else if holder.is_some() {
            self.skip(index, programs);
        } else {
            *holder = Some(index);
            let released = self.around.released.get(&number).copied().unwrap_or_default();
            self.around.seen.insert((node, number), released);
            self.enter(index, programs);
        }
    }

    fn is_held(&self, number: u64) -> bool {
        self.runners.iter().any(|runner| runner.holds.contains(&number))
    }

    /// Trylocks that wait take note of those that hold their mutex.
    fn meet(&mut self, programs: &[Vec<Op>]) {
        for (index, program) in programs.iter().enumerate() {
            if let Some(Op::Try(number)) = program.get(self.runners[index].pc)
                && self.runners[index].waits
                && self.is_held(*number)
            {
                self.runners[index].met = true;
            }
        }
    }

    /// A trylock failed.
    fn fail(&mut self, index: usize, programs: &[Vec<Op>]) {
        if let Op::Try(number) = programs[index][self.runners[index].pc]
            && !self.runners[index].met
            && !self.is_held(number)
        {
            self.around.broken = Some("a trylock failed although nobody held the mutex");
        }
        self.skip(index, programs);
    }

    fn step(&mut self, index: usize, programs: &[Vec<Op>]) {
        let (node, pc) = (self.runners[index].node, self.runners[index].pc);
        let (Op::Lock(number) | Op::Timed(number) | Op::Try(number) | Op::Unlock(number)) =
            programs[index][pc];
        if self.is_common(index, number) {
            return self.step_common(index, programs);
        }
        let (thread, waiter) = (Thread(index as u64 + 1), Waiter(index as u64));
        let locks = &mut self.nodes[node.index()].0;
        let mut env = At { me: node, around: &mut self.around };
        match programs[index][pc] {
            Op::Lock(number) | Op::Timed(number) => {
                let object = Object(number);
                let fast = locks.table().entry(object).fast_lock(thread, || Kind::Normal);
                if fast == Ok(Fast::Done) || locks.lock(object, thread, waiter, &mut env) == Outcome::Done {
                    self.enter(index, programs);
                } else {
                    self.runners[index].waits = true;
                }
            }
            Op::Try(number) => {
                let object = Object(number);
                let outcome = match locks.table().entry(object).fast_try_lock(thread, || Kind::Normal) {
                    Ok(Fast::Done) => TryOutcome::Acquired,
                    Ok(Fast::Slow) => locks.try_lock(object, thread, waiter, &mut env),
                    Err(_) => TryOutcome::Busy,
                };
                match outcome {
                    TryOutcome::Acquired => self.enter(index, programs),
                    TryOutcome::Busy => self.fail(index, programs),
                    TryOutcome::Wait => {
                        let met = self.is_held(number);
                        let runner = &mut self.runners[index];
                        (runner.waits, runner.met) = (true, met);
                    }
                }
            }
            Op::Unlock(number) => {
                let object = Object(number);
                let sections = env.around.sections.entry(number).or_default();
                *sections += 1;
                env.around.seen.insert((node, number), *sections);
                match locks.table().entry(object).fast_unlock(thread, || Kind::ErrorCheck) {
                    Ok(Fast::Done) => {}
                    Ok(Fast::Slow) if locks.unlock(object, &mut env).is_ok() => {}
                    _ => self.around.broken = Some("the holder could not unlock"),
                }
                self.runners[index].holds.remove(&number);
                self.runners[index].pc += 1;
            }
        }
    }

    /// The thread has the mutex of its present step.
    fn enter(&mut self, index: usize, programs: &[Vec<Op>]) {
        let runner = &mut self.runners[index];
        let (Op::Lock(number) | Op::Timed(number) | Op::Try(number)) = programs[index][runner.pc] else {
            self.around.broken = Some("a thread got a mutex that it did not ask for");
            return;
        };
        let seen = self.around.seen.get(&(runner.node, number)).copied().unwrap_or_default();
        if seen != self.around.sections.get(&number).copied().unwrap_or_default() {
            self.around.broken = Some("a critical section does not see the one before");
        }
        runner.holds.insert(number);
        runner.met = false;
        runner.pc += 1;
    }

    /// The thread did not get the mutex: it goes on after its critical section.
    fn skip(&mut self, index: usize, programs: &[Vec<Op>]) {
        let runner = &mut self.runners[index];
        let (Op::Lock(number) | Op::Timed(number) | Op::Try(number)) = programs[index][runner.pc] else {
            self.around.broken = Some("a thread failed that did not ask");
            return;
        };
        let rest = programs[index][runner.pc..].iter().position(|op| *op == Op::Unlock(number));
        runner.met = false;
        runner.pc += rest.map_or(0, |length| length + 1);
    }

    /// Nothing happened that must not.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.around.broken
    }

    pub(super) fn excludes(&self) -> bool {
        let held: Vec<_> = self.runners.iter().flat_map(|runner| &runner.holds).collect();
        held.iter().collect::<BTreeSet<_>>().len() == held.len()
    }

    /// Every mutex has exactly one token, at a node or on a wire, or none if it is common. Nodes that have not used a common mutex find that
    /// out when they do.
    pub(super) fn one_token_each(&self, mutexes: u64) -> bool {
        (1..=mutexes).all(|number| {
            let object = Object(number);
            let manager = to_usize(number) % self.nodes.len();
            let is_common = self.around.common.contains_key(&number);
            let here = |(node, machine): &(usize, &Machine)| match machine.0.table().get(object) {
                None => *node == manager && !is_common,
                Some(entry) => match entry.word() {
                    Word::New => *node == manager && !is_common,
                    Word::Absent | Word::Common => false,
                    _ => true,
                },
            };
            let resting = self.nodes.iter().enumerate().filter(here).count();
            let token = |message: &&LockMessage| {
                matches!(message, LockMessage::Token { object: other, common: false, .. } if *other == object)
            };
            let tokens = resting + self.around.wires.values().flatten().filter(token).count();
            tokens == usize::from(!is_common)
        })
    }

    /// Of two nodes all of whose threads wait, one has what the other one waits for on its way.
    pub(super) fn takes_turns(&self) -> bool {
        self.nodes.len() > 2
            || !self.around.wires.is_empty()
            || !self.around.flushing.is_empty()
            || !self.runners.iter().all(|runner| runner.waits)
    }

    /// Once everything on the way has arrived, no trylock is still undecided, whoever holds the mutex.
    pub(super) fn tries_are_decided(&self, programs: &[Vec<Op>]) -> bool {
        let mut events = Vec::new();
        self.background(&mut events);
        let tries = |(runner, program): (&Runner, &Vec<Op>)| {
            runner.waits && matches!(program.get(runner.pc), Some(Op::Try(_)))
        };
        !events.is_empty() || !self.runners.iter().zip(programs).any(tries)
    }

    /// All programs have ended and nobody waits for a token.
    pub(super) fn is_finished(&self, programs: &[Vec<Op>]) -> bool {
        let ended =
            |(runner, program): (&Runner, &Vec<Op>)| runner.pc == program.len() && runner.holds.is_empty();
        self.runners.iter().zip(programs).all(ended) && self.nodes.iter().all(|node| node.0.is_quiet())
    }
}
