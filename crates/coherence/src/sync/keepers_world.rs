//! Nodes with threads that use semaphores, conditions and readers-writer locks, wires between them, and flushes that take their
//! time: what the model checker and the random tests drive.

use super::request::{Answer, Initialised, Reply, Request, Ticket};
use super::{KeeperEnv, KeeperMessage, Keepers, Object, ObjectKey, ObjectKind, Resting, RestingTable};
use crate::Outcome;
use gondwana_page::to_usize;
use gondwana_topology::{Id, NodeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// All objects have this address; the first node manages them.
const OBJECT: Object = Object(64);

/// One step of a thread's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Post,
    Wait,
    /// May be given up while it waits.
    TimedWait,
    /// Goes on either way.
    TryWait,
    Read,
    EndRead,
    Write,
    /// May be given up while it waits; then the thread goes on after the next step.
    TimedWrite,
    EndWrite,
    /// Begins to wait for the condition, with the first part of the answer.
    Enqueue,
    /// Waits until it is woken.
    Sleep,
    /// The same, but may be given up.
    TimedSleep,
    Signal,
    Broadcast,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Step(usize),
    GiveUp(usize),
    Deliver(NodeId, NodeId),
    Flushed(NodeId, ObjectKey),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Awaits {
    #[default]
    Nothing,
    /// The final answer.
    Answer,
    /// The first part of an answer.
    First,
    /// Its own release; then it sends its request.
    Release,
    /// A processor, to learn how its step has ended: only then it acquires.
    Processor(bool),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Runner {
    node: NodeId,
    pc: usize,
    awaits: Awaits,
    /// It has asked for its wait to be given up.
    gives_up: bool,
    /// It was woken before it looked.
    woken: bool,
}

/// A machine that can be compared and copied.
struct Machine(Keepers);

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0.essence())
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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Letter {
    Keeper(KeeperMessage),
    Request(Ticket, Request),
    Answer(Ticket, Answer),
}

#[derive(Clone, Debug, PartialEq, Hash)]
pub(super) struct World {
    nodes: Vec<Machine>,
    runners: Vec<Runner>,
    around: Around,
}

/// What is on its way from one node to another, each with what its sender has released.
type Wire = VecDeque<(Letter, Vec<u32>)>;

/// All of the world that the machines act on. What threads wrote is one number for each of them: how many of its steps are
/// over. What a node sees of the others is the largest that it has learnt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Around {
    wires: BTreeMap<(NodeId, NodeId), Wire>,
    flushing: BTreeSet<(NodeId, ObjectKey)>,
    /// What each node has released; what it has learnt of; and what it sees.
    released: BTreeMap<NodeId, Vec<u32>>,
    learnt: BTreeMap<NodeId, Vec<u32>>,
    seen: BTreeMap<NodeId, Vec<u32>>,
    answered: Vec<(Ticket, Answer)>,
    posts: u32,
    waits: u32,
    /// What every poster had written when it posted, first post first; a wait sees what the semaphore's history holds.
    published: Vec<u32>,
    readers: u32,
    writers: u32,
    /// What had been written when the last writer unlocked.
    written: Vec<u32>,
    broken: Option<&'static str>,
}

fn merge(into: &mut Vec<u32>, other: &[u32]) {
    into.resize(into.len().max(other.len()), 0);
    into.iter_mut().zip(other).for_each(|(known, new)| *known = (*known).max(*new));
}

fn covers(all: &[u32], part: &[u32]) -> bool {
    part.iter().enumerate().all(|(index, value)| all.get(index).copied().unwrap_or(0) >= *value)
}

impl Around {
    fn send(&mut self, from: NodeId, to: NodeId, letter: Letter) {
        if from == to {
            self.broken = Some("a node sent itself a message");
        }
        let mut knows = self.released.get(&from).cloned().unwrap_or_default();
        merge(&mut knows, &self.learnt.get(&from).cloned().unwrap_or_default());
        self.wires.entry((from, to)).or_default().push_back((letter, knows));
    }

    fn release(&mut self, node: NodeId) {
        let seen = self.seen.get(&node).cloned().unwrap_or_default();
        merge(self.released.entry(node).or_default(), &seen);
    }

