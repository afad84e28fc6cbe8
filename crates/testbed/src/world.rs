//! A whole machine in one value: nodes, channels, threads, locks and a barrier, advanced one step at a time.

use crate::effects::{Effects, Observed};
use crate::memory::{Memory, SimEnv};
use crate::setup::{Op, Setup};
use gondwana_coherence::{Access, Layout, Outcome, Page, Protocol, SyncPoint, Waiter};
use gondwana_page::to_usize;
use gondwana_topology::{Id, NodeId};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;

/// What a machine must offer to be simulated.
pub trait Machine: Protocol + Clone + Debug + PartialEq + Eq + Hash + Sync + 'static {
    /// Checks, with nothing under way, that directory, roles and protections of all nodes agree about a page.
    fn agree(nodes: &[Node<Self>], page: Page, layout: &Layout) -> Result<(), String>;
    /// True if nothing is in progress.
    fn is_quiet(&self) -> bool;
    /// True if pages are kept for threads until [`Protocol::settle`].
    fn is_holding(&self) -> bool {
        false
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node<P> {
    /// Its protocol machine.
    pub machine: P,
    /// Its memory.
    pub memory: Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Executes the operation at the program counter.
    Run,
    /// Waits for a fault; then executes the operation again.
    Fault,
    /// Waits for a release; then goes on with `Released`.
    Release,
    /// Its token or arrival is on its way to another node.
    Travels,
    /// Executes the second half of the operation.
    Released,
    /// Waits at the barrier with this number.
    Barrier(u32),
}

/// A thread of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    node: usize,
    phase: Phase,
    counter: usize,
    /// The only node that learns of the release under way.
    peer: Option<u16>,
    /// What the reads returned, in program order.
    pub read: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Lock {
    holder: Option<usize>,
    /// The node whose threads used the lock last. Its writes are not released yet if locks are lazy.
    token: Option<usize>,
}

/// A step that is possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// This thread goes on.
    Thread(usize),
    /// The oldest message of a channel arrives.
    Deliver {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// This node lets go of pages that it has kept for its threads.
    Tick(usize),
}

/// What is on its way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Letter {
    /// A message of the protocol.
    Message(Vec<u8>, Vec<u8>),
    /// What this thread waits for, or tells.
    Token(usize),
}

type Channel = VecDeque<Letter>;

/// The cluster and its program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World<P> {
    /// By number.
    pub nodes: Vec<Node<P>>,
    /// `channels[from][to]`
    channels: Vec<Vec<Channel>>,
    /// By number.
    pub threads: Vec<Thread>,
    locks: Vec<Lock>,
    at_barrier: usize,
    barrier: u32,
    /// What a machine with one memory would hold. A race-free program must read this; an `sc` machine reads it in
    /// any program.
    reference: Vec<u8>,
    /// What nodes have told a monitor, of those that are [`observed`](Memory::observed).
    pub observed: Vec<(NodeId, Observed)>,
    /// The first thing that went wrong.
    pub failure: Option<String>,
}

impl<P: Machine> World<P> {
    /// The cluster before its first step.
    pub fn new(setup: &Setup, machine: impl Fn(Layout) -> P) -> Self {
        let node = |me| Node {
            machine: machine(setup.layout(me)),
            memory: Memory::new(setup.pages, setup.page_size),
        };
        let mut world = Self {
            nodes: (0..setup.nodes).map(node).collect(),
            channels: vec![vec![Channel::new(); setup.nodes]; setup.nodes],
            threads: setup
                .threads
                .iter()
                .map(|(node, _)| Thread {
                    node: *node,
                    phase: Phase::Run,
                    counter: 0,
                    peer: None,
                    read: Vec::new(),
                })
                .collect(),
            locks: vec![Lock::default(); setup.locks],
            at_barrier: 0,
            barrier: 0,
            reference: vec![0; setup.pages * setup.page_size],
            observed: Vec::new(),
            failure: None,
        };
        for (page, home) in (0..).map(Page).zip(&setup.placed) {
            let manager = setup.layout(0).manager(page);
            world.call(manager.index(), |machine, env| {
                machine.place(page, 1, home.map(NodeId), false, env);
                if setup.given {
                    machine.give_placed(page, 1, env);
                }
            });
        }
        world
    }

