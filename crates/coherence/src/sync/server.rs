//! The manager of conditions, semaphores, readers-writer locks, `once` controls, keys and threads: it answers the requests
//! of all nodes about the objects in its charge, at once or when another request lets it.

use super::key::Keys;
use super::once::Once;
use super::request::{Answer, Caller, Initialised, Reply, Request, Ticket};
use super::rwlock::RwLock;
use super::semaphore::{SEM_VALUE_MAX, Semaphore};
use super::thread::Threads;
use super::wait_queue::WaitQueue;
use super::work_sharing::WorkSharing;
use super::{Object, SyncError, Thread};
use gondwana_topology::NodeId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The objects that one node manages, and its threads.
///
/// Objects of different types may succeed each other at one address, so each type has its own map; most objects
/// are known only while somebody waits for them or holds them, so reused memory needs no call.
#[derive(Debug, Default)]
pub struct Server {
    conds: HashMap<Object, WaitQueue>,
    futexes: HashMap<Object, WaitQueue>,
    semaphores: HashMap<Object, Semaphore>,
    rwlocks: HashMap<Object, RwLock>,
    onces: HashMap<Object, Once>,
    work_sharing: WorkSharing,
    threads: Threads,
    keys: Keys,
}

impl Server {
    /// A server that knows no object.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The readers-writer locks that somebody holds: address, writer and readers.
    pub fn held_rwlocks(&self) -> impl Iterator<Item = (Object, Option<Thread>, Vec<Thread>)> {
        self.rwlocks.iter().map(|(lock, state)| {
            let (writer, readers) = state.holders();
            (*lock, writer, readers.collect())
        })
    }

    /// A thread of node `from` (perhaps this one) asks. Appends to `out` the answers that are due, to this and to
    /// earlier requests, in the order in which they must be sent. Every ticket gets exactly one final answer, but for
    /// signals that are not awaited, which get none.
    pub fn request(&mut self, from: NodeId, ticket: Ticket, request: Request, out: &mut Vec<Reply>) {
        let caller = Caller { node: from, ticket };
        if let Some(result) = self.perform(caller, request, out) {
            out.push(caller.finish(result));
        }
    }

    /// `None`: the caller has its answer already, gets it later, or wants none.
    fn perform(
        &mut self,
        caller: Caller,
        request: Request,
        out: &mut Vec<Reply>,
    ) -> Option<Result<i64, SyncError>> {
        match request {
            Request::CondWait { cond } => {
                self.conds.entry(cond).or_default().wait(caller, u32::MAX, out);
                None
            }
            Request::CondSignal { cond, awaited } => {
                let woken = wake(&mut self.conds, cond, 1, u32::MAX, out);
                awaited.then_some(Ok(woken))
            }
            Request::CondBroadcast { cond, awaited } => {
                let woken = wake(&mut self.conds, cond, u32::MAX, u32::MAX, out);
                awaited.then_some(Ok(woken))
            }
            Request::FutexWait { bitset: 0, .. } => Some(Err(SyncError::Invalid)),
            Request::FutexWait { futex, bitset } => {
                self.futexes.entry(futex).or_default().wait(caller, bitset, out);
                None
            }
            Request::FutexWake { futex, count, bitset } => {
                Some(Ok(wake(&mut self.futexes, futex, count, bitset, out)))
            }
            Request::SemInit { semaphore } => Some(self.initialise(semaphore)),
            Request::SemPost { semaphore } => Some(self.semaphore(semaphore).post(out)),
            Request::SemWait { semaphore } => {
                self.semaphore(semaphore).wait(caller, out);
                None
            }
            Request::SemTryWait { semaphore } => Some(self.semaphore(semaphore).try_wait()),
            Request::SemGetValue { semaphore } => Some(Ok(self.semaphore(semaphore).value().into())),
            Request::RwLock { lock, thread, write, attempt } => {
                self.rwlocks.entry(lock).or_default().lock(caller, thread, write, attempt)
            }
            Request::RwUnlock { lock, thread } => {
                let Entry::Occupied(mut state) = self.rwlocks.entry(lock) else {
                    return Some(Err(SyncError::NotOwner));
                };
                let result = state.get_mut().unlock(thread, out);
                if state.get().is_idle() {
                    state.remove();
                }
                Some(result)
            }
            Request::OnceEnter { once, stale } => {
                self.onces.entry(once).or_default().enter(caller, stale, out);
                None
            }
            Request::OnceDone { once } => Some(self.once(once).and_then(|state| state.done(out))),
            Request::OnceFailed { once } => Some(self.once(once).and_then(|state| state.failed(out))),
            Request::Cancel { object } => {
                if self.cancel(caller, object, out) {
                    out.push(caller.reply(Answer::Cancelled));
                }
                None
            }
            Request::CancelJoin { thread } => {
                self.threads.cancel(caller, thread, out);
                None
            }
            Request::Forget { object } => Some(self.forget(object)),
            Request::ThreadStart { thread, detached } => Some(self.threads.start(thread, detached)),
            Request::ThreadExit { thread, value } => Some(self.threads.exit(thread, value, out)),
            Request::Join { thread, by, attempt } => self.threads.join(caller, thread, by, attempt),
            Request::Detach { thread } => Some(self.threads.detach(thread)),
            Request::KeyCreate { destructor } => Some(self.keys.create(destructor)),
            Request::KeyDelete { key } => Some(self.keys.delete(key)),
            Request::KeyDestructor { key } => Some(self.keys.destructor(key)),
            Request::Claim { construct, settled, claim } => {
                Some(Ok(self.work_sharing.claim(construct, settled, claim).cast_signed()))
            }
            Request::AwaitTurn { construct, turn } => {
                self.work_sharing.await_turn(construct, turn, caller, out);
                None
            }
            Request::PassTurn { construct, settled, turns } => {
                self.work_sharing.pass_turn(construct, settled, turns, out);
                Some(Ok(0))
            }
        }
    }

