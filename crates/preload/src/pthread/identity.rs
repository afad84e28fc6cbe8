//! The identity of threads, and operations that only the node can make where a thread lives.

use crate::io::{Buffer, with_buffers_returning_error};
use crate::process::calls::on_one;
use gondwana_node::{Node, ProcessChange, Thread};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use libc::{c_char, c_int, c_void, pthread_t, sched_param, size_t};

/// The C library's name for the calling thread.
pub(crate) fn native_self() -> pthread_t {
    // SAFETY: has no preconditions.
    unsafe { crate::real!(pthread_self: fn() -> pthread_t)() }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_self() -> pthread_t {
    match Node::current() {
        Some(node) => Thread::current(node).id,
        None => native_self(),
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_equal(a: pthread_t, b: pthread_t) -> c_int {
    c_int::from(a == b)
}

/// The C library's name for a thread of the run that lives on this node: only the calling thread itself and
/// the threads known here can be named.
pub(super) fn native(thread: pthread_t) -> Result<pthread_t, i32> {
    let Some(node) = Node::current() else { return Ok(thread) };
    if thread == Thread::current(node).id {
        return Ok(native_self());
    }
    if !node.is_thread(thread) {
        return Ok(thread);
    }
    node.native_thread(thread).ok_or(libc::ESRCH)
}

macro_rules! where_it_lives {
    ($(fn $name:ident($thread:ident: pthread_t $(, $argument:ident: $type:ty)*) { $($buffer:expr),* })*) => {$(
        /// # Safety
        /// As the C library's function of this name, also for threads of other nodes.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($thread: pthread_t $(, $argument: $type)*) -> c_int {
            match native($thread) {
                Ok(thread) => with_buffers_returning_error(&[$($buffer),*], || {
                    // SAFETY: forwards the caller's arguments.
                    unsafe { crate::real!($name: fn(pthread_t $(, $type)*) -> c_int)(thread $(, $argument)*) }
                }),
                Err(error) => elsewhere($thread, ($thread $(, $argument)*), |&mut ($thread $(, $argument)*)| {
                    // SAFETY: forwards the caller's arguments.
                    unsafe { $name($thread $(, $argument)*) }
                })
                .unwrap_or(error),
            }
        }
    )*};
}

/// Makes a call with these arguments on the node where a thread lives; `None` if that is this one or none. What they point to is shared.
fn elsewhere<T: Copy>(thread: pthread_t, arguments: T, call: fn(&mut T) -> c_int) -> Option<c_int> {
    let node = Node::current()?;
    let to = node.place_of_thread(thread).filter(|&to| to != node.number().index())?;
    let to = NodeId(u16::try_from(to).ok()?);
    Some(on_one(to, arguments, call).1)
}

where_it_lives! {
    fn pthread_setname_np(thread: pthread_t, name: *const c_char) { Buffer::string(name) }
    fn pthread_getname_np(thread: pthread_t, name: *mut c_char, length: size_t) { Buffer::write(name, length) }
    fn pthread_setaffinity_np(thread: pthread_t, size: size_t, set: *const c_void) { Buffer::read(set, size) }
    fn pthread_getaffinity_np(thread: pthread_t, size: size_t, set: *mut c_void) { Buffer::write(set, size) }
    fn pthread_setschedparam(thread: pthread_t, policy: c_int, parameters: *const sched_param) { Buffer::value(parameters) }
    fn pthread_getschedparam(thread: pthread_t, policy: *mut c_int, parameters: *mut sched_param) {
        Buffer::result(policy), Buffer::result(parameters)
    }
    fn pthread_setschedprio(thread: pthread_t, priority: c_int) {}
    fn pthread_getcpuclockid(thread: pthread_t, clock: *mut c_int) { Buffer::result(clock) }
}

/// Sends a signal, perhaps with a value, to a thread of any node; 0 or an error number.
fn send(thread: pthread_t, signal: c_int, value: Option<u64>) -> c_int {
    crate::io::channels::announce();
    match (native(thread), Node::current()) {
        (Ok(thread), _) => send_to_native(thread, signal, value),
        (Err(_), Some(node)) => {
            node.change_where_it_is(ProcessChange::Signal { thread, signal, value }).err().unwrap_or(0)
        }
        (Err(error), None) => error,
    }
}

/// Sends a signal to a thread of this process that has not ended; 0 or an error number.
fn send_to_native(thread: pthread_t, signal: c_int, value: Option<u64>) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        match value {
            None => crate::real!(pthread_kill: fn(pthread_t, c_int) -> c_int)(thread, signal),
            Some(value) => {
                let value = libc::sigval { sival_ptr: to_usize(value) as *mut c_void };
                crate::real!(pthread_sigqueue: fn(pthread_t, c_int, libc::sigval) -> c_int)(
                    thread, signal, value,
                )
            }
        }
    }
}

/// # Safety
/// As the C library's `pthread_kill`, also for threads of other nodes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int {
    match send(thread, signal, None) {
        // A thread that has ended and is not joined yet can be sent signals without effect.
        libc::ESRCH if Node::current().is_some_and(|node| node.is_thread(thread)) => 0,
        result => result,
    }
}

/// # Safety
/// As the C library's `pthread_sigqueue`, also for threads of other nodes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn pthread_sigqueue(
    thread: pthread_t,
    signal: c_int,
    value: libc::sigval,
) -> c_int {
    send(thread, signal, Some(value.sival_ptr as u64))
}

/// Sends a signal to a thread of the program if it lives here; 0 or an error number.
pub(crate) fn kill_here(thread: u64, signal: c_int, value: Option<u64>) -> c_int {
    match Node::current().and_then(|node| node.native_thread(thread)) {
        Some(native) => send_to_native(native, signal, value),
        None => libc::ESRCH,
    }
}
