use super::{current, objects};
use crate::next;
use crate::threads::touch;
use crate::world::{give_way, started, wait};
use gondwana_interpose::{KINDS, kind_bits};
use gondwana_sim::{Kind, ThreadId, Time};
use libc::{c_int, pthread_mutex_t, timespec};
use std::collections::VecDeque;

/// A mutex that is locked.
#[derive(Default)]
pub(crate) struct Mutex {
    owner: ThreadId,
    /// How often the owner has locked it.
    count: u32,
    waiting: VecDeque<ThreadId>,
}

/// The kind of a mutex.
unsafe fn kind(mutex: *const pthread_mutex_t) -> c_int {
    // SAFETY: the program's mutex, initialised by the C library or its macros.
    unsafe { kind_bits(mutex) & KINDS }
}

/// Locks it, waiting for it until a time. Returns what the C library's function does.
pub(super) unsafe fn lock(mutex: *mut pthread_mutex_t, deadline: Option<Time>) -> c_int {
    touch(mutex, Kind::Write);
    let thread = current();
    let address = mutex as usize;
    let Some(state) = objects().mutexes.get_mut(&address) else {
        objects().mutexes.insert(address, Mutex { owner: thread, count: 1, waiting: VecDeque::new() });
        return 0;
    };
    if state.owner == thread {
        // SAFETY: the program's mutex.
        match unsafe { kind(mutex) } {
            libc::PTHREAD_MUTEX_RECURSIVE => {
                state.count += 1;
                return 0;
            }
            libc::PTHREAD_MUTEX_ERRORCHECK => return libc::EDEADLK,
            _ => {}
        }
    }
    state.waiting.push_back(thread);
    if !wait(deadline) {
        if let Some(state) = objects().mutexes.get_mut(&address) {
            state.waiting.retain(|waiting| *waiting != thread);
        }
        return libc::ETIMEDOUT;
    }
    // The one that unlocked it has made this thread the owner.
    touch(mutex, Kind::Write);
    0
}

/// Unlocks it; the thread that has waited longest gets it.
pub(super) unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
    touch(mutex, Kind::Write);
    let thread = current();
    let address = mutex as usize;
    // SAFETY: the program's mutex.
    let strict = unsafe { kind(mutex) } != libc::PTHREAD_MUTEX_NORMAL;
    let Some(state) = objects().mutexes.get_mut(&address) else {
        return if strict { libc::EPERM } else { 0 };
    };
    if strict && state.owner != thread {
        return libc::EPERM;
    }
    state.count -= 1;
    if state.count > 0 {
        return 0;
    }
    match state.waiting.pop_front() {
        None => {
            objects().mutexes.remove(&address);
        }
        Some(next) => {
            (state.owner, state.count) = (next, 1);
            started().wake(next);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the program's mutex.
    unsafe { lock(mutex, None) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int {
    // SAFETY: the program's variables.
    unsafe { lock(mutex, Some(crate::clock::moment(&*until, libc::CLOCK_REALTIME))) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    touch(mutex, Kind::Write);
    let thread = current();
    let address = mutex as usize;
    let is_free = match objects().mutexes.get(&address) {
        None => true,
        // SAFETY: the program's mutex.
        Some(state) => state.owner == thread && unsafe { kind(mutex) } == libc::PTHREAD_MUTEX_RECURSIVE,
    };
    if is_free {
        let state = objects().mutexes.entry(address).or_default();
        state.owner = thread;
        state.count += 1;
        return 0;
    }
    // Programs try again and again; others must get the time to unlock it.
    give_way(false);
    libc::EBUSY
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the program's mutex.
    unsafe { unlock(mutex) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const libc::pthread_mutexattr_t,
) -> c_int {
    objects().mutexes.remove(&(mutex as usize));
    let real = next!(pthread_mutex_init: unsafe extern "C" fn(
        *mut pthread_mutex_t, *const libc::pthread_mutexattr_t
    ) -> c_int);
    // SAFETY: the program's own call: the C library writes the kind.
    unsafe { real(mutex, attributes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    if objects().mutexes.contains_key(&(mutex as usize)) { libc::EBUSY } else { 0 }
}
