//! Threads over all nodes: where they go, and what is done when they start and end.

use crate::Node;
use crate::clock::{Activity, Scope};
use crate::monitor::Touch;
use crate::schedule;
use crate::slots::Slot;
use crate::sync::JoinWait;
use crate::wire::{ThreadSpec, Wire};
use gondwana_coherence::sync::{Answer, Request, SyncError, Thread as ThreadId, Ticket};
use gondwana_coherence::{Access, Page};
use gondwana_control::ThreadGroup;
use gondwana_memory::PAGE_SIZE;
use gondwana_prefetch::Prefetch;
use gondwana_rset::{ThreadPlan, ThreadPolicy};
use gondwana_topology::{NodeId, NodeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Pages at the top of a stack that are there before the thread starts: the frames that system calls of the C
/// library itself may write to.
const STACK_TOP_PAGES: u32 = 32;

/// What node 0 knows of all threads.
pub struct Registry {
    plan: ThreadPlan,
    /// Groups of threads that go to the same node; once one of them has started, it is known which.
    groups: Vec<ThreadGroup>,
    nodes: u16,
    processors: u16,
    /// Threads on each node, main included.
    running: Vec<u32>,
    /// Where round-robin stands: node 0 has main, so the first thread goes to the next node.
    last: u16,
    numbers: u32,
    /// Threads that have not ended, main included.
    live: u64,
    /// Main has left by `pthread_exit` and waits for the rest.
    waiting: bool,
}

impl Registry {
    pub fn new(plan: ThreadPlan, mut groups: Vec<ThreadGroup>, nodes: u16, processors: u16) -> Self {
        let mut running = vec![0; usize::from(nodes)];
        running[0] = 1;
        for group in groups.iter_mut().filter(|group| group.threads.contains(&0)) {
            group.node = Some(NodeId(0));
        }
        Self { plan, groups, nodes, processors, running, last: 0, numbers: 1, live: 1, waiting: false }
    }

    /// A node, of all or of some, and a number for a new thread.
    fn place(&mut self, among: Option<NodeSet>) -> u64 {
        let running = |node: &u16| self.running[usize::from(*node)];
        let chosen = among.and_then(|among| {
            (0..self.nodes).filter(|node| among.contains(NodeId(*node))).min_by_key(running)
        });
        // The program itself knows best.
        let number = self.numbers;
        let group = self.groups.iter().position(|group| chosen.is_none() && group.threads.contains(&number));
        let chosen = chosen.or_else(|| Some(self.groups[group?].node?.0));
        let node = match self.plan.policy() {
            _ if chosen.is_some() => chosen.unwrap_or(0),
            // `main` is thread 0, and on node 0 whatever the first set is.
            ThreadPolicy::Explicit(_) => self.plan.place_of(self.numbers as usize).node.0,
            ThreadPolicy::RoundRobin => {
                self.last = (self.last + 1) % self.nodes;
                self.last
            }
            ThreadPolicy::Fill => {
                let full = |node: &u16| self.running[usize::from(*node)] >= u32::from(self.processors);
                (0..self.nodes).find(|node| !full(node)).unwrap_or_else(|| {
                    (0..self.nodes).min_by_key(|node| self.running[usize::from(*node)]).unwrap_or(0)
                })
            }
        };
        if let Some(group) = group {
            self.groups[group].node = Some(NodeId(node));
        }
        self.running[usize::from(node)] += 1;
        self.live += 1;
        self.numbers += 1;
        thread_number(NodeId(node), self.numbers)
    }

    /// A thread of a node has ended; true if main waits for just this.
    fn ended(&mut self, node: NodeId) -> bool {
        self.running[node.index()] = self.running[node.index()].saturating_sub(1);
        self.live -= 1;
        self.live == 0 && self.waiting
    }
}

/// Numbers of threads carry their node, and are never 0.
fn thread_number(node: NodeId, number: u32) -> u64 {
    RUN_WIDE | u64::from(node.0) << 40 | u64::from(number)
}

/// Tells our numbers from the C library's, which are addresses.
const RUN_WIDE: u64 = 1 << 62;

/// Threads that libraries started by themselves have numbers of their own kind.
const FOREIGN: u64 = 1 << 39;

/// So have those that the runtime starts on another node to do something there. Node 0 does not count them: a
/// thread that counts waits for each.
const ERRAND: u64 = 1 << 38;

/// The errands of this node so far.
static ERRANDS: AtomicU32 = AtomicU32::new(0);

/// Bytes of stack for an errand.
const ERRAND_STACK: u64 = 256 << 10;

impl Node {
    /// The node that a thread runs on.
    pub(crate) fn node_of(thread: u64) -> NodeId {
        NodeId((thread >> 40) as u16 & 0x3fff)
    }

    /// True if the number is one that this run gives its threads.
    #[must_use]
    pub fn is_thread(&self, thread: u64) -> bool {
        thread & RUN_WIDE != 0 && Self::node_of(thread).index() < self.nodes()
    }

    /// The C library's name for a thread of this node.
    #[must_use]
    pub fn native_thread(&'static self, thread: u64) -> Option<u64> {
        self.undisturbed(move || self.natives.lock().expect("not poisoned").get(&thread).copied())
    }

    /// Starts a thread by a function that returns the C library's name for it. The name is known before anybody is told
    /// of the thread, who may want to send it a signal at once.
    ///
    /// # Errors
    /// Those of the function.
    pub fn begin_native(&self, thread: u64, start: impl FnOnce() -> Result<u64, i32>) -> Result<(), i32> {
        // The thread itself takes the lock as it begins, and again to remove its name as it ends.
        let mut natives = self.natives.lock().expect("not poisoned");
        // Counts from now on: it may need the processor that a thread of this node polls on.
        self.live.fetch_add(1, Ordering::Relaxed);
        let native = start().inspect_err(|_| {
            self.live.fetch_sub(1, Ordering::Relaxed);
        })?;
        natives.insert(thread, native);
        Ok(())
    }

    /// The calling thread, which finds so many others on this node, begins: on a processor of the node's own, if there is one
    /// for each of them.
    pub(crate) fn begin_apart(&self, others: u32) {
        let each = u32::from(self.boot.processors);
        if others < each && !self.patience.is_none() {
            schedule::begin_at(self.me.index() * each as usize + others as usize);
        }
    }

    /// The number of the thread that runs `main`.
    #[must_use]
    pub fn main_thread(&self) -> u64 {
        thread_number(NodeId(0), 1)
    }

    /// A number for a thread that a library started without `pthread_create`.
    pub(crate) fn foreign_thread(&self, slot: Slot) -> u64 {
        thread_number(self.me, slot.0) | FOREIGN
    }

    /// `pthread_create`: the new thread's number.
    ///
    /// # Errors
    /// `EAGAIN` when the node that it would go to has no room.
    pub fn create_thread(&'static self, spec: ThreadSpec) -> Result<u64, i32> {
        self.start_thread(spec, None)
    }

    /// As [`Node::create_thread`], on the one of some nodes that has the fewest threads.
    ///
    /// # Errors
    /// `EINVAL` if the run has none of the nodes, `EAGAIN` if the chosen one has no room.
    pub fn create_thread_in(&'static self, among: NodeSet, spec: ThreadSpec) -> Result<u64, i32> {
        if !among.iter().any(|node| node.index() < self.nodes()) {
            return Err(libc::EINVAL);
        }
        self.start_thread(spec, Some(among))
    }

    fn start_thread(&'static self, mut spec: ThreadSpec, among: Option<NodeSet>) -> Result<u64, i32> {
        self.privately(move || {
            spec.id = if self.is_first() {
                self.registry.lock().expect("not poisoned").place(among)
            } else {
                self.ask_for(NodeId(0), move |ticket| Wire::Place { ticket, among })?.cast_unsigned()
            };
            let to = Self::node_of(spec.id);
            if to == self.me {
                self.start_here(spec)?;
            } else {
                self.remote_threads.store(true, Ordering::Relaxed);
                self.release();
                self.core().expose();
                self.ask_for(to, move |ticket| Wire::Start { ticket, thread: spec })?;
            }
            Ok(spec.id)
        })
    }

    /// Calls `function(argument)` in a thread of another node, or right here, and returns its result. What either
    /// side has written before, the other sees.
    ///
    /// # Errors
    /// `EAGAIN` when the node has no room for the thread.
    ///
    /// # Safety
    /// The function is at that address on all nodes, and may be called with the argument on any.
    pub unsafe fn call_on(
        &'static self,
        to: NodeId,
        function: unsafe extern "C" fn(usize) -> usize,
        argument: usize,
    ) -> Result<usize, i32> {
        if to == self.me {
            // SAFETY: the caller's promise.
            return Ok(unsafe { function(argument) });
        }
        self.privately(move || {
            let number = u32::from(self.me.0) << 20 | ERRANDS.fetch_add(1, Ordering::Relaxed) & 0xf_ffff;
            let id = thread_number(to, number) | ERRAND;
            let (function, argument) = (function as usize as u64, argument as u64);
            // Signals are for the program's own threads, but for those that tell of faults.
            let blocked = !(1 << (libc::SIGBUS - 1) | 1 << (libc::SIGSEGV - 1));
            let thread = ThreadSpec { id, function, argument, stack: ERRAND_STACK, detached: false, blocked };
            self.release();
            self.ask_for(to, move |ticket| Wire::Start { ticket, thread })?;
            self.join_thread(id, JoinWait::Forever).map(|result| result as usize)
        })
    }

    /// Starts a thread on this node, from whichever node the wish came.
    fn start_here(&'static self, spec: ThreadSpec) -> Result<(), i32> {
        let thread = ThreadId(spec.id);
        self.request_of(self.me, Request::ThreadStart { thread, detached: spec.detached })?;
        self.events.threads.fetch_add(1, Ordering::Relaxed);
        (self.hooks.start_thread)(self, spec).inspect_err(|_| {
            let _ = self.request_of(self.me, Request::Detach { thread });
            let _ = self.request_of(self.me, Request::ThreadExit { thread, value: 0 });
            self.tell_ended(spec.id);
        })
    }

    /// The service thread starts what another node asked for.
    pub(crate) fn start_for_peer(&'static self, from: NodeId, ticket: Ticket, spec: ThreadSpec) {
        self.acquire();
        let answer = match self.start_here(spec) {
            Ok(()) => Answer::Done(0),
            Err(_) => Answer::Failed(SyncError::Exhausted),
        };
        self.core().answer(from, ticket, answer);
    }

    /// Another node asks where a thread may go.
    pub(crate) fn place_for(&'static self, from: NodeId, ticket: Ticket, among: Option<NodeSet>) {
        let number = self.registry.lock().expect("not poisoned").place(among);
        self.remote_threads.store(true, Ordering::Relaxed);
        self.core().answer(from, ticket, Answer::Done(number.cast_signed()));
    }

    /// The calling thread ends: what it wrote is released, its joiner is told.
    pub fn thread_ended(&'static self, id: u64, value: u64) {
        self.privately(move || {
            if id & FOREIGN != 0 || id == self.main_thread() {
                return;
            }
            self.release();
            let _ = self.request_of(self.me, Request::ThreadExit { thread: ThreadId(id), value });
            self.tell_ended(id);
        })
    }

    fn tell_ended(&'static self, id: u64) {
        if id & ERRAND != 0 {
            return;
        }
        if self.is_first() {
            self.thread_gone(self.me);
        } else {
            self.core().ports.post(NodeId(0), &Wire::Ended, &[]);
        }
    }

    /// Node 0 learns that a thread of any node has ended.
    pub(crate) fn thread_gone(&'static self, node: NodeId) {
        if self.registry.lock().expect("not poisoned").ended(node) {
            self.idle.store(1, Ordering::Release);
            crate::slots::futex_wake(&self.idle);
        }
    }

    /// True for the thread that runs `main`.
    #[must_use]
    pub fn is_main(&self, thread: u64) -> bool {
        thread == self.main_thread()
    }

    /// The thread that runs `main` can be joined and detached like others.
    pub fn main_begins(&'static self) {
        let main = ThreadId(self.main_thread());
        let _ = self.request_of(self.me, Request::ThreadStart { thread: main, detached: false });
    }

    /// `pthread_exit` in main, with this value: the process lives until the last thread of the run has ended. Returns
    /// then.
    pub fn main_exits_alone(&'static self, value: u64) {
        self.privately(move || {
            self.release();
            let thread = ThreadId(self.main_thread());
            let _ = self.request_of(self.me, Request::ThreadExit { thread, value });
            let alone = {
                let mut registry = self.registry.lock().expect("not poisoned");
                registry.waiting = true;
                registry.ended(NodeId(0))
            };
            let _time = Scope::enter(Activity::Waiting);
            while !alone && self.idle.load(Ordering::Acquire) == 0 {
                crate::slots::futex_wait(&self.idle, 0, None);
            }
            self.acquire();
        })
    }

    /// True once threads were started on another node than the one that asked.
    #[inline]
    #[must_use]
    pub fn has_remote_threads(&self) -> bool {
        self.remote_threads.load(Ordering::Relaxed)
    }

    /// Bytes of stack that a thread gets unless it asks otherwise.
    #[must_use]
    pub fn default_stack(&self) -> usize {
        self.stack_bytes
    }

    /// A thread of this node will run on this stack. Brings in the part of it that is used first.
    pub fn begin_stack(&'static self, stack: &Range<usize>) {
        let Some(pages) = self.pages_of_stack(stack) else { return };
        let count = STACK_TOP_PAGES.min(pages.len() as u32);
        let first = pages.end - count;
        let touch = Touch { address: self.geometry.address_of(first), code: 0, writer: None };
        self.privately(move || {
            self.core().ports.stacks.push(pages);
            self.resolve(Page(first), Access::Write, Prefetch::next(count - 1), touch);
        });
    }

    /// No thread runs on this stack any more.
    pub fn end_stack(&'static self, stack: &Range<usize>) {
        let Some(pages) = self.pages_of_stack(stack) else { return };
        self.privately(move || self.core().ports.stacks.retain(|other| *other != pages));
    }

    fn pages_of_stack(&self, stack: &Range<usize>) -> Option<Range<u32>> {
        let end = self.geometry.page_of(stack.end - PAGE_SIZE)? + 1;
        Some(end - (stack.len() / PAGE_SIZE) as u32..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_rset::RSet;
    use gondwana_topology::{Bytes, Machine};

    #[test]
    fn of_some_nodes_the_least_busy_one_gets_a_thread() {
        let machine = Machine::uniform(4, 2, Bytes(1 << 30));
        let plan = ThreadPlan::new(ThreadPolicy::Fill, &RSet::global(&machine), &machine).unwrap();
        let mut registry = Registry::new(plan, vec![], 4, 2);
        let some: NodeSet = [NodeId(0), NodeId(2), NodeId(3)].into_iter().collect();
        // `main` is on node 0.
        let mut next = |among| Node::node_of(registry.place(among)).0;
        assert_eq!([(); 4].map(|()| next(Some(some))), [2, 3, 0, 2]);
        assert_eq!([(); 2].map(|()| next(Some(NodeSet::only(NodeId(1))))), [1, 1]);
        assert_eq!(next(None), 3);
    }

    #[test]
    fn threads_of_a_group_go_to_one_node() {
        let machine = Machine::uniform(3, 1, Bytes(1 << 30));
        let plan = ThreadPlan::new(ThreadPolicy::RoundRobin, &RSet::global(&machine), &machine).unwrap();
        let group = |threads: &[u32], node: Option<u16>| ThreadGroup {
            threads: threads.to_vec(),
            node: node.map(NodeId),
        };
        let groups = vec![group(&[2, 6], Some(2)), group(&[1, 4], None), group(&[0, 7], None)];
        let mut registry = Registry::new(plan, groups, 3, 1);
        let mut next = |among| Node::node_of(registry.place(among)).0;
        // Round-robin goes on where it stood: at the nodes 1, 2, 0 for threads 1, 3 and 5.
        assert_eq!([(); 7].map(|()| next(None)), [1, 2, 2, 1, 0, 2, 0]);
        assert_eq!(next(Some(NodeSet::only(NodeId(1)))), 1);
    }
}
