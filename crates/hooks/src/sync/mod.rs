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

use crate::world::world;
use gondwana_sim::ThreadId;
use std::collections::{BTreeMap, VecDeque};

/// All objects that are in use.
struct Objects {
    mutexes: BTreeMap<usize, mutex::Mutex>,
    conditions: BTreeMap<usize, VecDeque<ThreadId>>,
    barriers: BTreeMap<usize, barrier::Barrier>,
    rwlocks: BTreeMap<usize, rwlock::RwLock>,
    semaphores: BTreeMap<usize, semaphore::Semaphore>,
    onces: BTreeMap<usize, once::Once>,
}

/// Apart from the world, which begins with `main`: constructors of libraries lock mutexes before, such as that of Fortran's.
static mut OBJECTS: Objects = Objects {
    mutexes: BTreeMap::new(),
    conditions: BTreeMap::new(),
    barriers: BTreeMap::new(),
    rwlocks: BTreeMap::new(),
    semaphores: BTreeMap::new(),
    onces: BTreeMap::new(),
};

/// The objects. The reference must end before the thread waits.
fn objects() -> &'static mut Objects {
    // SAFETY: it is not null; one host thread at a time simulates, and callers keep to what is said above.
    unsafe { (&raw mut OBJECTS).as_mut().unwrap_unchecked() }
}

/// The thread that runs; before `main` there is one.
fn current() -> ThreadId {
    world().map_or(0, |world| world.current)
}
