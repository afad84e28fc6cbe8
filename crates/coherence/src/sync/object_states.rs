//! The states of conditions, futexes, semaphores and readers-writer locks, and what requests do to them.

use super::request::{Answer, Caller, Initialised, Reply, Request};
use super::resting::Rest;
use super::rwlock::RwLock;
use super::semaphore::Semaphore;
use super::wait_queue::WaitQueue;
use super::{ObjectKey, ObjectKind, SyncError};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The state of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum ObjectState {
    Queue(WaitQueue),
    Semaphore(Semaphore),
    RwLock(RwLock),
}

impl ObjectState {
    /// An object that nobody has used.
    fn fresh(kind: ObjectKind, request: &Request) -> Option<Self> {
        Some(match kind {
            ObjectKind::Condition | ObjectKind::Futex => Self::Queue(WaitQueue::default()),
            ObjectKind::RwLock => Self::RwLock(RwLock::default()),
            ObjectKind::Semaphore => Self::Semaphore(initial(initialised(request)?)),
        })
    }

    /// True if the object is as one that nobody has used.
    fn is_fresh(&self) -> bool {
        match self {
            Self::Queue(queue) => queue.is_idle(),
            Self::RwLock(lock) => *lock == RwLock::default(),
            Self::Semaphore(_) => false,
        }
    }

    /// What can rest with a node, if nobody else depends on the object.
    fn rest(&self, node: NodeId) -> Option<Rest> {
        match self {
            Self::Queue(queue) => queue.is_idle().then(Rest::default),
            Self::Semaphore(semaphore) => semaphore.rest(),
            Self::RwLock(lock) => lock.rest(node),
        }
    }
}

fn initial(Initialised { value, stamp, .. }: Initialised) -> Semaphore {
    Semaphore::new(value, stamp)
}

fn initialised(request: &Request) -> Option<Initialised> {
    match *request {
        Request::SemPost { semaphore }
        | Request::SemWait { semaphore }
        | Request::SemTryWait { semaphore }
        | Request::SemGetValue { semaphore } => Some(semaphore),
        _ => None,
    }
}

/// The objects whose state is at this node; one that is not known is as nobody has used it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ObjectStates(BTreeMap<ObjectKey, ObjectState>);

impl ObjectStates {
    /// A thread requests something. Appends to `out` the answers that are due, to this and to earlier requests, in the order in
    /// which they must be sent. Every ticket gets exactly one final answer, but for signals that are not awaited, which get
    /// none.
    pub(super) fn request(
        &mut self,
        key: ObjectKey,
        caller: Caller,
        request: &Request,
        out: &mut Vec<Reply>,
    ) {
        let state = match self.0.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match ObjectState::fresh(key.kind, request) {
                Some(fresh) => place.insert(fresh),
                // Nobody waits for what nobody has used.
                None => return,
            },
        };
        if let Some(result) = perform(state, caller, request, out) {
            out.push(caller.finish(result));
        }
        if state.is_fresh() {
            self.0.remove(&key);
        }
    }

    /// True if nodes may do what does not change the object for others, each by itself.
    pub(super) fn is_shareable(&self, key: ObjectKey) -> bool {
        match self.0.get(&key) {
            Some(ObjectState::Queue(queue)) => queue.is_idle(),
            Some(ObjectState::RwLock(lock)) => lock.admits_readers(),
            Some(ObjectState::Semaphore(_)) => false,
            None => key.kind != ObjectKind::Semaphore,
        }
    }

    /// The semaphores, in the order of their addresses.
    pub(super) fn semaphores(&self) -> impl Iterator<Item = Initialised> {
        self.0.iter().filter_map(|(key, state)| match state {
            ObjectState::Semaphore(semaphore) => Some(semaphore.present(key.object)),
            _ => None,
        })
    }

    /// Takes the object out if it can rest with a node, as a word for its threads.
    pub(super) fn rest(&mut self, key: ObjectKey, node: NodeId) -> Option<Rest> {
        let Some(state) = self.0.get(&key) else {
            return (key.kind != ObjectKind::Semaphore).then(Rest::default);
        };
        let rest = state.rest(node)?;
        self.0.remove(&key);
        Some(rest)
    }

    /// The object no longer rests: only threads of `node` use it.
    pub(super) fn stir(&mut self, key: ObjectKey, node: NodeId, rest: Rest) {
        match key.kind {
            ObjectKind::Condition | ObjectKind::Futex => {}
            ObjectKind::Semaphore => {
                self.0.insert(key, ObjectState::Semaphore(Semaphore::new(rest.count, rest.stamp)));
            }
            ObjectKind::RwLock if rest == Rest::default() => {}
            ObjectKind::RwLock => {
                self.0.insert(key, ObjectState::RwLock(RwLock::resting(node, rest)));
            }
        }
    }

    /// Threads of a node that shared the lock hold it for reading.
    pub(super) fn add_readers(&mut self, key: ObjectKey, node: NodeId, count: u32) {
        if count == 0 {
            return;
        }
        let state = self.0.entry(key).or_insert_with(|| ObjectState::RwLock(RwLock::default()));
        if let ObjectState::RwLock(lock) = state {
            lock.add_readers(node, count);
        }
    }

    /// The object goes to another node, with all who wait for it.
    pub(super) fn take(&mut self, key: ObjectKey) -> Option<ObjectState> {
        self.0.remove(&key)
    }

    /// The object comes from another node. False if it is of another kind.
    pub(super) fn put(&mut self, key: ObjectKey, state: Option<ObjectState>) -> bool {
        let Some(state) = state else { return true };
        let fits = match (&state, key.kind) {
            (ObjectState::Queue(_), kind) => matches!(kind, ObjectKind::Condition | ObjectKind::Futex),
            (ObjectState::Semaphore(_), kind) => kind == ObjectKind::Semaphore,
            (ObjectState::RwLock(_), kind) => kind == ObjectKind::RwLock,
        };
        if fits {
            self.0.insert(key, state);
        }
        fits
    }
}

