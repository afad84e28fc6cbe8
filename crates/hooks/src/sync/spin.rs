//! Spin locks: as mutexes, but threads try again and again. The word has 1 in a locked one.

use crate::threads::touch;
use crate::world::give_way;
use gondwana_sim::Kind;
use libc::c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_spin_init(lock: *mut c_int, _shared: c_int) -> c_int {
    // SAFETY: the program's lock.
    unsafe { lock.write_volatile(0) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_spin_destroy(_lock: *mut c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_spin_trylock(lock: *mut c_int) -> c_int {
    touch(lock, Kind::Write);
    // SAFETY: the program's lock; one target thread at a time runs.
    unsafe {
        if lock.read_volatile() == 0 {
            lock.write_volatile(1);
            return 0;
        }
    }
    libc::EBUSY
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_spin_lock(lock: *mut c_int) -> c_int {
    // SAFETY: the program's lock.
    while unsafe { pthread_spin_trylock(lock) } != 0 {
        // As a real one, which reads until the lock is free: the line is shared by all that wait, until the holder takes it.
        loop {
            give_way(false);
            touch(lock, Kind::Read);
            // SAFETY: the program's lock.
            if unsafe { lock.read_volatile() } == 0 {
                break;
            }
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_spin_unlock(lock: *mut c_int) -> c_int {
    touch(lock, Kind::Write);
    // SAFETY: the program's lock.
    unsafe { lock.write_volatile(0) };
    0
}
