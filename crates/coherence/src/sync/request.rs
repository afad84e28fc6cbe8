//! What nodes ask the manager of an object, and what it answers.

use super::{Claim, Construct, Object, ObjectKey, ObjectKind, SyncError, Thread};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// Names a request among those of its node, until its final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub u64);

/// What a node asks of the manager of an object.
///
/// Unless said otherwise the answer is `Done(0)` or an error. A caller goes on only when it has the answer, even
/// of requests that merely tell: otherwise a third thread, which learnt of the call in another way, could
/// overtake it. Only signals to conditions may go without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Request {
    /// `pthread_cond_wait`: [`Answer::Enqueued`] at once (now the caller may unlock the mutex), `Done` when
    /// signalled.
    CondWait {
        /// The condition.
        cond: Object,
    },
    /// Wakes the thread that has waited longest; `Done` with how many were woken.
    ///
    /// A signal may arrive later than it was given, so it need not be `awaited`. Those that waited when it was given
    /// stand before all that came since, and one of them is woken unless each was woken or has given up already. If a later
    /// thread is woken instead, that is a spurious wake-up, which programs must expect.
    CondSignal {
        /// The condition.
        cond: Object,
        /// `Done` is answered.
        awaited: bool,
    },
    /// Wakes all; `Done` with how many were woken. It may be late as a signal may.
    CondBroadcast {
        /// The condition.
        cond: Object,
        /// `Done` is answered.
        awaited: bool,
    },
    /// Adds one, or wakes the thread that has waited longest.
    SemPost {
        /// The semaphore.
        semaphore: Initialised,
    },
    /// Takes one, when there is one.
    SemWait {
        /// The semaphore.
        semaphore: Initialised,
    },
    /// Takes one, or fails with `Exhausted` (`EAGAIN`).
    SemTryWait {
        /// The semaphore.
        semaphore: Initialised,
    },
    /// `Done` with the value.
    SemGetValue {
        /// The semaphore.
        semaphore: Initialised,
    },
    /// Read, write or try to lock a readers-writer lock.
    RwLock {
        /// The lock.
        lock: Object,
        /// For writing, alone.
        write: bool,
        /// Fails with `Busy` where it would wait.
        attempt: bool,
        /// A reader does not wait for writers that wait: it reads already, or the lock prefers readers.
        passes: bool,
    },
    /// Unlocks a readers-writer lock that a thread of the node holds.
    RwUnlock {
        /// The lock.
        lock: Object,
        /// It is held for writing.
        write: bool,
    },
    /// `pthread_once`: `Done` with [`ONCE_RUN`](super::ONCE_RUN) if the caller must run the routine and then
    /// send `OnceDone` or `OnceFailed`; otherwise, when it has been run, with the generation of that run.
    ///
    /// Objects are made over freed memory without any call. A caller that was told a generation, has acquired
    /// and still finds its object in the initial state knows that the object is new: it asks again, with that
    /// generation as `stale`.
    OnceEnter {
        /// The control object.
        once: Object,
        /// A generation known to belong to an object that is gone; 0 if none.
        stale: u32,
    },
    /// The routine has been run.
    OnceDone {
        /// The control object.
        once: Object,
    },
    /// The routine ended with an exception: the next caller runs it.
    OnceFailed {
        /// The control object.
        once: Object,
    },
    /// Waits at an address: [`Answer::Enqueued`] at once (now the caller must look whether the word still has
    /// the expected value and cancel if not), `Done` when woken.
    FutexWait {
        /// The word's address.
        futex: Object,
        /// Which wakers are meant; not 0.
        bitset: u32,
    },
    /// Wakes waiters, first come first; `Done` with how many.
    FutexWake {
        /// The word's address.
        futex: Object,
        /// How many at most.
        count: u32,
        /// Which waiters are meant.
        bitset: u32,
    },
    /// The request with *this request's ticket* is to be given up: it is answered [`Answer::Cancelled`] if it was
    /// still waiting. If not, its final answer is already on its way. Not answered itself.
    Cancel {
        /// The object that the request waits for.
        key: ObjectKey,
    },
    /// The same for a `Join`.
    CancelJoin {
        /// The thread that is waited for.
        thread: Thread,
    },
    /// A thread starts. Sent to its own node, like all about threads.
    ThreadStart {
        /// The thread.
        thread: Thread,
        /// It can't be joined.
        detached: bool,
    },
    /// A thread ends.
    ThreadExit {
        /// The thread.
        thread: Thread,
        /// What it returns.
        value: u64,
    },
    /// `Done` with the thread's value (the same 64 bits) when it has ended.
    Join {
        /// The thread.
        thread: Thread,
        /// Who joins it.
        by: Thread,
        /// Fails with `Busy` if it has not ended.
        attempt: bool,
    },
    /// The thread won't be joined.
    Detach {
        /// The thread.
        thread: Thread,
    },
    /// Makes a key of thread-specific data; `Done` with the key. No key is ever made twice in a run, so nodes
    /// need not be told of deletions to tell an old value from a new one.
    KeyCreate {
        /// The address of the destructor, or 0.
        destructor: u64,
    },
    /// Deletes a key.
    KeyDelete {
        /// The key.
        key: u32,
    },
    /// `Done` with the key's destructor (the same 64 bits).
    KeyDestructor {
        /// The key.
        key: u32,
    },
    /// Iterations of a work-sharing construct; `Done` with what [`Claim::range`] takes.
    Claim {
        /// The construct.
        construct: Construct,
        /// No thread of the team is in constructs up to this one any more.
        settled: u64,
        /// How many.
        claim: Claim,
    },
    /// `Done` when it is an ordered part's turn.
    AwaitTurn {
        /// The construct.
        construct: Construct,
        /// The iteration.
        turn: u64,
    },
    /// Ordered parts are over, or will be when it is their turn.
    PassTurn {
        /// The construct.
        construct: Construct,
        /// As for `Claim`.
        settled: u64,
        /// From which iteration to before which one.
        turns: (u64, u64),
    },
}

