//! Synchronisation of the program's threads, over the machines of `coherence::sync`.

use crate::slots::{Slot, event};
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::Outcome;
use gondwana_coherence::sync::{Fast, Initialised, Kind, Object, Request, SyncError, Ticket, TryOutcome};
use gondwana_coherence::sync::{ONCE_RUN, Thread as ThreadId};
use gondwana_topology::NodeId;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use gondwana_coherence::sync::Kind as MutexKind;

/// What is done to a readers-writer lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwOperation {
    /// Lock for reading.
    Read,
    /// Lock for writing.
    Write,
}

/// How long to wait for a thread to end.
#[derive(Clone, Copy, Debug)]
pub enum JoinWait {
    /// Until it does.
    Forever,
    /// Until then.
    Until(Instant),
    /// Not at all.
    Not,
}

/// How long a trylock waits for a token that may be on its way.
const TRY_PATIENCE: Duration = Duration::from_micros(500);

/// Where a wait ends that may be given up.
enum Ended {
    Answered(Result<i64, i32>),
    TimedOut,
}

impl Node {
    /// Calls a function on memory that no fault can take away: the caller's own stack may be shared, and a fault
    /// on it in the midst of the machines could not be resolved.
    pub(crate) fn privately<R>(&self, call: impl FnOnce() -> R) -> R {
        let mut call = Some(call);
        let mut result = None;
        (self.hooks.on_private_stack)(&mut || result = call.take().map(|call| call()));
        result.expect("the hook calls what it is given")
    }

    fn thread_number(&'static self) -> (ThreadId, Slot) {
        let thread = Thread::current(self);
        (ThreadId(thread.id), thread.slot)
    }

    /// Makes what this node wrote visible to later acquirers.
    pub fn release(&'static self) {
        self.privately(|| {
            let slot = Thread::current(self).slot;
            let freed = self.freed_elsewhere.lock().expect("not poisoned").take();
            (self.hooks.flush_output)();
            self.slots.arm(slot, event::COHERENT);
            let outcome = self.core().release(slot);
            if outcome == Outcome::Wait {
                self.wait(slot, event::COHERENT, None);
            }
            for (owner, addresses) in freed {
                self.core().ports.post(owner, &Wire::Free(addresses), &[]);
            }
        })
    }

    /// Sees what others released.
    pub fn acquire(&'static self) {
        self.privately(|| {
            self.core().acquire();
        })
    }

    /// Sends a question to another node and waits for its answer; the error is an error number.
    pub(crate) fn ask_for(&'static self, to: NodeId, wire: impl FnOnce(Ticket) -> Wire) -> Result<i64, i32> {
        self.privately(|| {
            let slot = Thread::current(self).slot;
            self.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.core().ports.post(to, &wire(Ticket(u64::from(slot.0))), &[]);
            self.answer(slot)
        })
    }

    /// [`Node::ask_for`] where no error is possible.
    pub(crate) fn ask(&'static self, to: NodeId, wire: impl FnOnce(Ticket) -> Wire) -> i64 {
        self.ask_for(to, wire).unwrap_or(0)
    }

    fn answer(&'static self, slot: Slot) -> Result<i64, i32> {
        let events = self.wait(slot, event::ANSWERED, None);
        self.answer_of(slot, events)
    }

    fn answer_of(&'static self, slot: Slot, events: u32) -> Result<i64, i32> {
        let result = self.slots.result(slot);
        if events & event::DONE != 0 { Ok(result) } else { Err(result as i32) }
    }

    /// Sends a request to the node that serves it, perhaps this one.
    fn submit(&'static self, server: NodeId, slot: Slot, request: Request) {
        let ticket = Ticket(u64::from(slot.0));
        let mut core = self.core();
        if server == self.me {
            core.serve(self.me, ticket, request);
        } else {
            core.ports.post(server, &Wire::Request { ticket, request }, &[]);
        }
    }

    pub(crate) fn request_of(&'static self, server: NodeId, request: Request) -> Result<i64, i32> {
        self.privately(|| {
            let slot = Thread::current(self).slot;
            self.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.submit(server, slot, request);
            self.answer(slot)
        })
    }

    /// A request about an object, to its manager.
    fn request(&'static self, object: usize, request: Request) -> Result<i64, i32> {
        self.request_of(self.manager(object), request)
    }

    /// Waits for the answer to a request that `cancel` takes back when the time is over.
    fn await_or_cancel(
        &'static self,
        slot: Slot,
        server: NodeId,
        until: Option<Instant>,
        cancel: Request,
    ) -> Ended {
        let mut events = self.wait(slot, event::ANSWERED, until);
        if events == 0 {
            self.submit(server, slot, cancel);
            events = self.wait(slot, event::ANSWERED, None);
            if events & event::CANCELLED != 0 {
                return Ended::TimedOut;
            }
        }
        Ended::Answered(self.answer_of(slot, events))
    }

