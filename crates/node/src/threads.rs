//! The threads of this node, and on node 0 the record of all.

use crate::Thread;
use crate::crowd::Crowd;
use crate::registry::Registry;
use crate::wait_slots::{futex_wait, futex_wake};
use gondwana_locks::lock;
use gondwana_topology::{NodeId, NodeSet};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The threads of a node.
pub(crate) struct Threads {
    /// Node 0's record of all threads.
    registry: Mutex<Registry>,
    /// The C library's names for the threads of this node, by number; `None` of those that are being started.
    natives: Mutex<HashMap<u64, Option<u64>>>,
    /// How many processors this node has.
    processors: u32,
    /// The threads of all nodes, where nodes outnumber the processors.
    crowd: Option<Crowd>,
    /// Threads of the program on this node, also those that are being started.
    live: AtomicU32,
    /// Those of them that wait.
    waiting: AtomicU32,
    /// Those of them that will go on soon: they wait for a page, or have not waited long for something else.
    going_on: AtomicU32,
    /// Those in a call by which a thread lets time go by: it looks again and again for what another one does.
    pausing: AtomicU32,
    /// Threads that were started here so far.
    started: AtomicU64,
    /// Calls in threads of other nodes so far.
    remote_calls: AtomicU32,
    /// Threads were started on another node than the one that asked.
    any_remote: AtomicBool,
    /// Set and woken when the last thread has ended while main waits for it.
    all_ended: AtomicU32,
}

impl Threads {
    /// The first node has `main`.
    pub(crate) fn new(registry: Registry, processors: u16, is_first: bool, crowd: Option<Crowd>) -> Self {
        if let Some(crowd) = crowd.filter(|_| is_first) {
            crowd.enter();
        }
        Self {
            registry: Mutex::new(registry),
            natives: Mutex::default(),
            processors: u32::from(processors),
            crowd,
            live: AtomicU32::new(u32::from(is_first)),
            waiting: AtomicU32::new(0),
            going_on: AtomicU32::new(0),
            pausing: AtomicU32::new(0),
            started: AtomicU64::new(0),
            remote_calls: AtomicU32::new(0),
            any_remote: AtomicBool::new(false),
            all_ended: AtomicU32::new(0),
        }
    }

    /// On node 0: a node, of all or of some, and a number for a new thread.
    pub(crate) fn place(&self, among: Option<NodeSet>) -> u64 {
        lock(&self.registry).place(among)
    }

    /// On node 0: a thread of any node has ended.
    pub(crate) fn ended(&self, node: NodeId) {
        if lock(&self.registry).ended(node) {
            self.all_ended.store(1, Ordering::Release);
            futex_wake(&self.all_ended);
        }
    }

    /// On node 0: main leaves by `pthread_exit`. Returns when the last thread of the run has ended.
    pub(crate) fn wait_for_all(&self) {
        let alone = lock(&self.registry).main_leaves();
        while !alone && self.all_ended.load(Ordering::Acquire) == 0 {
            futex_wait(&self.all_ended, 0, None);
        }
    }

    /// The C library's name for a thread of this node.
    pub(crate) fn native(&self, thread: u64) -> Option<u64> {
        lock(&self.natives).get(&thread).copied().flatten()
    }

    /// Notes the C library's name for a thread, which has begun.
    pub(crate) fn name(&self, thread: u64, native: u64) {
        lock(&self.natives).insert(thread, Some(native));
    }

    /// Forgets the C library's name for a thread.
    pub(crate) fn forget(&self, thread: u64) {
        lock(&self.natives).remove(&thread);
    }

    /// A thread is about to be started.
    pub(crate) fn begins(&self, thread: u64) {
        lock(&self.natives).insert(thread, None);
        // Counts from now on: it may need the processor that a thread of this node polls on.
        self.live.fetch_add(1, Ordering::Relaxed);
        if let Some(crowd) = self.crowd {
            crowd.enter();
        }
    }

    /// A thread was started under this name of the C library, or could not be.
    pub(crate) fn began(&self, thread: u64, started: Result<u64, i32>) {
        match started {
            Ok(native) => {
                // The thread may have noted its name already, and none is left if it has ended.
                if let Some(noted) = lock(&self.natives).get_mut(&thread) {
                    noted.get_or_insert(native);
                }
            }
            Err(_) => {
                self.forget(thread);
                self.leave();
            }
        }
    }

