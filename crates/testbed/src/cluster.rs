//! Nodes with a simulated clock: the same engines as in a real node, over a simulated network.
//!
//! Each step of a thread and each message takes a random time, and messages between two nodes arrive in the order sent. The
//! same seed gives the same run.

use crate::effects::{Effects, Told};
use crate::letter::{Letter, ServerLetter};
use crate::memory::{Memory, SimEnv};
use crate::programs::Rng;
use crate::setup::Op;
use gondwana_coherence::sync::{
    Answer, Fast, Initialised, Kind, LockTable, ManagerOf, Object, ObjectKind, Request, Resting,
    RestingTable, Thread as ThreadId, Ticket,
};
use gondwana_coherence::{Access, Engine, Layout, Outcome, Page, Protocol, SyncPoint, Waiter};
use gondwana_page::to_usize;
use gondwana_topology::{Id, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// An instruction of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One that [`World`](crate::world::World) knows, too.
    Op(Op),
    /// `sem_post` of a semaphore, by its number.
    Post(usize),
    /// `sem_wait`.
    Wait(usize),
}

/// The parts of a cluster that are chosen before it runs.
pub struct ClusterSetup {
    /// The machine.
    pub layout: Layout,
    /// The node that each thread runs on, and its program.
    pub threads: Vec<(usize, Vec<Step>)>,
    /// The longest time that a step of a thread takes, in nanoseconds.
    pub step: usize,
    /// Decides how long everything takes.
    pub seed: u64,
}

/// What a thread does when it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Executes the step at the program counter.
    Begin,
    /// Waits for a page; then executes the step again.
    Fault,
    /// Waits for its release; then submits its request.
    Release,
    /// Waits for what an engine tells it; then the step is done.
    Told,
    /// Its program is over.
    Ended,
}

struct Thread {
    node: usize,
    program: Vec<Step>,
    counter: usize,
    phase: Phase,
    /// The page for which it has waited since its last fault.
    awaited: Option<Page>,
}

struct Node {
    engine: Engine,
    locks: Arc<LockTable>,
    resting: Arc<RestingTable>,
    memory: Memory,
}

/// What happens at some time.
enum Due {
    /// A thread goes on.
    Thread(usize),
    /// A message arrives.
    Arrival { from: usize, to: usize, bytes: Vec<u8>, bulk: Vec<u8> },
    /// A node lets go of the pages and tokens that it keeps.
    LetGo(usize),
}

/// The cluster and its program.
pub struct Cluster {
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    /// By time, in nanoseconds, and the order in which they were noted.
    due: BTreeMap<(u64, u64), Due>,
    noted: u64,
    now: u64,
    /// When the last message from one node to another arrives.
    arrivals: Vec<Vec<u64>>,
    longest_step: usize,
    rng: Rng,
    /// What a machine with one memory would hold: programs free of races must read this.
    reference: Vec<u8>,
}

/// Where objects are in memory does not matter; they are known by these numbers.
const MUTEX: u64 = 1 << 32;
const SEMAPHORE: u64 = 2 << 32;
const BARRIER: Object = Object(3 << 32);

/// The initialisation of all semaphores.
const STAMP: u64 = 1;

/// Nodes keep tokens and pages so long, in nanoseconds.
const HOLD: u64 = 20_000;

impl Cluster {
    /// The cluster before its first step. `protocol` makes the coherence protocol of a node.
    pub fn new(setup: ClusterSetup, protocol: impl Fn(Layout) -> Box<dyn Protocol>) -> Self {
        let ClusterSetup { layout, threads, step, seed } = setup;
        let count = usize::from(layout.nodes());
        let managing = layout.nodes();
        let manager: ManagerOf =
            Arc::new(move |Object(number)| NodeId::from_index(to_usize(number % u64::from(managing))));
        let node = |me: usize| {
            let layout = layout.seen_by(NodeId::from_index(me));
            let (locks, resting) = (Arc::new(LockTable::new()), Arc::new(RestingTable::new()));
            Node {
                engine: Engine::new(
                    &layout,
                    protocol(layout.clone()),
                    Arc::clone(&locks),
                    Arc::clone(&resting),
                    Arc::clone(&manager),
                ),
                locks,
                resting,
                memory: Memory::new(layout.pages() as usize, layout.page_size()),
            }
        };
        let reference = vec![0; layout.pages() as usize * layout.page_size()];
        let mut cluster = Self {
            nodes: (0..count).map(node).collect(),
            threads: Vec::new(),
            due: BTreeMap::new(),
            noted: 0,
            now: 0,
            arrivals: vec![vec![0; count]; count],
            longest_step: step,
            rng: Rng(seed),
            reference,
        };
        for (index, (node, program)) in threads.into_iter().enumerate() {
            cluster.threads.push(Thread { node, program, counter: 0, phase: Phase::Begin, awaited: None });
            cluster.go_on(index);
        }
        (0..count).for_each(|node| cluster.note(HOLD, Due::LetGo(node)));
        cluster
    }