/// A semaphore with what its initialisation left in the program's memory, so that initialising needs no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Initialised {
    /// The semaphore.
    pub object: Object,
    /// Its initial value: taken when the manager does not know this initialisation yet.
    pub value: u32,
    /// Tells one initialisation at this address from another.
    pub stamp: u64,
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// The thread waits now. The final answer follows; every other answer is final.
    Enqueued,
    /// Successful, with a value that depends on the request.
    Done(i64),
    /// Not successful.
    Failed(SyncError),
    /// Given up by [`Request::Cancel`].
    Cancelled,
}

/// An answer and who gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reply {
    /// The node that asked, perhaps the manager itself.
    pub to: NodeId,
    /// Its request.
    pub ticket: Ticket,
    /// The answer.
    pub answer: Answer,
}

impl Request {
    /// The object that it is about, if that is one whose state rests where it is used.
    #[must_use]
    pub fn key(&self) -> Option<ObjectKey> {
        let (object, kind) = match *self {
            Self::CondWait { cond } | Self::CondSignal { cond, .. } | Self::CondBroadcast { cond, .. } => {
                (cond, ObjectKind::Condition)
            }
            Self::FutexWait { futex, .. } | Self::FutexWake { futex, .. } => (futex, ObjectKind::Futex),
            Self::SemPost { semaphore }
            | Self::SemWait { semaphore }
            | Self::SemTryWait { semaphore }
            | Self::SemGetValue { semaphore } => (semaphore.object, ObjectKind::Semaphore),
            Self::RwLock { lock, .. } | Self::RwUnlock { lock, .. } => (lock, ObjectKind::RwLock),
            Self::Cancel { key } => return Some(key),
            _ => return None,
        };
        Some(object.of_kind(kind))
    }
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Caller {
    pub node: NodeId,
    pub ticket: Ticket,
}

impl Caller {
    pub(super) fn reply(self, answer: Answer) -> Reply {
        Reply { to: self.node, ticket: self.ticket, answer }
    }

    pub(super) fn done(self, value: i64) -> Reply {
        self.reply(Answer::Done(value))
    }

    pub(super) fn finish(self, result: Result<i64, SyncError>) -> Reply {
        self.reply(result.map_or_else(Answer::Failed, Answer::Done))
    }
}
