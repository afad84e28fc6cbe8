//! Timers with functions that the C library calls in its own threads.
//!
//! Such a thread blocks the signals of faults on shared memory, and the run does not know it.

use crate::private_stack::on_private_stack;
use crate::process::calls::on_first;
use crate::process::identity::kernel_number;
use crate::{pthread, signals};
use gondwana_node::Node;
use libc::{c_int, c_void, clockid_t, sigevent, sigval, timer_t};
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) type Function = unsafe extern "C" fn(sigval);

/// The program's function and argument.
struct Expiration {
    function: Function,
    value: sigval,
}

/// Where a `sigevent` has the function.
const FUNCTION_OFFSET: usize = 16;

fn function_of(event: *mut sigevent) -> *mut Function {
    event.cast::<u8>().wrapping_add(FUNCTION_OFFSET).cast()
}

/// The function that a description of this kind asks a thread to call.
///
/// # Safety
/// It has one.
pub(super) unsafe fn function_in(event: &sigevent) -> Function {
    // SAFETY: the caller's promise.
    unsafe { function_of(std::ptr::from_ref(event).cast_mut()).read() }
}

/// The C library calls it in place of the program's function, in a thread that ends afterwards.
unsafe extern "C" fn expire(value: sigval) {
    // SAFETY: `timer_create` passes a description that stays.
    let expiration = unsafe { &*value.sival_ptr.cast::<Expiration>() };
    signals::block_only(signals::ALL_BUT_NEEDED);
    // SAFETY: as the program has asked.
    unsafe { (expiration.function)(expiration.value) };
    if let Some(node) = Node::current() {
        pthread::foreign_ends(node);
    }
}

/// The arguments of `timer_create`, and the timer.
#[derive(Clone, Copy)]
struct Creation {
    clock: clockid_t,
    event: Option<sigevent>,
    timer: timer_t,
}

/// Whether a timer of this process has a signal for one thread. The kernel tells it like one for the process.
static FOR_THREADS: AtomicBool = AtomicBool::new(false);

/// True if a timer of this process may have sent a signal to one thread.
pub(crate) fn are_for_threads() -> bool {
    FOR_THREADS.load(Ordering::Relaxed)
}

fn create(creation: &mut Creation) -> c_int {
    let for_thread = |wanted: &&mut sigevent| wanted.sigev_notify == libc::SIGEV_THREAD_ID;
    if let Some(wanted) = creation.event.as_mut().filter(for_thread) {
        FOR_THREADS.store(true, Ordering::Relaxed);
        wanted.sigev_notify_thread_id = kernel_number(wanted.sigev_notify_thread_id);
    }
    if let Some(wanted) = creation.event.as_mut().filter(|wanted| wanted.sigev_notify == libc::SIGEV_THREAD)
        && Node::current().is_some()
    {
        let place = function_of(&raw mut *wanted);
        // SAFETY: a description of this kind has a function there.
        let expiration = Expiration { function: unsafe { place.read() }, value: wanted.sigev_value };
        // It is never freed: a call may be running while the program deletes the timer.
        wanted.sigev_value.sival_ptr = Box::into_raw(Box::new(expiration)).cast::<c_void>();
        // SAFETY: the copy is ours.
        unsafe { place.write(expire) };
    }
    let description = creation.event.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
    let mut result = 0;
    on_private_stack(&mut || {
        // SAFETY: copies of valid arguments, which live until the function returns.
        result = unsafe {
            crate::real!(timer_create: fn(clockid_t, *mut sigevent, *mut timer_t) -> c_int)(
                creation.clock,
                description,
                &raw mut creation.timer,
            )
        };
    });
    result
}

/// # Safety
/// As the C library's `timer_create`. The timer is node 0's: its signals are for the process.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn timer_create(
    clock: clockid_t,
    event: *mut sigevent,
    timer: *mut timer_t,
) -> c_int {
    // SAFETY: the caller passes null or a description.
    let event = (!event.is_null()).then(|| unsafe { event.read() });
    let (creation, result) = on_first(Creation { clock, event, timer: std::ptr::null_mut() }, create);
    if result == 0 {
        // SAFETY: the caller passes a place for the timer.
        unsafe { *timer = creation.timer };
    }
    result
}
