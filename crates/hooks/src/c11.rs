//! Threads, mutexes and conditions of C11, by those of POSIX: the C library's types have their layouts.

use crate::clock;
use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};
use std::ptr;

/// Results in `threads.h`.
const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// A kind of mutex that its owner may lock again.
const RECURSIVE: c_int = 1;

fn result(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM | libc::EAGAIN => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

type Function = unsafe extern "C" fn(*mut c_void) -> c_int;

struct Start {
    function: Function,
    argument: *mut c_void,
}

extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: `thrd_create` has passed it to this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    // SAFETY: the program's own function.
    let result = unsafe { (start.function)(start.argument) };
    result as usize as *mut c_void
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_create(to: *mut pthread_t, function: Function, argument: *mut c_void) -> c_int {
    let start = Box::into_raw(Box::new(Start { function, argument }));
    // SAFETY: the program's variable; the thread frees what it is passed.
    let error = unsafe { libc::pthread_create(to, ptr::null(), run, start.cast()) };
    if error != 0 {
        // SAFETY: there is no thread that has it.
        drop(unsafe { Box::from_raw(start) });
    }
    result(error)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_join(thread: pthread_t, to: *mut c_int) -> c_int {
    let mut value = ptr::null_mut();
    // SAFETY: the variable is here.
    let error = unsafe { libc::pthread_join(thread, &raw mut value) };
    if error == 0 && !to.is_null() {
        // SAFETY: the program's variable.
        unsafe { to.write(value as usize as c_int) };
    }
    result(error)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_detach(thread: pthread_t) -> c_int {
    // SAFETY: the program's own call.
    result(unsafe { libc::pthread_detach(thread) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_exit(value: c_int) -> ! {
    // SAFETY: the program's own call.
    unsafe { libc::pthread_exit(value as usize as *mut c_void) }
}

#[unsafe(no_mangle)]
extern "C" fn thrd_yield() {
    // SAFETY: no pointers.
    unsafe { libc::sched_yield() };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn thrd_sleep(wanted: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the program's variables.
    unsafe { clock::nanosleep(wanted, rest) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mtx_init(mutex: *mut pthread_mutex_t, kind: c_int) -> c_int {
    // SAFETY: the program's mutex; the attributes are here.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes);
        if kind & RECURSIVE != 0 {
            libc::pthread_mutexattr_settype(&raw mut attributes, libc::PTHREAD_MUTEX_RECURSIVE);
        }
        result(libc::pthread_mutex_init(mutex, &raw const attributes))
    }
}

/// Functions that are those of POSIX, but for their results.
macro_rules! forwarded {
    ($($name:ident = $function:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the program's own call.
            result(unsafe { libc::$function($($argument),*) })
        }
    )*};
}

forwarded! {
    mtx_lock = pthread_mutex_lock(mutex: *mut pthread_mutex_t);
    mtx_timedlock = pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec);
    mtx_trylock = pthread_mutex_trylock(mutex: *mut pthread_mutex_t);
    mtx_unlock = pthread_mutex_unlock(mutex: *mut pthread_mutex_t);
    cnd_signal = pthread_cond_signal(condition: *mut pthread_cond_t);
    cnd_broadcast = pthread_cond_broadcast(condition: *mut pthread_cond_t);
    cnd_wait = pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    cnd_timedwait = pthread_cond_timedwait(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
    );
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cnd_init(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: the program's condition.
    result(unsafe { libc::pthread_cond_init(condition, ptr::null()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cnd_destroy(condition: *mut pthread_cond_t) {
    // SAFETY: the program's condition.
    unsafe { libc::pthread_cond_destroy(condition) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mtx_destroy(mutex: *mut pthread_mutex_t) {
    // SAFETY: the program's mutex.
    unsafe { libc::pthread_mutex_destroy(mutex) };
}

unsafe extern "C" {
    fn pthread_once(once: *mut c_int, function: unsafe extern "C" fn()) -> c_int;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn call_once(once: *mut c_int, function: unsafe extern "C" fn()) {
    // SAFETY: the program's own call; a flag of C11 is one of POSIX.
    unsafe { pthread_once(once, function) };
}
