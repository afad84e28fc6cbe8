//! Critical sections, atomic operations that the compiler makes no instruction of, and locks.

use super::{LINE, allocate, state};
use crate::threads::touch;
use crate::world::{give_way, started, wait};
use gondwana_sim::{Kind, ThreadId};
use libc::{c_int, c_void};
use std::collections::VecDeque;

/// Who has a lock: a thread, or for those of `omp.h` a task.
type Owner = (ThreadId, u64);

/// A lock that somebody has.
pub(super) struct Lock {
    owner: Owner,
    count: c_int,
    waiting: VecDeque<Owner>,
}

fn owner() -> Owner {
    (started().current, state().context().task)
}

/// Takes the lock at an address, and with `nests` once more if the task has it. How often it has it.
fn acquire(address: usize, nests: bool, may_wait: bool) -> c_int {
    touch(address as *const u8, Kind::Write);
    let owner = owner();
    let Some(lock) = state().locks.get_mut(&address) else {
        state().locks.insert(address, Lock { owner, count: 1, waiting: VecDeque::new() });
        return 1;
    };
    if nests && lock.owner.1 == owner.1 {
        lock.count += 1;
        return lock.count;
    }
    if !may_wait {
        // Programs try again and again; others must get the time to give it back.
        give_way(false);
        return 0;
    }
    lock.waiting.push_back(owner);
    wait(None);
    // The one that gave it back has made this task its owner.
    touch(address as *const u8, Kind::Write);
    1
}

/// Gives a lock back; the one that has waited longest gets it.
fn release(address: usize) {
    touch(address as *const u8, Kind::Write);
    let Some(lock) = state().locks.get_mut(&address) else { super::missing() };
    lock.count -= 1;
    if lock.count > 0 {
        return;
    }
    match lock.waiting.pop_front() {
        None => {
            state().locks.remove(&address);
        }
        Some(next) => {
            (lock.owner, lock.count) = (next, 1);
            started().wake(next.0);
        }
    }
}

/// The line of unnamed critical sections, or the one behind it.
fn line(number: usize) -> usize {
    if state().lines == 0 {
        state().lines = allocate(2 * LINE, LINE);
    }
    state().lines + number * LINE
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_critical_start() {
    acquire(line(0), false, true);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_critical_end() {
    release(line(0));
}

/// The address is that of a pointer of the program, one for each name.
#[unsafe(no_mangle)]
extern "C" fn GOMP_critical_name_start(name: *mut *mut c_void) {
    acquire(name as usize, false, true);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_critical_name_end(name: *mut *mut c_void) {
    release(name as usize);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_atomic_start() {
    acquire(line(1), false, true);
}

#[unsafe(no_mangle)]
extern "C" fn GOMP_atomic_end() {
    release(line(1));
}

/// The locks of `omp.h`; what is in their memory does not matter.
macro_rules! locks {
    ($($init:ident $destroy:ident $set:ident $unset:ident $test:ident: $nests:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $init(lock: *mut c_void) {
            state().locks.remove(&(lock as usize));
        }

        #[unsafe(no_mangle)]
        extern "C" fn $destroy(lock: *mut c_void) {
            state().locks.remove(&(lock as usize));
        }

        #[unsafe(no_mangle)]
        extern "C" fn $set(lock: *mut c_void) {
            acquire(lock as usize, $nests, true);
        }

        #[unsafe(no_mangle)]
        extern "C" fn $unset(lock: *mut c_void) {
            release(lock as usize);
        }

        #[unsafe(no_mangle)]
        extern "C" fn $test(lock: *mut c_void) -> c_int {
            acquire(lock as usize, $nests, false)
        }
    )*};
}

locks! {
    omp_init_lock omp_destroy_lock omp_set_lock omp_unset_lock omp_test_lock: false;
    omp_init_nest_lock omp_destroy_nest_lock omp_set_nest_lock omp_unset_nest_lock omp_test_nest_lock: true;
}

#[unsafe(no_mangle)]
extern "C" fn omp_init_lock_with_hint(lock: *mut c_void, _hint: c_int) {
    omp_init_lock(lock);
}

#[unsafe(no_mangle)]
extern "C" fn omp_init_nest_lock_with_hint(lock: *mut c_void, _hint: c_int) {
    omp_init_nest_lock(lock);
}
