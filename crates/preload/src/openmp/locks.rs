//! `omp_lock_t` and `omp_nest_lock_t`. Tasks hold them, not threads.

use super::context;
use super::sync;
use libc::c_int;
use std::cell::RefCell;

/// Four bytes of the program; only their address is used.
#[repr(C)]
pub(super) struct Lock([u8; 4]);

/// Sixteen bytes of the program, likewise.
#[repr(C, align(8))]
pub(super) struct NestLock([u8; 16]);

/// A nestable lock that a task of the thread holds.
struct Held {
    lock: usize,
    task: u64,
    /// How often.
    times: c_int,
}

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(vec![]) };
}

/// What the calling thread's task holds of a lock.
fn held<R>(lock: *mut NestLock, act: impl FnOnce(&mut Vec<Held>, Option<usize>) -> R) -> R {
    let task = context::task();
    HELD.with_borrow_mut(|held| {
        let place = held.iter().position(|entry| entry.lock == lock as usize && entry.task == task);
        act(held, place)
    })
}

/// Locks a lock again that the task holds; returns the nesting count.
fn again(lock: *mut NestLock) -> Option<c_int> {
    held(lock, |held, place| {
        let entry = &mut held[place?];
        entry.times += 1;
        Some(entry.times)
    })
}

/// The task has taken a lock.
fn hold(lock: *mut NestLock) {
    let task = context::task();
    HELD.with_borrow_mut(|held| held.push(Held { lock: lock as usize, task, times: 1 }));
}

/// Takes a nestable lock, which the task may hold already.
pub(super) fn set_nest(lock: *mut NestLock) {
    if again(lock).is_none() {
        sync::lock(lock);
        hold(lock);
    }
}

/// Takes it if it is free or the task's own; how often the task holds it then.
pub(super) fn test_nest(lock: *mut NestLock) -> c_int {
    again(lock).unwrap_or_else(|| {
        let locked = sync::try_lock(lock);
        if locked {
            hold(lock);
        }
        c_int::from(locked)
    })
}

/// Gives it back once.
pub(super) fn unset_nest(lock: *mut NestLock) {
    let is_free = held(lock, |held, place| {
        let Some(place) = place else { return false };
        held[place].times -= 1;
        let is_free = held[place].times == 0;
        if is_free {
            held.swap_remove(place);
        }
        is_free
    });
    if is_free {
        sync::unlock(lock);
    }
}

/// Defines functions of one lock, under their names in C and in Fortran.
macro_rules! exported {
    ($(fn $name:ident, $fortran:ident($lock:ident: $type:ty) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($lock: *mut $type) $(-> $result)? {
            $body
        }

        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $fortran($lock: *mut $type) $(-> $result)? {
            $body
        }
    )*};
}

exported! {
    fn omp_init_lock, omp_init_lock_(_lock: Lock) = {};
    fn omp_destroy_lock, omp_destroy_lock_(_lock: Lock) = {};
    fn omp_set_lock, omp_set_lock_(lock: Lock) = sync::lock(lock);
    fn omp_unset_lock, omp_unset_lock_(lock: Lock) = sync::unlock(lock);
    fn omp_test_lock, omp_test_lock_(lock: Lock) -> c_int = c_int::from(sync::try_lock(lock));
    fn omp_init_nest_lock, omp_init_nest_lock_(_lock: NestLock) = {};
    fn omp_destroy_nest_lock, omp_destroy_nest_lock_(_lock: NestLock) = {};
    fn omp_set_nest_lock, omp_set_nest_lock_(lock: NestLock) = set_nest(lock);
    fn omp_unset_nest_lock, omp_unset_nest_lock_(lock: NestLock) = unset_nest(lock);
    fn omp_test_nest_lock, omp_test_nest_lock_(lock: NestLock) -> c_int = test_nest(lock);
}

/// Defines functions that initialise a lock with a hint about its use.
macro_rules! with_hint {
    ($($name:ident, $fortran:ident: $type:ty;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_lock: *mut $type, _hint: c_int) {}

        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $fortran(_lock: *mut $type, _hint: *const c_int) {}
    )*};
}

with_hint! {
    omp_init_lock_with_hint, omp_init_lock_with_hint_: Lock;
    omp_init_nest_lock_with_hint, omp_init_nest_lock_with_hint_: NestLock;
}