    /// Every step that is possible. None at all: finished, or stuck.
    pub fn actions(&self, setup: &Setup) -> Vec<Action> {
        if self.failure.is_some() {
            return Vec::new();
        }
        let mut actions = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            let can = match thread.phase {
                Phase::Fault | Phase::Release | Phase::Travels => false,
                Phase::Released => true,
                Phase::Barrier(number) => self.barrier > number,
                Phase::Run => match setup.threads[index].1.get(thread.counter) {
                    None => false,
                    Some(Op::Lock(lock)) => self.locks[*lock].holder.is_none(),
                    Some(_) => true,
                },
            };
            if can {
                actions.push(Action::Thread(index));
            }
        }
        for from in 0..self.nodes.len() {
            for to in 0..self.nodes.len() {
                if !self.channels[from][to].is_empty() {
                    actions.push(Action::Deliver { from, to });
                }
            }
            if self.nodes[from].machine.is_holding() {
                actions.push(Action::Tick(from));
            }
        }
        actions
    }

    /// True if every thread reached the end of its program.
    pub fn finished(&self, setup: &Setup) -> bool {
        self.threads
            .iter()
            .zip(&setup.threads)
            .all(|(thread, (_, program))| thread.phase == Phase::Run && thread.counter == program.len())
    }

    /// Takes one step.
    pub fn apply(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Thread(index) => self.step(setup, index),
            Action::Deliver { from, to } => {
                match self.channels[from][to].pop_front().expect("something to deliver") {
                    Letter::Message(message, bulk) => self.deliver(from, to, &message, &bulk),
                    Letter::Token(thread) => self.threads[thread].phase = Phase::Released,
                }
            }
            Action::Tick(node) => {
                self.call(node, |machine, env| machine.settle(env)).expect("what was put off was right");
            }
        }
    }

    /// What a machine with one memory would hold at an address.
    pub fn at(&self, address: usize) -> u8 {
        self.reference[address]
    }

    /// With nothing under way: do the nodes agree?
    pub fn check_quiet(&self, setup: &Setup) -> Result<(), String> {
        if !self.nodes.iter().all(|node| node.machine.is_quiet()) {
            return Err("something is still in progress".into());
        }
        let layout = setup.layout(0);
        (0..layout.pages()).try_for_each(|page| P::agree(&self.nodes, Page(page), &layout))
    }

    fn fail(&mut self, what: String) {
        self.failure.get_or_insert(what);
    }

    /// Calls a machine and carries out what it sent and whom it resumed.
    fn call<R>(&mut self, node: usize, act: impl FnOnce(&mut P, &mut SimEnv<'_>) -> R) -> R {
        let mut effects = Effects::default();
        let mut peers = Vec::new();
        let mut own = None;
        for (number, Node { machine, memory }) in self.nodes.iter_mut().enumerate() {
            if number == node {
                own = Some((machine, memory));
            } else {
                peers.push((NodeId::from_index(number), memory));
            }
        }
        let (machine, memory) = own.expect("there is such a node");
        let me = NodeId::from_index(node);
        let mut env = SimEnv::new(me, memory, &mut effects).beside(peers);
        let result = act(machine, &mut env);
        if self.nodes[node].memory.observed {
            let told = effects.observed.into_iter().map(|observed| (me, observed));
            self.observed.extend(told);
        }
        for (to, message, bulk) in effects.sent {
            self.channels[node][to.index()].push_back(Letter::Message(message, bulk));
        }
        for Waiter(thread) in effects.resumed {
            let thread = to_usize(thread);
            let phase = &mut self.threads[thread].phase;
            match phase {
                Phase::Fault => *phase = Phase::Run,
                Phase::Release => {
                    *phase = Phase::Released;
                    self.go_travelling(node, thread);
                }
                _ => self.fail(format!("thread {thread} was resumed but doesn't wait")),
            }
        }
        result
    }

    fn deliver(&mut self, from: usize, to: usize, message: &[u8], bulk: &[u8]) {
        let sender = NodeId::from_index(from);
        let result = self.call(to, |machine, env| machine.message(sender, message, bulk, env));
        if let Err(violation) = result {
            self.fail(format!("node {to} refused {message:?} of node {from}: {violation}"));
        }
    }

    /// The release of `node` for a thread is complete: what it was made for goes to the only node that learns of it.
    fn go_travelling(&mut self, node: usize, thread: usize) {
        if let Some(peer) = self.threads[thread].peer {
            self.threads[thread].phase = Phase::Travels;
            self.channels[node][usize::from(peer)].push_back(Letter::Token(thread));
        }
    }

    fn step(&mut self, setup: &Setup, index: usize) {
        let Thread { node, phase, counter, .. } = self.threads[index];
        let op = setup.threads[index].1[counter];
        match (op, phase) {
            (Op::Read(address), _) => {
                if self.permitted(setup, index, address, Access::Read) {
                    self.read(index, address);
                    self.advance(index);
                }
            }
            (Op::Look(address), _) => {
                if self.permitted(setup, index, address, Access::Read) {
                    let value = self.nodes[node].memory.read(address);
                    self.threads[index].read.push(value);
                    self.advance(index);
                }
            }
            (Op::Write(address, value), _) => {
                if self.permitted(setup, index, address, Access::Write) {
                    self.write(node, address, value);
                    self.advance(index);
                }
            }
            // The processor holds the line from the read to the write, and no page is taken away in the middle of an instruction.
            (Op::Add(address, by), _) => {
                let page = u32::try_from(address / setup.page_size).expect("pages have numbers of 32 bits");
                if self.promoted(index, Page(page)) && self.permitted(setup, index, address, Access::Write) {
                    let old = self.read(index, address);
                    self.write(node, address, old.wrapping_add(by));
                    self.advance(index);
                }
            }
            (Op::Lock(lock), Phase::Run) => {
                self.locks[lock].holder = Some(index);
                match self.locks[lock].token {
                    Some(other) if setup.lazy && other != node => {
                        let peer = Some(NodeId::from_index(node));
                        self.release(other, index, SyncPoint { peer, ..SyncPoint::default() });
                    }
                    _ => self.threads[index].phase = Phase::Released,
                }
            }
            (Op::Lock(lock), _) => {
                if self.locks[lock].token != Some(node) {
                    self.acquire(node);
                }
                self.locks[lock].token = Some(node);
                self.advance(index);
            }
            (Op::Unlock(lock), Phase::Run) => {
                assert_eq!(self.locks[lock].holder, Some(index));
                if setup.lazy {
                    self.locks[lock].holder = None;
                    self.advance(index);
                } else {
                    self.release(node, index, SyncPoint::default());
                }
            }
            (Op::Unlock(lock), _) => {
                self.locks[lock].holder = None;
                self.advance(index);
            }
            (Op::Barrier, Phase::Run) => {
                let peer = (setup.lazy && setup.nodes == 2).then(|| 1 - NodeId::from_index(node).0);
                let at = SyncPoint { peer: peer.map(NodeId), acquires_next: true, ..SyncPoint::default() };
                self.release(node, index, at);
            }
            (Op::Barrier, Phase::Barrier(_)) => {
                self.acquire(node);
                self.advance(index);
            }
            (Op::Place { first, count, home, used }, _) => {
                let home = home.map(NodeId);
                self.call(node, |machine, env| machine.place(Page(first), count, home, used, env));
                self.advance(index);
            }
            (Op::Promote(page), _) => {
                if self.promoted(index, Page(page)) {
                    self.advance(index);
                }
            }
            (Op::CatchUp, _) => {
                self.call(node, |machine, env| _ = machine.catch_up(env));
                self.advance(index);
            }
            (Op::Expose, _) => {
                self.call(node, |machine, env| machine.downgrade_exclusive(env));
                self.advance(index);
            }
            (Op::Barrier, _) => {
                self.threads[index].phase = Phase::Barrier(self.barrier);
                self.at_barrier += 1;
                if self.at_barrier == self.threads.len() {
                    self.at_barrier = 0;
                    self.barrier += 1;
                }
            }
        }
    }

    /// Reads for a thread that may.
    fn read(&mut self, index: usize, address: usize) -> u8 {
        let value = self.nodes[self.threads[index].node].memory.read(address);
        self.threads[index].read.push(value);
        let right = self.reference[address];
        if value != right {
            self.fail(format!("thread {index} read {value} at {address}, not {right}"));
        }
        value
    }

    /// Writes on a node that may.
    fn write(&mut self, node: usize, address: usize, value: u8) {
        Memory::write_on(self.nodes.iter_mut().map(|node| &mut node.memory), node, address, value);
        self.reference[address] = value;
    }

    fn advance(&mut self, index: usize) {
        self.threads[index].counter += 1;
        self.threads[index].phase = Phase::Run;
    }

    /// Makes `node` acquire, unless its machine says that this would do nothing.
    fn acquire(&mut self, node: usize) {
        let Node { machine, memory } = &self.nodes[node];
        let pages = u32::try_from(memory.access.len()).expect("pages have numbers of 32 bits");
        if !machine.is_acquired() || (0..pages).any(|page| memory.has_posted_notice(Page(page))) {
            self.call(node, |machine, env| machine.acquire(SyncPoint::default(), env));
        }
    }

    /// Makes `node` release on behalf of a thread.
    fn release(&mut self, node: usize, index: usize, at: SyncPoint) {
        self.threads[index].phase = Phase::Release;
        self.threads[index].peer = at.peer.map(|peer| peer.0);
        if self.call(node, |machine, env| machine.release(at, Waiter(index as u64), env)) == Outcome::Done {
            self.threads[index].phase = Phase::Released;
            self.go_travelling(node, index);
        }
    }

    /// True if the thread may synchronise there now; otherwise it waits.
    fn promoted(&mut self, index: usize, page: Page) -> bool {
        self.threads[index].phase = Phase::Fault;
        let waiter = Waiter(index as u64);
        let node = self.threads[index].node;
        let done = self.call(node, |machine, env| machine.promote(page, waiter, env)) == Outcome::Done;
        if done {
            self.threads[index].phase = Phase::Run;
        }
        done
    }

    /// True if the thread may access the address now; otherwise it faults.
    fn permitted(&mut self, setup: &Setup, index: usize, address: usize, access: Access) -> bool {
        let node = self.threads[index].node;
        let Some(page) = self.nodes[node].memory.lacks(address, access) else { return true };
        self.threads[index].phase = Phase::Fault;
        let waiter = Waiter(index as u64);
        let outcome = self.call(node, |machine, env| {
            let outcome = machine.fault(page, access, setup.ahead, waiter, env);
            if setup.stride > 0 {
                machine.prefetch(Page(page.0 + setup.stride), 1, access, env);
                if access == Access::Write {
                    machine.write_early(Page(page.0 + setup.stride), 1, env);
                }
            }
            outcome
        });
        if outcome == Outcome::Done {
            self.threads[index].phase = Phase::Run;
        }
        false
    }
}
