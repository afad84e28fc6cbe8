//! Threads that are bound before they do anything.

use crate::backend::{NewThread, Routine};
use crate::error::Error;
use gondwana_host::{Binding, UnmetRequest};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};
use std::mem::MaybeUninit;
use std::sync::mpsc::{Sender, channel};

/// What a new thread is to do.
struct Start {
    binding: Binding,
    bound: Sender<Vec<UnmetRequest>>,
    routine: Routine,
    argument: *mut c_void,
}

unsafe extern "C" {
    /// The type in `libc` takes no routine that unwinds.
    fn pthread_create(
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        routine: Routine,
        argument: *mut c_void,
    ) -> c_int;
}

/// Starts a thread, and waits until it has bound itself: what is in the way must be known to whoever starts it.
///
/// # Safety
/// As for `pthread_create`.
pub(super) unsafe fn start(
    binding: Binding,
    thread: NewThread<'_>,
) -> Result<(pthread_t, Vec<String>), Error> {
    let (bound, remarks) = channel();
    let NewThread { attributes, routine, argument, .. } = thread;
    let start = Box::into_raw(Box::new(Start { binding, bound, routine, argument }));
    let mut created = MaybeUninit::uninit();
    // SAFETY: the caller's promise; `begin` gets what it expects.
    let error = unsafe { pthread_create(created.as_mut_ptr(), attributes, begin, start.cast()) };
    if error != 0 {
        // SAFETY: there is no thread that could have taken it.
        drop(unsafe { Box::from_raw(start) });
        let why = std::io::Error::from_raw_os_error(error);
        return Err(Error::new(error, format!("no thread can be started: {why}")));
    }
    let remarks = remarks.recv().unwrap_or_default();
    // SAFETY: the call has succeeded.
    Ok((unsafe { created.assume_init() }, remarks.iter().map(ToString::to_string).collect()))
}

/// # Safety
/// The argument is a `Start` that belongs to this thread.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    let (routine, argument) = {
        // SAFETY: the creator has given it away.
        let Start { binding, bound, routine, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
        let _ = bound.send(binding.apply());
        (routine, argument)
    };
    // Nothing that must be dropped is left: the routine may never return.
    // SAFETY: what the creator's caller wants.
    unsafe { routine(argument) }
}