    fn initialise(&mut self, semaphore: Initialised) -> Result<i64, SyncError> {
        if semaphore.value > SEM_VALUE_MAX {
            return Err(SyncError::Invalid);
        }
        if self.semaphores.get(&semaphore.object).is_some_and(|known| !known.is_idle()) {
            return Err(SyncError::Busy);
        }
        self.semaphores.insert(semaphore.object, Semaphore::new(semaphore.value, semaphore.stamp));
        Ok(0)
    }

    fn semaphore(&mut self, semaphore: Initialised) -> &mut Semaphore {
        let Initialised { object, value, stamp } = semaphore;
        let known = self.semaphores.entry(object).or_insert_with(|| Semaphore::new(value, stamp));
        if known.is_stale(stamp) {
            *known = Semaphore::new(value, stamp);
        }
        known
    }

    fn once(&mut self, once: Object) -> Result<&mut Once, SyncError> {
        self.onces.get_mut(&once).ok_or(SyncError::Invalid)
    }

    /// True if the caller was waiting for the object.
    fn cancel(&mut self, caller: Caller, object: Object, out: &mut Vec<Reply>) -> bool {
        cancel(&mut self.conds, caller, object)
            || cancel(&mut self.futexes, caller, object)
            || self.semaphores.get_mut(&object).is_some_and(|state| state.cancel(caller))
            || self.rwlocks.get_mut(&object).is_some_and(|state| state.cancel(caller, out))
    }

    fn forget(&mut self, object: Object) -> Result<i64, SyncError> {
        let busy = self.conds.contains_key(&object)
            || self.futexes.contains_key(&object)
            || self.rwlocks.get(&object).is_some_and(|state| !state.is_idle())
            || self.semaphores.get(&object).is_some_and(|state| !state.is_idle())
            || self.onces.get(&object).is_some_and(|state| !state.is_idle());
        if busy {
            return Err(SyncError::Busy);
        }
        self.rwlocks.remove(&object);
        self.semaphores.remove(&object);
        self.onces.remove(&object);
        Ok(0)
    }
}

fn wake(
    queues: &mut HashMap<Object, WaitQueue>,
    object: Object,
    count: u32,
    bitset: u32,
    out: &mut Vec<Reply>,
) -> i64 {
    let Entry::Occupied(mut queue) = queues.entry(object) else { return 0 };
    let woken = queue.get_mut().wake(count, bitset, out);
    if queue.get().is_idle() {
        queue.remove();
    }
    woken.into()
}

fn cancel(queues: &mut HashMap<Object, WaitQueue>, caller: Caller, object: Object) -> bool {
    let Entry::Occupied(mut queue) = queues.entry(object) else { return false };
    let cancelled = queue.get_mut().cancel(caller);
    if queue.get().is_idle() {
        queue.remove();
    }
    cancelled
}
