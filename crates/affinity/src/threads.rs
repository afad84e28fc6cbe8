//! Binds each thread as `gondwana exec --threads` says.
//!
//! Threads are numbered in the order of their creation; the main thread is the first. A thread binds itself before it
//! does anything else, so its first touches are already under its policy.

use gondwana_host::{Binding, THREADS_VARIABLE, Threads};
use gondwana_interpose::{NextFunction, c_name};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bindings; nothing if this library was loaded without any.
fn threads() -> Option<&'static Threads> {
    static THREADS: OnceLock<Option<Threads>> = OnceLock::new();
    THREADS.get_or_init(|| std::env::var(THREADS_VARIABLE).ok()?.parse().ok()).as_ref()
}

/// The number of the next thread; the main thread has number 0.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// Binds the main thread, which calls this.
pub(crate) fn bind_main() {
    if let Some(threads) = threads() {
        let _ = threads.of(0).apply();
    }
}

// Threads end by unwinding (`pthread_exit`, cancellation) through the function that was called first.
type Routine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Routine, *mut c_void) -> c_int;

/// The binding and routine of a new thread.
struct Start {
    binding: Binding,
    routine: Routine,
    argument: *mut c_void,
}

/// As the C library's `pthread_create`; the new thread is bound before `routine` runs.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    let Some(create) = real_pthread_create() else { return libc::ENOSYS };
    let Some(threads) = threads() else {
        // SAFETY: the caller's arguments.
        return unsafe { create(thread, attributes, routine, argument) };
    };
    let binding = threads.of(NEXT.fetch_add(1, Ordering::Relaxed));
    let start = Box::into_raw(Box::new(Start { binding, routine, argument }));
    // SAFETY: the caller's arguments; `begin` gets what it expects.
    let result = unsafe { create(thread, attributes, begin, start.cast()) };
    if result != 0 {
        // SAFETY: there is no thread that could have taken it.
        drop(unsafe { Box::from_raw(start) });
    }
    result
}

/// # Safety
/// The argument is a `Start` that belongs to this thread.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // No value is left to drop when the routine runs: it may never return. SAFETY: the creator has given it away.
    let Start { binding, routine, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    let _ = binding.apply();
    // SAFETY: what the creator's caller wants.
    unsafe { routine(argument) }
}

/// The C library's function.
fn real_pthread_create() -> Option<Create> {
    static NEXT: NextFunction = NextFunction::new(c_name!(pthread_create));
    let address = NEXT.known().or_else(|| NEXT.find())?;
    // SAFETY: the function of this name has this type in every C library.
    Some(unsafe { std::mem::transmute::<usize, Create>(address) })
}
