//! Objects that threads wait at, by their address. Their state is kept here; each call is also an access to the object's
//! memory, so that the line travels between the processors as that of a real lock would.

mod barrier;
mod condition;
mod guard;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod spin;

use crate::world::started;
use gondwana_sim::ThreadId;
use std::collections::{BTreeMap, VecDeque};

/// All objects that are in use.
#[derive(Default)]
pub(crate) struct Objects {
    mutexes: BTreeMap<usize, mutex::Mutex>,
    conditions: BTreeMap<usize, VecDeque<ThreadId>>,
    barriers: BTreeMap<usize, barrier::Barrier>,
    rwlocks: BTreeMap<usize, rwlock::RwLock>,
    semaphores: BTreeMap<usize, semaphore::Semaphore>,
    onces: BTreeMap<usize, once::Once>,
}

/// The objects of the world. The reference must end before the thread waits.
fn objects() -> &'static mut Objects {
    &mut started().objects
}

/// The thread that runs.
fn current() -> ThreadId {
    started().current
}