    fn acquire(&mut self, node: NodeId) {
        let learnt = self.learnt.get(&node).cloned().unwrap_or_default();
        merge(self.seen.entry(node).or_default(), &learnt);
    }
}

struct At<'a> {
    me: NodeId,
    around: &'a mut Around,
}

impl KeeperEnv for At<'_> {
    fn send(&mut self, to: NodeId, message: KeeperMessage) {
        self.around.send(self.me, to, Letter::Keeper(message));
    }

    fn submit(&mut self, manager: NodeId, ticket: Ticket, request: Request) {
        self.around.send(self.me, manager, Letter::Request(ticket, request));
    }

    fn answer(&mut self, Reply { to, ticket, answer }: Reply) {
        if to == self.me {
            self.around.answered.push((ticket, answer));
        } else {
            self.around.send(self.me, to, Letter::Answer(ticket, answer));
        }
    }

    fn release(&mut self, key: ObjectKey) -> Outcome {
        self.around.flushing.insert((self.me, key));
        Outcome::Wait
    }

    fn arrived(&mut self, _key: ObjectKey) {
        self.around.acquire(self.me);
    }
}

impl World {
    /// So many threads on each node.
    pub(super) fn new(threads: &[usize]) -> Self {
        let ids = (0..threads.len()).map(NodeId::from_index);
        let machine = |node| Machine(Keepers::new(node, Arc::new(RestingTable::with_first_bits(1))));
        let runner = |node| Runner { node, pc: 0, awaits: Awaits::Nothing, gives_up: false, woken: false };
        Self {
            nodes: ids.clone().map(machine).collect(),
            runners: ids.flat_map(|node| vec![runner(node); threads[node.index()]]).collect(),
            around: Around::default(),
        }
    }

    /// Everything that can happen now, if thread `i` runs `programs[i]`.
    pub(super) fn events(&self, programs: &[Vec<Op>], out: &mut Vec<Event>) {
        for (index, (runner, program)) in self.runners.iter().zip(programs).enumerate() {
            match (program.get(runner.pc), runner.awaits) {
                (Some(_), Awaits::Nothing | Awaits::Release | Awaits::Processor(_)) => {
                    out.push(Event::Step(index));
                }
                (Some(Op::TimedWait | Op::TimedWrite | Op::TimedSleep), Awaits::Answer)
                    if !runner.gives_up =>
                {
                    out.push(Event::GiveUp(index));
                }
                _ => {}
            }
        }
        out.extend(self.around.wires.keys().map(|(from, to)| Event::Deliver(*from, *to)));
        out.extend(self.around.flushing.iter().map(|(node, key)| Event::Flushed(*node, *key)));
    }

