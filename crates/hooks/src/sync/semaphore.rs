use super::{current, objects};
use crate::threads::touch;
use crate::world::{give_way, started, wait};
use gondwana_interpose::errno;
use gondwana_sim::{Kind, ThreadId, Time};
use libc::{c_int, c_uint, sem_t, timespec};
use std::collections::VecDeque;

/// A semaphore.
#[derive(Default)]
pub(crate) struct Semaphore {
    value: c_uint,
    waiting: VecDeque<ThreadId>,
}

fn fail(error: c_int) -> c_int {
    errno::set(error);
    -1
}

fn take(semaphore: *mut sem_t, waits: bool, deadline: Option<Time>) -> c_int {
    touch(semaphore, Kind::Write);
    let thread = current();
    let state = objects().semaphores.entry(semaphore as usize).or_default();
    if state.value > 0 {
        state.value -= 1;
        return 0;
    }
    if !waits {
        give_way(false);
        return fail(libc::EAGAIN);
    }
    state.waiting.push_back(thread);
    if !wait(deadline) {
        let state = objects().semaphores.entry(semaphore as usize).or_default();
        state.waiting.retain(|waiting| *waiting != thread);
        return fail(libc::ETIMEDOUT);
    }
    touch(semaphore, Kind::Write);
    0
}

#[unsafe(no_mangle)]
extern "C" fn sem_init(semaphore: *mut sem_t, _shared: c_int, value: c_uint) -> c_int {
    if c_int::try_from(value).is_err() {
        return fail(libc::EINVAL);
    }
    objects().semaphores.insert(semaphore as usize, Semaphore { value, waiting: VecDeque::new() });
    0
}

#[unsafe(no_mangle)]
extern "C" fn sem_destroy(semaphore: *mut sem_t) -> c_int {
    objects().semaphores.remove(&(semaphore as usize));
    0
}

#[unsafe(no_mangle)]
extern "C" fn sem_wait(semaphore: *mut sem_t) -> c_int {
    take(semaphore, true, None)
}

#[unsafe(no_mangle)]
extern "C" fn sem_trywait(semaphore: *mut sem_t) -> c_int {
    take(semaphore, false, None)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int {
    // SAFETY: the program's variable.
    let until = crate::clock::moment(unsafe { &*until }, libc::CLOCK_REALTIME);
    take(semaphore, true, Some(until))
}

#[unsafe(no_mangle)]
extern "C" fn sem_post(semaphore: *mut sem_t) -> c_int {
    touch(semaphore, Kind::Write);
    let state = objects().semaphores.entry(semaphore as usize).or_default();
    match state.waiting.pop_front() {
        Some(next) => started().wake(next),
        None => state.value += 1,
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sem_getvalue(semaphore: *mut sem_t, to: *mut c_int) -> c_int {
    touch(semaphore, Kind::Read);
    let value = objects().semaphores.entry(semaphore as usize).or_default().value;
    // SAFETY: the program's variable.
    unsafe { to.write(value as c_int) };
    0
}
