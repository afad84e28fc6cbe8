use super::{current, mutex, objects};
use crate::threads::touch;
use crate::world::{started, wait};
use gondwana_sim::{Kind, Time};
use libc::{c_int, c_void, clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

/// Where this library keeps the clock of a condition variable, in the memory that the C library leaves to its own.
const CLOCK: usize = 40;

unsafe fn wait_until(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: Option<Time>,
) -> c_int {
    touch(condition, Kind::Write);
    let (thread, address) = (current(), condition as usize);
    objects().conditions.entry(address).or_default().push_back(thread);
    // SAFETY: the program's mutex. Nobody runs between the two: unlocking makes others able to run, and waiting lets them.
    let error = unsafe { mutex::unlock(mutex) };
    if error != 0 {
        forget(address, thread);
        return error;
    }
    // Somebody may have signalled while the mutex's line was under way.
    let waits = objects().conditions.get(&address).is_some_and(|waiting| waiting.contains(&thread));
    let signalled = !waits || wait(deadline);
    if !signalled {
        forget(address, thread);
    }
    // SAFETY: the program's mutex.
    let error = unsafe { mutex::lock(mutex, None) };
    if signalled { error } else { libc::ETIMEDOUT }
}

fn forget(address: usize, thread: usize) {
    if let Some(waiting) = objects().conditions.get_mut(&address) {
        waiting.retain(|other| *other != thread);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the program's variables.
    unsafe { wait_until(condition, mutex, None) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the program's variables, the condition initialised by `pthread_cond_init` or its macro.
    unsafe {
        let clock = condition.byte_add(CLOCK).cast::<c_int>().read();
        wait_until(condition, mutex, Some(crate::clock::moment(&*until, clock)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the program's variables.
    unsafe { wait_until(condition, mutex, Some(crate::clock::moment(&*until, clock))) }
}

/// Wakes so many of those that wait.
fn wake(condition: *mut pthread_cond_t, most: usize) -> c_int {
    touch(condition, Kind::Write);
    for _ in 0..most {
        let waiting = objects().conditions.get_mut(&(condition as usize));
        let Some(thread) = waiting.and_then(|waiting| waiting.pop_front()) else { break };
        // One that has not begun to wait yet finds that it is no longer in the list.
        if started().is_waiting(thread) {
            started().wake(thread);
        }
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int {
    wake(condition, 1)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int {
    wake(condition, usize::MAX)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_cond_init(
    condition: *mut pthread_cond_t,
    attributes: *const libc::pthread_condattr_t,
) -> c_int {
    let mut clock = libc::CLOCK_REALTIME;
    // SAFETY: the program's variables.
    unsafe {
        if !attributes.is_null() {
            libc::pthread_condattr_getclock(attributes, &raw mut clock);
        }
        libc::memset(condition.cast::<c_void>(), 0, size_of::<pthread_cond_t>());
        condition.byte_add(CLOCK).cast::<c_int>().write(clock);
    }
    if crate::world::world().is_some() {
        objects().conditions.remove(&(condition as usize));
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_cond_destroy(condition: *mut pthread_cond_t) -> c_int {
    objects().conditions.remove(&(condition as usize));
    0
}