    pub(super) fn happen(&mut self, event: Event, programs: &[Vec<Op>]) {
        match event {
            Event::Step(index) => self.step(index, programs[index][self.runners[index].pc]),
            Event::GiveUp(index) => {
                self.runners[index].gives_up = true;
                let (pc, program) = (self.runners[index].pc, &programs[index]);
                // What is given up is the wait that the last `Enqueue` has begun.
                let began = if program[pc] == Op::TimedSleep {
                    program[..pc].iter().rposition(|op| *op == Op::Enqueue)
                } else {
                    None
                };
                self.submit(index, began.unwrap_or(pc), Request::Cancel { key: key_of(program[pc]) });
            }
            Event::Deliver(from, to) => self.deliver(from, to),
            Event::Flushed(node, key) => {
                self.around.flushing.remove(&(node, key));
                self.around.release(node);
                let mut env = At { me: node, around: &mut self.around };
                self.nodes[node.index()].0.flushed(key, &mut env);
            }
        }
        while !self.around.answered.is_empty() {
            let (Ticket(ticket), answer) = self.around.answered.remove(0);
            let (index, began) = (to_usize(ticket & 0xffff), to_usize(ticket >> 16));
            self.answered(index, &programs[index], began, answer);
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId) {
        let Some(wire) = self.around.wires.get_mut(&(from, to)) else { return };
        let Some((letter, knows)) = wire.pop_front() else { return };
        if wire.is_empty() {
            self.around.wires.remove(&(from, to));
        }
        merge(self.around.learnt.entry(to).or_default(), &knows);
        let mut env = At { me: to, around: &mut self.around };
        let machine = &mut self.nodes[to.index()].0;
        match letter {
            Letter::Keeper(message) => {
                if machine.message(from, message, &mut env).is_err() {
                    self.around.broken = Some("a machine refused a message");
                }
            }
            Letter::Request(ticket, request) => {
                let key = request.key().expect("all are about objects");
                machine.requested(key, from, ticket, request, &mut env);
            }
            Letter::Answer(ticket, answer) => self.around.answered.push((ticket, answer)),
        }
    }

    /// A request of a thread, about what it began at this step.
    fn submit(&mut self, index: usize, began: usize, request: Request) {
        let node = self.runners[index].node;
        let mut env = At { me: node, around: &mut self.around };
        let key = request.key().expect("all are about objects");
        self.nodes[node.index()].0.request(key, NodeId(0), ticket_of(index, began), request, &mut env);
    }

    /// The thread's step, which may end at once.
    fn step(&mut self, index: usize, op: Op) {
        let Runner { node, pc, awaits, woken, .. } = self.runners[index];
        if let Awaits::Processor(done) = awaits {
            return self.finish(index, op, done);
        }
        // Whatever the thread did before, its node sees.
        let begun = u32::try_from(self.runners[index].pc + 1).expect("programs are short");
        let mine = vec![0; index].into_iter().chain([begun]).collect::<Vec<_>>();
        merge(self.around.seen.entry(node).or_default(), &mine);
        if awaits == Awaits::Release {
            self.around.release(node);
            self.runners[index].awaits = Awaits::Answer;
            self.submit(index, self.runners[index].pc, request_of(op));
            return;
        }
        self.begin(index, op);
        if matches!(op, Op::Sleep | Op::TimedSleep) {
            self.runners[index].awaits = Awaits::Answer;
            if woken {
                self.finish(index, op, true);
            }
            return;
        }
        let entry = self.nodes[node.index()].0.table().resting(key_of(op));
        if entry.is_some_and(|entry| at_hand(entry, op)) {
            self.finish(index, op, true);
            return;
        }
        self.runners[index].awaits = if op == Op::Enqueue { Awaits::First } else { Awaits::Answer };
        let request = request_of(op);
        let releases = matches!(op, Op::Post | Op::EndRead | Op::EndWrite);
        if !releases {
            return self.submit(index, self.runners[index].pc, request);
        }
        let key = key_of(op);
        let mut env = At { me: node, around: &mut self.around };
        if !self.nodes[node.index()].0.request_here(key, ticket_of(index, pc), &request, &mut env) {
            self.runners[index].awaits = Awaits::Release;
        }
    }

    /// What is true of the step from its beginning on.
    fn begin(&mut self, index: usize, op: Op) {
        let seen = self.around.seen.get(&self.runners[index].node).cloned().unwrap_or_default();
        match op {
            Op::Post => {
                self.around.posts += 1;
                merge(&mut self.around.published, &[]);
                if self.around.posts == 1 {
                    self.around.published = seen;
                }
            }
            Op::EndRead => self.around.readers -= 1,
            Op::EndWrite => {
                self.around.writers -= 1;
                self.around.written = seen;
            }
            _ => {}
        }
    }

    fn answered(&mut self, index: usize, program: &[Op], began: usize, answer: Answer) {
        let runner = &mut self.runners[index];
        let op = program.get(runner.pc).copied().filter(|_| runner.awaits != Awaits::Release);
        match (answer, op) {
            (Answer::Enqueued, Some(Op::Enqueue)) if began == runner.pc => {
                runner.awaits = Awaits::Processor(true)
            }
            (Answer::Done(_), op) if program[began] == Op::Enqueue => match op {
                Some(Op::Sleep | Op::TimedSleep) if runner.awaits == Awaits::Answer => {
                    runner.awaits = Awaits::Processor(true);
                }
                // It is woken before it begins to sleep.
                _ => runner.woken = true,
            },
            (Answer::Done(_), Some(_)) if began == runner.pc => runner.awaits = Awaits::Processor(true),
            (Answer::Cancelled, Some(_)) if runner.gives_up => runner.awaits = Awaits::Processor(false),
            (Answer::Failed(_), Some(Op::TryWait)) if began == runner.pc => {
                runner.awaits = Awaits::Processor(false)
            }
            _ => self.around.broken = Some("an answer that nobody awaits"),
        }
    }

    fn finish(&mut self, index: usize, op: Op, done: bool) {
        let node = self.runners[index].node;
        if self.runners[index].awaits != Awaits::Nothing {
            self.around.acquire(node);
        }
        let around = &mut self.around;
        let seen = around.seen.get(&node).cloned().unwrap_or_default();
        let mut skip = 1;
        match op {
            Op::Wait | Op::TimedWait | Op::TryWait if done => {
                around.waits += 1;
                if around.waits > around.posts {
                    around.broken = Some("more waits than posts");
                }
                if around.waits == around.posts && around.posts == 1 && !covers(&seen, &around.published) {
                    around.broken = Some("a wait does not see what was posted");
                }
            }
            Op::Read => around.readers += 1,
            Op::Write | Op::TimedWrite if done => around.writers += 1,
            Op::TimedWrite => skip = 2,
            _ => {}
        }
        if matches!(op, Op::Read | Op::Write | Op::TimedWrite) && done && !covers(&seen, &around.written) {
            around.broken = Some("a holder does not see what the last writer wrote");
        }
        if around.writers > 1 || around.writers == 1 && around.readers > 0 {
            around.broken = Some("two hold a lock that exclude each other");
        }
        let runner = &mut self.runners[index];
        let woken = runner.woken && !matches!(op, Op::Sleep | Op::TimedSleep);
        *runner = Runner { node, pc: runner.pc + skip, awaits: Awaits::Nothing, gives_up: false, woken };
    }

    /// Nothing happened that must not.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.around.broken
    }

