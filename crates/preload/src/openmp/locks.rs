//! `omp_lock_t` and `omp_nest_lock_t`.

use super::sync;
use libc::c_int;
use std::cell::RefCell;

/// Four bytes of the program; only their address is used.
#[repr(C)]
pub(super) struct Lock([u8; 4]);

/// Sixteen bytes of the program, likewise.
#[repr(C, align(8))]
pub(super) struct NestLock([u8; 16]);

thread_local! {
    /// The nestable locks that the thread holds, and how often.
    static HELD: RefCell<Vec<(usize, c_int)>> = const { RefCell::new(vec![]) };
}

/// Locks a lock again that the thread holds; returns the nesting count.
fn again(lock: usize) -> Option<c_int> {
    HELD.with_borrow_mut(|held| {
        let entry = held.iter_mut().find(|entry| entry.0 == lock)?;
        entry.1 += 1;
        Some(entry.1)
    })
}

/// Takes a nestable lock, which the thread may hold already.
pub(super) fn set_nest(lock: *mut NestLock) {
    if again(lock as usize).is_none() {
        sync::lock(lock);
        HELD.with_borrow_mut(|held| held.push((lock as usize, 1)));
    }
}

/// Takes it if it is free or the thread's own; how often the thread holds it then.
pub(super) fn test_nest(lock: *mut NestLock) -> c_int {
    again(lock as usize).unwrap_or_else(|| {
        let locked = sync::try_lock(lock);
        if locked {
            HELD.with_borrow_mut(|held| held.push((lock as usize, 1)));
        }
        c_int::from(locked)
    })
}

/// Gives it back once.
pub(super) fn unset_nest(lock: *mut NestLock) {
    let last = HELD.with_borrow_mut(|held| {
        let place = held.iter().position(|entry| entry.0 == lock as usize)?;
        held[place].1 -= 1;
        (held[place].1 == 0).then(|| held.swap_remove(place))
    });
    if last.is_some() {
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