    /// Runs the program to its end; the time that it takes.
    ///
    /// # Errors
    /// The first thing that is wrong: a read that returns the wrong value, a message that is refused, or threads that wait for
    /// ever.
    pub fn run(mut self) -> Result<Duration, String> {
        while self.threads.iter().any(|thread| thread.phase != Phase::Ended) {
            // Nodes that let go do so for ever; a program of some hundred steps ends long before this.
            if self.now > 1_000_000_000 {
                let waiting = self.threads.iter().map(|thread| (thread.phase, thread.counter));
                return Err(format!("threads wait for ever: {:?}", waiting.collect::<Vec<_>>()));
            }
            let ((now, _), due) = self.due.pop_first().expect("nodes let go again and again");
            self.now = now;
            match due {
                Due::Thread(thread) => self.step(thread)?,
                Due::Arrival { from, to, bytes, bulk } => self.arrive(from, to, &bytes, &bulk)?,
                Due::LetGo(node) => {
                    self.call(node, |engine, env| {
                        let _next = engine.with_locks(env, |locks, env| locks.let_go_due(env));
                        engine.with_protocol(env, |protocol, env| protocol.settle(env))
                    })
                    .map_err(|violation| violation.to_string())?;
                    self.note(HOLD, Due::LetGo(node));
                }
            }
        }
        Ok(Duration::from_nanos(self.now))
    }

    fn note(&mut self, after: u64, due: Due) {
        self.noted += 1;
        self.due.insert((self.now + after, self.noted), due);
    }

    fn go_on(&mut self, thread: usize) {
        let takes = 1 + self.rng.below(self.longest_step) as u64;
        self.note(takes, Due::Thread(thread));
    }

    fn write(&mut self, node: usize, address: usize, value: u8) {
        Memory::write_on(self.nodes.iter_mut().map(|node| &mut node.memory), node, address, value);
    }