    fn request_until(
        &'static self,
        object: usize,
        request: Request,
        until: Option<Instant>,
    ) -> Result<i64, i32> {
        self.privately(|| {
            let server = self.manager(object);
            let slot = Thread::current(self).slot;
            self.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.submit(server, slot, request);
            match self.await_or_cancel(slot, server, until, Request::Cancel { object: Object(object as u64) })
            {
                Ended::Answered(answer) => answer,
                Ended::TimedOut => Err(libc::ETIMEDOUT),
            }
        })
    }

    /// `pthread_mutex_init`.
    pub fn mutex_init(&'static self, mutex: usize) {
        // A mutex that no thread of this node used has nothing to forget here.
        if self.lock_table.get(Object(mutex as u64)).is_some() {
            self.privately(|| self.core().with_locks(|locks, env| locks.reset(Object(mutex as u64), env)));
        }
    }

    /// `pthread_mutex_destroy`; the error is an error number.
    ///
    /// # Errors
    /// `EBUSY` while a thread of this node holds it.
    pub fn mutex_destroy(&'static self, mutex: usize) -> Result<(), i32> {
        match self.lock_table.get(Object(mutex as u64)) {
            Some(entry) if entry.is_locked() => Err(libc::EBUSY),
            _ => Ok(()),
        }
    }