/// `None`: the caller has its answer already, gets it later, or wants none.
fn perform(
    state: &mut ObjectState,
    caller: Caller,
    request: &Request,
    out: &mut Vec<Reply>,
) -> Option<Result<i64, SyncError>> {
    match (state, request) {
        (ObjectState::Queue(queue), Request::CondWait { .. }) => {
            queue.wait(caller, u32::MAX, out);
            None
        }
        (ObjectState::Queue(queue), Request::CondSignal { awaited, .. }) => {
            let woken = queue.wake(1, u32::MAX, out);
            awaited.then_some(Ok(woken.into()))
        }
        (ObjectState::Queue(queue), Request::CondBroadcast { awaited, .. }) => {
            let woken = queue.wake(u32::MAX, u32::MAX, out);
            awaited.then_some(Ok(woken.into()))
        }
        (ObjectState::Queue(_), Request::FutexWait { bitset: 0, .. }) => Some(Err(SyncError::Invalid)),
        (ObjectState::Queue(queue), Request::FutexWait { bitset, .. }) => {
            queue.wait(caller, *bitset, out);
            None
        }
        (ObjectState::Queue(queue), Request::FutexWake { count, bitset, .. }) => {
            Some(Ok(queue.wake(*count, *bitset, out).into()))
        }
        (ObjectState::Semaphore(known), _) if !matches!(request, Request::Cancel { .. }) => {
            semaphore(known, caller, request, out)
        }
        (ObjectState::RwLock(lock), Request::RwLock { write, attempt, passes, .. }) => {
            lock.lock(caller, *write, *attempt, *passes)
        }
        (ObjectState::RwLock(lock), Request::RwUnlock { write, .. }) => {
            Some(lock.unlock(caller.node, *write, out))
        }
        (state, Request::Cancel { .. }) => {
            let cancelled = match state {
                ObjectState::Queue(queue) => queue.cancel(caller),
                ObjectState::Semaphore(semaphore) => semaphore.cancel(caller),
                ObjectState::RwLock(lock) => lock.cancel(caller, out),
            };
            if cancelled {
                out.push(caller.reply(Answer::Cancelled));
            }
            None
        }
        _ => Some(Err(SyncError::Invalid)),
    }
}

fn semaphore(
    known: &mut Semaphore,
    caller: Caller,
    request: &Request,
    out: &mut Vec<Reply>,
) -> Option<Result<i64, SyncError>> {
    let now = initialised(request)?;
    if known.is_stale(now.stamp) {
        *known = initial(now);
    }
    match request {
        Request::SemPost { .. } => Some(known.post(out)),
        Request::SemWait { .. } => {
            known.wait(caller, out);
            None
        }
        Request::SemTryWait { .. } => Some(known.try_wait()),
        _ => Some(Ok(known.value().into())),
    }
}