    /// Threads of the program on this node.
    pub(crate) fn live(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// A thread of the program leaves this node.
    pub(crate) fn leave(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        if let Some(crowd) = self.crowd {
            crowd.leave();
        }
    }

    /// Calls a function in which the calling thread, which waits, sleeps.
    pub(crate) fn asleep<R>(&self, sleep: impl FnOnce() -> R) -> R {
        match self.crowd {
            // One that a library has started is not counted.
            Some(crowd) if Thread::is_of_program() => crowd.asleep(sleep),
            _ => sleep(),
        }
    }

    /// The calling thread begins to wait.
    pub(crate) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// The calling thread waits no longer.
    pub(crate) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// True if fewer threads of this node run than it has processors, if `more` wait than count as such, and those of all nodes, with
    /// one that polls here, have a processor each. Those that are `waking` count as running: a thread that polls might be what keeps
    /// them from it.
    pub(crate) fn leave_idle_processor(&self, more: u32, waking: u32) -> bool {
        let waiting = (self.waiting.load(Ordering::Relaxed) + more).saturating_sub(waking);
        self.live().saturating_sub(waiting) < self.processors && self.fit()
    }

    /// True if no thread of any node is known to lack a processor.
    pub(crate) fn fit(&self) -> bool {
        self.crowd.is_none_or(Crowd::fits)
    }

    /// True if not all threads of this node wait.
    pub(crate) fn any_runs(&self) -> bool {
        self.live() > self.waiting.load(Ordering::Relaxed)
    }

    /// True if a thread of this node runs and does not pause, or will soon.
    pub(crate) fn any_computes(&self) -> bool {
        let idle = self.waiting.load(Ordering::Relaxed) + self.pausing.load(Ordering::Relaxed);
        self.live() + self.going_on.load(Ordering::Relaxed) > idle
    }

    /// The calling thread begins to let time go by, or goes on.
    pub(crate) fn pauses(&self, begins: bool) {
        let _before = if begins {
            self.pausing.fetch_add(1, Ordering::Relaxed)
        } else {
            self.pausing.fetch_sub(1, Ordering::Relaxed)
        };
    }

    /// The calling thread begins to wait for what comes soon, or does so no longer.
    pub(crate) fn goes_on_soon(&self, waits: bool) {
        let _before = if waits {
            self.going_on.fetch_add(1, Ordering::Relaxed)
        } else {
            self.going_on.fetch_sub(1, Ordering::Relaxed)
        };
    }

    /// One more thread is started here.
    pub(crate) fn count_start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// Threads that were started here so far.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// The number of the next call in a thread of another node.
    pub(crate) fn next_remote_call(&self) -> u32 {
        self.remote_calls.fetch_add(1, Ordering::Relaxed)
    }

    /// A thread is started on another node than the one that asked.
    pub(crate) fn note_remote(&self) {
        self.any_remote.store(true, Ordering::Relaxed);
    }

    /// True once [`Threads::note_remote`] was called.
    #[inline]
    pub(crate) fn any_remote(&self) -> bool {
        self.any_remote.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_number::node_of;
    use gondwana_rset::{RSet, ThreadPlan, ThreadPolicy};
    use gondwana_topology::{Bytes, Machine};

    fn threads(processors: u16) -> Threads {
        let machine = Machine::uniform(2, processors, Bytes(1 << 30));
        let plan = ThreadPlan::new(ThreadPolicy::RoundRobin, &RSet::global(&machine), &machine).unwrap();
        Threads::new(Registry::new(plan, vec![], 2, processors), processors, true, None)
    }

    fn start(threads: &Threads, thread: u64) {
        threads.begins(thread);
        threads.began(thread, Ok(thread * 10));
    }

    #[test]
    fn a_processor_is_idle_while_fewer_threads_run() {
        let threads = threads(2);
        assert!(threads.leave_idle_processor(0, 0), "main runs on one of two processors");
        start(&threads, 7);
        assert!(!threads.leave_idle_processor(0, 0));
        assert!(threads.leave_idle_processor(1, 0), "if one more waited");
        threads.begin_wait();
        assert!(threads.leave_idle_processor(0, 0));
        assert!(!threads.leave_idle_processor(0, 1), "it is woken already");
        threads.end_wait();
        threads.leave();
        assert!(threads.leave_idle_processor(0, 0));
    }

    #[test]
    fn a_thread_that_pauses_does_not_compute() {
        let threads = threads(2);
        assert!(threads.any_computes(), "main");
        threads.pauses(true);
        assert!(!threads.any_computes() && threads.any_runs());
        start(&threads, 7);
        assert!(threads.any_computes(), "the other one");
        threads.begin_wait();
        assert!(!threads.any_computes());
        threads.goes_on_soon(true);
        assert!(threads.any_computes());
        threads.goes_on_soon(false);
        threads.pauses(false);
        assert!(threads.any_computes());
    }

    #[test]
    fn a_thread_has_its_native_name_until_it_ends() {
        let threads = threads(1);
        start(&threads, 7);
        assert_eq!((threads.native(7), threads.live()), (Some(70), 2));
        threads.forget(7);
        threads.leave();
        assert_eq!((threads.native(7), threads.live()), (None, 1));
        threads.begins(8);
        assert_eq!((threads.native(8), threads.live()), (None, 2));
        threads.began(8, Err(libc::EAGAIN));
        assert_eq!((threads.native(8), threads.live()), (None, 1));
    }

    #[test]
    fn a_thread_that_ends_before_it_is_known_to_have_begun_has_no_name() {
        let threads = threads(1);
        threads.begins(7);
        threads.name(7, 70);
        assert_eq!(threads.native(7), Some(70));
        threads.forget(7);
        threads.began(7, Ok(70));
        assert_eq!(threads.native(7), None);
    }

    #[test]
    fn main_waits_for_the_last_thread_of_any_node() {
        let threads = threads(1);
        assert_eq!(node_of(threads.place(None)), NodeId(1));
        std::thread::scope(|scope| {
            let main = scope.spawn(|| threads.wait_for_all());
            threads.ended(NodeId(1));
            main.join().unwrap();
        });
        // A main that is the last thread does not wait.
        self::threads(1).wait_for_all();
    }
}
