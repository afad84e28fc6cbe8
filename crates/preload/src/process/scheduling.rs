//! How the kernel runs threads that are named by their numbers. That of the process is the thread of `main`.

use super::identity::kernel_number;
use crate::io::{Buffer, with_buffers};
use gondwana_node::{Node, Pause};
use libc::{c_int, c_void, id_t, pid_t, sched_param, size_t};
use std::sync::OnceLock;

macro_rules! of_a_thread {
    ($(fn $name:ident($number:ident: pid_t $(, $argument:ident: $type:ty)*) { $($buffer:expr),* })*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($number: pid_t $(, $argument: $type)*) -> c_int {
            let number = kernel_number($number);
            with_buffers(&[$($buffer),*], || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn(pid_t $(, $type)*) -> c_int)(number $(, $argument)*) }
            })
        }
    )*};
}

of_a_thread! {
    fn sched_setaffinity(number: pid_t, size: size_t, set: *const c_void) { Buffer::read(set, size) }
    fn sched_getaffinity(number: pid_t, size: size_t, set: *mut c_void) { Buffer::write(set, size) }
    fn sched_setscheduler(number: pid_t, policy: c_int, new: *const sched_param) { Buffer::value(new) }
    fn sched_getscheduler(number: pid_t) {}
    fn sched_setparam(number: pid_t, new: *const sched_param) { Buffer::value(new) }
    fn sched_getparam(number: pid_t, result: *mut sched_param) { Buffer::result(result) }
}

/// The calling thread lets time go by as long as the value lives.
pub(crate) fn pause() -> Option<Pause> {
    Node::current().map(Node::pause)
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sched_yield() -> c_int {
    let _pause = pause();
    // SAFETY: touches no memory.
    crate::numbers::int(unsafe { gondwana_sys::syscall!(libc::SYS_sched_yield) })
}

/// The thread's number, where a process is meant.
fn named(which: libc::__priority_which_t, number: id_t) -> id_t {
    match pid_t::try_from(number) {
        Ok(process) if which == libc::PRIO_PROCESS => kernel_number(process).unsigned_abs(),
        _ => number,
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setpriority(
    which: libc::__priority_which_t,
    number: id_t,
    priority: c_int,
) -> c_int {
    let real = crate::real!(setpriority: fn(libc::__priority_which_t, id_t, c_int) -> c_int);
    // SAFETY: touches no memory.
    unsafe { real(which, named(which, number), priority) }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getpriority(which: libc::__priority_which_t, number: id_t) -> c_int {
    let real = crate::real!(getpriority: fn(libc::__priority_which_t, id_t) -> c_int);
    // SAFETY: touches no memory.
    unsafe { real(which, named(which, number)) }
}

/// A set of processors.
type Processors = [u64; 16];

/// The nice value and the processors of the calling thread, as far as the kernel tells them.
fn of_caller() -> (Option<c_int>, Option<Processors>) {
    let mut processors = Box::new(Processors::default());
    // SAFETY: a private place for the result; 0 is the calling thread.
    let (priority, filled) = unsafe {
        (
            gondwana_sys::syscall!(libc::SYS_getpriority, libc::PRIO_PROCESS, 0),
            gondwana_sys::syscall!(
                libc::SYS_sched_getaffinity,
                0,
                size_of::<Processors>(),
                processors.as_mut_ptr()
            ),
        )
    };
    // The kernel adds what makes it positive.
    let nice = (priority > 0).then(|| 20 - crate::numbers::int(priority));
    (nice, (filled > 0).then_some(*processors))
}

/// Those that this process was started with.
static AT_START: OnceLock<(Option<c_int>, Option<Processors>)> = OnceLock::new();

/// Notes those that this process was started with.
pub(super) fn begin() {
    let _ = AT_START.set(of_caller());
}

/// What the calling thread passes on to a thread that it starts on another node, where others are usual: its nice value and its
/// processors, as far as the program has changed them.
pub(crate) fn passed_on() -> (Option<c_int>, Option<Processors>) {
    let Some((nice, processors)) = AT_START.get() else { return (None, None) };
    let before = crate::errno::get();
    let own = of_caller();
    crate::errno::set(before);
    (own.0.filter(|_| own.0 != *nice), own.1.filter(|_| own.1 != *processors))
}

/// In a new thread: takes over what was passed on. Processors that this computer does not have are left out; if it has none of them, the
/// thread may run on all of its node's.
pub(crate) fn take_over(nice: Option<c_int>, processors: Option<Processors>) {
    // SAFETY: a private set; 0 is the calling thread. A refusal leaves everything as it was.
    unsafe {
        if let Some(nice) = nice {
            gondwana_sys::syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, nice);
        }
        if let Some(processors) = processors.map(Box::new) {
            gondwana_sys::syscall!(
                libc::SYS_sched_setaffinity,
                0,
                size_of::<Processors>(),
                processors.as_ptr()
            );
        }
    }
}
