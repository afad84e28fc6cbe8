//! Initialisation of local static objects in C++, which waits for other threads as `pthread_once` does.

use super::once::{begin, end};
use crate::threads::touch;
use crate::world::world;
use gondwana_sim::Kind;
use libc::c_int;

/// The compiler looks at the first byte of a guard and calls only as long as it is 0.
const DONE: u8 = 1;

#[unsafe(no_mangle)]
unsafe extern "C" fn __cxa_guard_acquire(guard: *mut u8) -> c_int {
    touch(guard, Kind::Read);
    // SAFETY: the program's guard.
    if unsafe { guard.read_volatile() } == DONE {
        return 0;
    }
    // Before main there is one thread.
    c_int::from(world().is_none() || begin(guard as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __cxa_guard_release(guard: *mut u8) {
    touch(guard, Kind::Write);
    // SAFETY: the program's guard.
    unsafe { guard.write_volatile(DONE) };
    if world().is_some() {
        end(guard as usize, true);
    }
}

#[unsafe(no_mangle)]
extern "C" fn __cxa_guard_abort(guard: *mut u8) {
    if world().is_some() {
        end(guard as usize, false);
    }
}