    /// Calls an engine, and sees to what comes of it.
    fn call<R>(&mut self, node: usize, act: impl FnOnce(&mut Engine, &mut SimEnv<'_>) -> R) -> R {
        let mut effects = Effects::default();
        let (before, rest) = self.nodes.split_at_mut(node);
        let ([Node { engine, memory, .. }], after) = rest.split_at_mut(1) else {
            unreachable!("the node exists")
        };
        let peers = before.iter_mut().enumerate().chain((node + 1..).zip(after));
        let peers = peers.map(|(index, peer)| (NodeId::from_index(index), &mut peer.memory)).collect();
        let mut env = SimEnv::new(NodeId::from_index(node), memory, &mut effects).beside(peers);
        env.now.set(Duration::from_nanos(self.now));
        let result = act(engine, &mut env);
        let Effects { sent, resumed, told, .. } = effects;
        for (to, bytes, bulk) in sent {
            self.send(node, to.index(), bytes, bulk);
        }
        for Waiter(thread) in resumed {
            self.go_on(to_usize(thread));
        }
        for told in told {
            let thread = match told {
                // The final answer follows.
                Told::Answered(_, Answer::Enqueued) => continue,
                Told::Granted(Waiter(thread)) | Told::Passed(Waiter(thread)) => thread,
                Told::Answered(Ticket(thread), answer) => {
                    assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
                    thread
                }
            };
            self.go_on(to_usize(thread));
        }
        result
    }

    /// A message takes its time, and arrives behind those sent before.
    fn send(&mut self, from: usize, to: usize, bytes: Vec<u8>, bulk: Vec<u8>) {
        let arrival = (self.now + 200 + self.rng.below(5_000) as u64).max(self.arrivals[from][to]);
        self.arrivals[from][to] = arrival;
        self.note(arrival - self.now, Due::Arrival { from, to, bytes, bulk });
    }

    fn arrive(&mut self, from: usize, to: usize, bytes: &[u8], bulk: &[u8]) -> Result<(), String> {
        let sender = NodeId::from_index(from);
        let taken = self.call(to, |engine, env| match Letter::read(bytes) {
            Letter::Coherence(message) => engine.coherence(sender, message, bulk, env).map_err(Into::into),
            Letter::Sync(message) => engine.synchronise(sender, message, bulk, env),
            Letter::Server(ServerLetter::Request(ticket, request)) => {
                engine.requested(sender, ticket, request, bulk, env).map_err(Into::into)
            }
            Letter::Server(ServerLetter::Answer(ticket, answer)) => {
                engine.answered(sender, ticket, answer, bulk, env).map_err(Into::into)
            }
            Letter::Server(ServerLetter::Keeper(message)) => engine.keeper(sender, message, bulk, env),
        });
        taken.map_err(|violation| format!("node {to} refused a message of node {from}: {violation}"))
    }

    /// A thread goes on.
    fn step(&mut self, index: usize) -> Result<(), String> {
        let Thread { node, counter, phase, .. } = self.threads[index];
        let Some(&step) = self.threads[index].program.get(counter) else {
            self.threads[index].phase = Phase::Ended;
            return Ok(());
        };
        if phase == Phase::Fault
            && let Some(page) = self.threads[index].awaited.take()
        {
            self.call(node, |engine, env| {
                engine.with_protocol(env, |protocol, env| protocol.repeats(page, env));
            });
        }
        let done = match (step, phase) {
            (_, Phase::Ended) => unreachable!("it does not go on"),
            (Step::Wait(_), Phase::Told) => {
                self.call(node, |engine, env| engine.acquire(SyncPoint::default(), env));
                true
            }
            (_, Phase::Told) => true,
            (Step::Post(semaphore), Phase::Release) => {
                let semaphore = known_as(semaphore);
                self.request(index, semaphore.object, Request::SemPost { semaphore })
            }
            (Step::Op(op), _) => self.operate(index, op)?,
            (Step::Post(semaphore), _)
                if self.resting(node, semaphore).is_some_and(|known| known.post(STAMP)) =>
            {
                true
            }
            (Step::Wait(semaphore), _)
                if self.resting(node, semaphore).is_some_and(|known| known.take_one(STAMP)) =>
            {
                true
            }
            (Step::Post(semaphore), _) if self.post_here(index, semaphore) => false,
            (Step::Post(_), _) => {
                self.threads[index].phase = Phase::Release;
                let waiter = Waiter(index as u64);
                let released =
                    self.call(node, |engine, env| engine.release(SyncPoint::default(), waiter, env));
                if released == Outcome::Done {
                    self.go_on(index);
                }
                false
            }
            (Step::Wait(semaphore), _) => {
                let semaphore = known_as(semaphore);
                self.request(index, semaphore.object, Request::SemWait { semaphore })
            }
        };
        if done {
            let thread = &mut self.threads[index];
            thread.counter += 1;
            thread.phase = Phase::Begin;
            self.go_on(index);
        }
        Ok(())
    }

    /// True if the operation is done; otherwise the thread waits.
    fn operate(&mut self, index: usize, op: Op) -> Result<bool, String> {
        let node = self.threads[index].node;
        let (waiter, me) = (Waiter(index as u64), ThreadId(index as u64 + 1));
        let done = match op {
            Op::Read(address) if self.permitted(index, address, Access::Read) => {
                let (found, right) = (self.nodes[node].memory.read(address), self.reference[address]);
                if found != right {
                    return Err(format!("thread {index} read {found} at {address}, not {right}"));
                }
                true
            }
            Op::Write(address, value) if self.permitted(index, address, Access::Write) => {
                self.write(node, address, value);
                self.reference[address] = value;
                true
            }
            Op::Add(address, by) if self.permitted(index, address, Access::Write) => {
                let (found, right) = (self.nodes[node].memory.read(address), self.reference[address]);
                if found != right {
                    return Err(format!("thread {index} added to {found} at {address}, not to {right}"));
                }
                self.write(node, address, found.wrapping_add(by));
                self.reference[address] = found.wrapping_add(by);
                true
            }
            Op::Look(address) if self.permitted(index, address, Access::Read) => true,
            Op::Read(_) | Op::Look(_) | Op::Write(..) | Op::Add(..) => return Ok(false),
            Op::Lock(lock) => {
                let object = Object(MUTEX + lock as u64);
                let locks = Arc::clone(&self.nodes[node].locks);
                locks.entry(object).fast_lock(me, || Kind::Normal) == Ok(Fast::Done)
                    || self.call(node, |engine, env| {
                        engine.with_locks(env, |locks, env| locks.lock(object, me, waiter, env))
                            == Outcome::Done
                    })
            }
            Op::Unlock(lock) => {
                let object = Object(MUTEX + lock as u64);
                let locks = Arc::clone(&self.nodes[node].locks);
                if locks.entry(object).fast_unlock(me, || Kind::Normal) != Ok(Fast::Done) {
                    let unlocked = self.call(node, |engine, env| {
                        engine.with_locks(env, |locks, env| locks.unlock(object, env))
                    });
                    unlocked.map_err(|error| format!("{error:?}"))?;
                }
                true
            }
            Op::Barrier => {
                let threads = u32::try_from(self.threads.len()).expect("few threads");
                let _prompted = self.call(node, |engine, env| {
                    engine.with_barriers(env, |barriers, env| barriers.arrive(BARRIER, threads, waiter, env))
                });
                false
            }
            Op::Place { first, count, home, used } => {
                self.call(node, |engine, env| {
                    engine.with_protocol(env, |protocol, env| {
                        protocol.place(Page(first), count, home.map(NodeId), used, env);
                    });
                });
                true
            }
            Op::Promote(page) => {
                let done = self.call(node, |engine, env| {
                    engine.with_protocol(env, |protocol, env| protocol.promote(Page(page), waiter, env))
                });
                done == Outcome::Done
            }
            Op::CatchUp => {
                self.call(node, |engine, env| {
                    engine.with_protocol(env, |protocol, env| _ = protocol.catch_up(env));
                });
                true
            }
            Op::Expose => {
                self.call(node, |engine, env| {
                    engine.with_protocol(env, |protocol, env| protocol.downgrade_exclusive(env));
                });
                true
            }
        };
        if !done {
            self.threads[index].phase = Phase::Told;
        }
        Ok(done)
    }

    fn resting(&self, node: usize, semaphore: usize) -> Option<&Resting> {
        self.nodes[node].resting.resting(known_as(semaphore).object.of_kind(ObjectKind::Semaphore))
    }

    /// Posts a semaphore that the thread's node keeps; the thread is told of the answer.
    fn post_here(&mut self, index: usize, semaphore: usize) -> bool {
        let (node, before) = (self.threads[index].node, self.threads[index].phase);
        self.threads[index].phase = Phase::Told;
        let request = Request::SemPost { semaphore: known_as(semaphore) };
        let here = self.call(node, |engine, env| engine.submit_here(Ticket(index as u64), &request, env));
        if !here {
            self.threads[index].phase = before;
        }
        here
    }

    /// Sends a request; the thread is told of its answer.
    fn request(&mut self, index: usize, object: Object, request: Request) -> bool {
        let manager = NodeId::from_index(to_usize(object.0) % self.nodes.len());
        self.threads[index].phase = Phase::Told;
        let ticket = Ticket(index as u64);
        self.call(self.threads[index].node, |engine, env| engine.submit(manager, ticket, request, env));
        false
    }

    /// True if the thread may access the address now; otherwise it faults.
    fn permitted(&mut self, index: usize, address: usize, access: Access) -> bool {
        let node = self.threads[index].node;
        let Some(page) = self.nodes[node].memory.lacks(address, access) else { return true };
        self.threads[index].phase = Phase::Fault;
        self.threads[index].awaited = Some(page);
        let waiter = Waiter(index as u64);
        let outcome = self.call(node, |engine, env| {
            engine.with_protocol(env, |protocol, env| protocol.fault(page, access, 1, waiter, env))
        });
        if outcome == Outcome::Done {
            self.go_on(index);
        }
        false
    }
}

fn known_as(semaphore: usize) -> Initialised {
    Initialised { object: Object(SEMAPHORE + semaphore as u64), value: 0, stamp: STAMP }
}
