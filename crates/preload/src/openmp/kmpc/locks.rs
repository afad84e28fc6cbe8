//! Locks as these compilers call them: the same ones as those of `omp_set_lock` and its relatives.

use super::Place;
use crate::openmp::locks::{Lock, NestLock, set_nest, test_nest, unset_nest};
use crate::openmp::sync;
use libc::c_int;

/// Defines functions of one lock.
macro_rules! exported {
    ($($name:ident($lock:ident: $type:ty $(, $hint:ident)?) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// Called by code that clang or Intel's compilers have made.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            _place: Place, _thread: c_int, $lock: *mut $type $(, $hint: usize)?
        ) $(-> $result)? {
            $body
        }
    )*};
}

exported! {
    __kmpc_init_lock(_lock: Lock) = {};
    __kmpc_init_lock_with_hint(_lock: Lock, _hint) = {};
    __kmpc_destroy_lock(_lock: Lock) = {};
    __kmpc_set_lock(lock: Lock) = sync::lock(lock);
    __kmpc_unset_lock(lock: Lock) = sync::unlock(lock);
    __kmpc_test_lock(lock: Lock) -> c_int = c_int::from(sync::try_lock(lock));
    __kmpc_init_nest_lock(_lock: NestLock) = {};
    __kmpc_init_nest_lock_with_hint(_lock: NestLock, _hint) = {};
    __kmpc_destroy_nest_lock(_lock: NestLock) = {};
    __kmpc_set_nest_lock(lock: NestLock) = set_nest(lock);
    __kmpc_unset_nest_lock(lock: NestLock) = unset_nest(lock);
    __kmpc_test_nest_lock(lock: NestLock) -> c_int = test_nest(lock);
}