    /// If nothing can happen any more, all programs have ended.
    pub(super) fn is_finished(&self, programs: &[Vec<Op>]) -> bool {
        self.runners.iter().zip(programs).all(|(runner, program)| runner.pc == program.len())
    }
}

/// Names a request of a thread by the step that it belongs to.
fn ticket_of(index: usize, began: usize) -> Ticket {
    Ticket(index as u64 | (began as u64) << 16)
}

fn key_of(op: Op) -> ObjectKey {
    OBJECT.of_kind(match op {
        Op::Post | Op::Wait | Op::TimedWait | Op::TryWait => ObjectKind::Semaphore,
        Op::Read | Op::EndRead | Op::Write | Op::TimedWrite | Op::EndWrite => ObjectKind::RwLock,
        Op::Enqueue | Op::Sleep | Op::TimedSleep | Op::Signal | Op::Broadcast => ObjectKind::Condition,
    })
}

fn request_of(op: Op) -> Request {
    let (lock, cond) = (OBJECT, OBJECT);
    let semaphore = Initialised { object: OBJECT, value: 0, stamp: 1 };
    let locks = |write| Request::RwLock { lock, write, attempt: false, passes: false };
    match op {
        Op::Post => Request::SemPost { semaphore },
        Op::Wait | Op::TimedWait => Request::SemWait { semaphore },
        Op::TryWait => Request::SemTryWait { semaphore },
        Op::Read => locks(false),
        Op::Write | Op::TimedWrite => locks(true),
        Op::EndRead => Request::RwUnlock { lock, write: false },
        Op::EndWrite => Request::RwUnlock { lock, write: true },
        Op::Enqueue | Op::Sleep | Op::TimedSleep => Request::CondWait { cond },
        Op::Signal => Request::CondSignal { cond, awaited: true },
        Op::Broadcast => Request::CondBroadcast { cond, awaited: true },
    }
}

/// The fast path of the threads.
fn at_hand(entry: &Resting, op: Op) -> bool {
    match op {
        Op::Post => entry.post(1),
        Op::Wait | Op::TimedWait | Op::TryWait => entry.take_one(1),
        Op::Read => entry.read(),
        Op::EndRead => entry.end_read(),
        Op::Write | Op::TimedWrite => entry.write(),
        Op::EndWrite => entry.end_write(),
        Op::Signal | Op::Broadcast => entry.nobody_waits(),
        Op::Enqueue | Op::Sleep | Op::TimedSleep => false,
    }
}