    /// `pthread_mutex_lock`, or the timed forms of it. `kind` is asked only if it matters.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn mutex_lock(
        &'static self,
        mutex: usize,
        kind: impl Fn() -> Kind,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let (thread, slot) = self.thread_number();
        let object = Object(mutex as u64);
        if self.lock_table.entry(object).fast_lock(thread, &kind).map_err(SyncError::code)? == Fast::Done {
            return Ok(());
        }
        self.privately(|| self.mutex_lock_slowly(object, thread, slot, until))
    }

    fn mutex_lock_slowly(
        &'static self,
        object: Object,
        thread: ThreadId,
        slot: Slot,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        self.slots.arm(slot, event::LOCKED);
        let outcome = self.core().with_locks(|locks, env| locks.lock(object, thread, waiter(slot), env));
        if outcome == Outcome::Done || self.wait(slot, event::LOCKED, until) != 0 {
            return Ok(());
        }
        if self.core().with_locks(|locks, _| locks.cancel(object, waiter(slot))) {
            return Err(libc::ETIMEDOUT);
        }
        self.wait(slot, event::LOCKED, None);
        Ok(())
    }

    /// `pthread_mutex_trylock`.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn mutex_try_lock(&'static self, mutex: usize, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, slot) = self.thread_number();
        let object = Object(mutex as u64);
        let entry = self.lock_table.entry(object);
        if entry.fast_try_lock(thread, &kind).map_err(SyncError::code)? == Fast::Done {
            return Ok(());
        }
        if self.privately(|| self.mutex_try_slowly(object, thread, slot)) {
            return Ok(());
        }
        // "Busy" may also mean that the token was on its way. Then it comes, and rests here.
        let patience = Instant::now() + TRY_PATIENCE;
        while !entry.is_locked() && Instant::now() < patience {
            std::thread::yield_now();
            if entry.fast_try_lock(thread, &kind).map_err(SyncError::code)? == Fast::Done {
                return Ok(());
            }
        }
        Err(libc::EBUSY)
    }

    fn mutex_try_slowly(&'static self, object: Object, thread: ThreadId, slot: Slot) -> bool {
        self.slots.arm(slot, event::LOCKED);
        let outcome = self.core().with_locks(|locks, env| locks.try_lock(object, thread, waiter(slot), env));
        match outcome {
            TryOutcome::Acquired => true,
            TryOutcome::Busy => false,
            TryOutcome::Wait => self.wait(slot, event::LOCKED, None) & event::GRANTED != 0,
        }
    }

    /// `pthread_mutex_unlock`.
    ///
    /// # Errors
    /// `EPERM` where the C library gives it.
    pub fn mutex_unlock(&'static self, mutex: usize, kind: impl Fn() -> Kind) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        let object = Object(mutex as u64);
        match self.lock_table.entry(object).fast_unlock(thread, &kind).map_err(SyncError::code)? {
            Fast::Done => Ok(()),
            Fast::Slow => self
                .privately(|| self.core().with_locks(|locks, env| locks.unlock(object, env)))
                .map_err(SyncError::code),
        }
    }

    /// `pthread_cond_wait` and its timed forms.
    ///
    /// # Errors
    /// `ETIMEDOUT`, or what unlocking or locking the mutex gives.
    pub fn cond_wait(
        &'static self,
        cond: usize,
        mutex: usize,
        kind: impl Fn() -> Kind,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        self.privately(|| {
            let server = self.manager(cond);
            let slot = Thread::current(self).slot;
            let cond = Object(cond as u64);
            self.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.submit(server, slot, Request::CondWait { cond });
            // Only a thread that is queued may unlock: a signal must not fall between the two.
            self.wait(slot, event::QUEUED, None);
            let unlocked = self.mutex_unlock(mutex, &kind);
            let until = if unlocked.is_ok() { until } else { Some(Instant::now()) };
            let ended = self.await_or_cancel(slot, server, until, Request::Cancel { object: cond });
            unlocked?;
            self.mutex_lock(mutex, kind, None)?;
            match ended {
                Ended::Answered(_) => Ok(()),
                Ended::TimedOut => Err(libc::ETIMEDOUT),
            }
        })
    }

    /// `pthread_cond_signal` and `pthread_cond_broadcast`.
    ///
    /// # Errors
    /// None are known.
    pub fn cond_signal(&'static self, cond: usize, all: bool) -> Result<(), i32> {
        let object = Object(cond as u64);
        let request =
            if all { Request::CondBroadcast { cond: object } } else { Request::CondSignal { cond: object } };
        self.request(cond, request).map(|_| ())
    }

    /// `pthread_barrier_wait`, with its results.
    pub fn barrier_wait(&'static self, barrier: usize, count: u32) -> i32 {
        self.events.barriers.fetch_add(1, Ordering::Relaxed);
        self.release();
        let request = Request::BarrierArrive { barrier: Object(barrier as u64), count, others: vec![] };
        let result = self.request(barrier, request);
        self.acquire();
        result.map_or_else(|error| error, |value| value as i32)
    }

    /// `sem_post`.
    ///
    /// # Errors
    /// `EOVERFLOW`.
    pub fn semaphore_post(&'static self, semaphore: Initialised) -> Result<(), i32> {
        self.release();
        self.request(semaphore.object.0 as usize, Request::SemPost { semaphore }).map(|_| ())
    }

    /// `sem_wait`, `sem_timedwait`.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub fn semaphore_wait(&'static self, semaphore: Initialised, until: Option<Instant>) -> Result<(), i32> {
        self.request_until(semaphore.object.0 as usize, Request::SemWait { semaphore }, until)?;
        self.acquire();
        Ok(())
    }

    /// `sem_trywait`.
    ///
    /// # Errors
    /// `EAGAIN`.
    pub fn semaphore_try_wait(&'static self, semaphore: Initialised) -> Result<(), i32> {
        self.request(semaphore.object.0 as usize, Request::SemTryWait { semaphore })?;
        self.acquire();
        Ok(())
    }

    /// `sem_getvalue`.
    pub fn semaphore_value(&'static self, semaphore: Initialised) -> i32 {
        self.request(semaphore.object.0 as usize, Request::SemGetValue { semaphore }).unwrap_or(0) as i32
    }

    /// Tells one initialisation of a semaphore from another.
    pub fn stamp(&self) -> u64 {
        (u64::from(self.me.0) + 1) << 48 | self.stamps.fetch_add(1, Ordering::Relaxed)
    }

    /// Locks a readers-writer lock; `attempt` fails instead of waiting.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn rwlock(
        &'static self,
        lock: usize,
        operation: RwOperation,
        attempt: bool,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        let write = operation == RwOperation::Write;
        let request = |attempt| Request::RwLock { lock: Object(lock as u64), thread, write, attempt };
        // A lock that nobody holds against the caller never times out, though others may wait before it.
        let at_once = until.is_some() && self.request(lock, request(true)).is_ok();
        if !at_once {
            self.request_until(lock, request(attempt), until)?;
        }
        self.acquire();
        Ok(())
    }

    /// `pthread_rwlock_unlock`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn rwlock_unlock(&'static self, lock: usize) -> Result<(), i32> {
        let (thread, _) = self.thread_number();
        self.release();
        self.request(lock, Request::RwUnlock { lock: Object(lock as u64), thread }).map(|_| ())
    }

    /// The first part of `pthread_once`: true if the caller must run the routine. `marked` tells whether the
    /// object's memory bears the mark of a routine that was run.
    pub fn once_enter(&'static self, once: usize, marked: impl Fn() -> bool) -> bool {
        let known = |node: &Self| node.onces.read().expect("not poisoned").get(&once).copied().unwrap_or(0);
        let mut stale = 0;
        if known(self) != 0 && marked() {
            return false;
        }
        loop {
            let object = Object(once as u64);
            let generation =
                self.request(once, Request::OnceEnter { once: object, stale }).unwrap_or(ONCE_RUN);
            self.acquire();
            if generation == ONCE_RUN {
                return true;
            }
            if marked() {
                self.onces.write().expect("not poisoned").insert(once, generation as u32);
                return false;
            }
            stale = generation as u32;
        }
    }

    /// The routine was run, and the object's memory bears the mark.
    pub fn once_done(&'static self, once: usize) {
        self.release();
        let _ = self.request(once, Request::OnceDone { once: Object(once as u64) });
    }

    /// The routine ended by an exception.
    pub fn once_failed(&'static self, once: usize) {
        self.release();
        let _ = self.request(once, Request::OnceFailed { once: Object(once as u64) });
    }

    /// Waits at an address while `unchanged` says so.
    ///
    /// # Errors
    /// `EAGAIN` if the word has changed, `ETIMEDOUT`.
    pub fn futex_wait(
        &'static self,
        address: usize,
        bitset: u32,
        unchanged: impl Fn() -> bool,
        until: Option<Instant>,
    ) -> Result<(), i32> {
        self.privately(|| {
            let server = self.manager(address);
            let slot = Thread::current(self).slot;
            let futex = Object(address as u64);
            self.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.submit(server, slot, Request::FutexWait { futex, bitset });
            let events = self.wait(slot, event::QUEUED | event::ANSWERED, None);
            if events & event::FAILED != 0 {
                return Err(libc::EINVAL);
            }
            let still = unchanged();
            let until = if still { until } else { Some(Instant::now()) };
            let ended = self.await_or_cancel(slot, server, until, Request::Cancel { object: futex });
            self.acquire();
            match ended {
                Ended::Answered(_) => Ok(()),
                Ended::TimedOut if still => Err(libc::ETIMEDOUT),
                Ended::TimedOut => Err(libc::EAGAIN),
            }
        })
    }

    /// Wakes threads that wait at an address; returns how many.
    ///
    /// # Errors
    /// None are known.
    pub fn futex_wake(&'static self, address: usize, count: u32, bitset: u32) -> Result<i64, i32> {
        self.release();
        self.request(address, Request::FutexWake { futex: Object(address as u64), count, bitset })
    }

    /// `pthread_key_create`: the key.
    ///
    /// # Errors
    /// `EAGAIN`.
    pub fn key_create(&'static self, destructor: usize) -> Result<u32, i32> {
        self.request_of(NodeId(0), Request::KeyCreate { destructor: destructor as u64 }).map(|key| key as u32)
    }

    /// `pthread_key_delete`.
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn key_delete(&'static self, key: u32) -> Result<(), i32> {
        self.request_of(NodeId(0), Request::KeyDelete { key }).map(|_| ())
    }

    /// A key's destructor; `None` if it has none or is deleted.
    pub fn key_destructor(&'static self, key: u32) -> Option<usize> {
        self.request_of(NodeId(0), Request::KeyDestructor { key })
            .ok()
            .map(|d| d as usize)
            .filter(|&d| d != 0)
    }

    /// Waits for a thread's value.
    ///
    /// # Errors
    /// Error numbers, as from `pthread_join` and its relatives.
    pub fn join_thread(&'static self, thread: u64, wait: JoinWait) -> Result<u64, i32> {
        self.privately(|| {
            let (by, slot) = self.thread_number();
            if by.0 == thread {
                return Err(libc::EDEADLK);
            }
            let server = Self::node_of(thread);
            let thread = ThreadId(thread);
            self.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.submit(server, slot, Request::Join { thread, by, attempt: matches!(wait, JoinWait::Not) });
            let until = if let JoinWait::Until(until) = wait { Some(until) } else { None };
            let ended = self.await_or_cancel(slot, server, until, Request::CancelJoin { thread });
            self.acquire();
            match ended {
                Ended::Answered(answer) => answer.map(i64::cast_unsigned),
                Ended::TimedOut => Err(libc::ETIMEDOUT),
            }
        })
    }

    /// `pthread_detach`.
    ///
    /// # Errors
    /// Error numbers, as from the C library.
    pub fn detach_thread(&'static self, thread: u64) -> Result<(), i32> {
        self.request_of(Self::node_of(thread), Request::Detach { thread: ThreadId(thread) }).map(|_| ())
    }
}

fn waiter(slot: Slot) -> gondwana_coherence::Waiter {
    crate::ports::Continuation::Thread(slot).into()
}
