use super::{current, objects};
use crate::threads::touch;
use crate::world::{give_way, started, wait};
use gondwana_sim::{Kind, ThreadId, Time};
use libc::{c_int, pthread_rwlock_t, timespec};
use std::collections::VecDeque;

/// A lock with one writer or many readers. Readers wait behind a writer that waits.
#[derive(Default)]
pub(crate) struct RwLock {
    readers: usize,
    writer: Option<ThreadId>,
    /// Each with whether it wants to write.
    waiting: VecDeque<(ThreadId, bool)>,
}

impl RwLock {
    fn is_free_for(&self, write: bool) -> bool {
        self.writer.is_none() && if write { self.readers == 0 } else { true }
    }

    fn give(&mut self, thread: ThreadId, write: bool) {
        if write {
            self.writer = Some(thread);
        } else {
            self.readers += 1;
        }
    }

    /// Those that may have it now.
    fn pass_on(&mut self) -> Vec<ThreadId> {
        let mut next = vec![];
        while let Some(&(thread, write)) = self.waiting.front()
            && self.is_free_for(write)
        {
            self.waiting.pop_front();
            self.give(thread, write);
            next.push(thread);
        }
        next
    }
}

fn lock(lock: *mut pthread_rwlock_t, write: bool, waits: bool, deadline: Option<Time>) -> c_int {
    touch(lock, Kind::Write);
    let thread = current();
    let state = objects().rwlocks.entry(lock as usize).or_default();
    if state.waiting.is_empty() && state.is_free_for(write) {
        state.give(thread, write);
        return 0;
    }
    if state.writer == Some(thread) {
        return if waits { libc::EDEADLK } else { libc::EBUSY };
    }
    if !waits {
        give_way(false);
        return libc::EBUSY;
    }
    state.waiting.push_back((thread, write));
    if !wait(deadline) {
        let state = objects().rwlocks.entry(lock as usize).or_default();
        state.waiting.retain(|(waiting, _)| *waiting != thread);
        // Readers behind a writer that has given up may go on.
        for next in state.pass_on() {
            started().wake(next);
        }
        return libc::ETIMEDOUT;
    }
    touch(lock, Kind::Write);
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    lock(rwlock, false, true, None)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    lock(rwlock, true, true, None)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    lock(rwlock, false, false, None)
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    lock(rwlock, true, false, None)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_rwlock_timedrdlock(
    rwlock: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the program's variable.
    let until = crate::clock::moment(unsafe { &*until }, libc::CLOCK_REALTIME);
    lock(rwlock, false, true, Some(until))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_rwlock_timedwrlock(
    rwlock: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the program's variable.
    let until = crate::clock::moment(unsafe { &*until }, libc::CLOCK_REALTIME);
    lock(rwlock, true, true, Some(until))
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    touch(rwlock, Kind::Write);
    let state = objects().rwlocks.entry(rwlock as usize).or_default();
    if state.writer.take().is_none() {
        if state.readers == 0 {
            return libc::EPERM;
        }
        state.readers -= 1;
    }
    for next in state.pass_on() {
        started().wake(next);
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_init(rwlock: *mut pthread_rwlock_t, _attributes: *const libc::c_void) -> c_int {
    objects().rwlocks.insert(rwlock as usize, RwLock::default());
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_rwlock_destroy(rwlock: *mut pthread_rwlock_t) -> c_int {
    objects().rwlocks.remove(&(rwlock as usize));
    0
}
