//! How the kernel runs threads that are named by their numbers. That of the process is the thread of `main`.

use super::identity::kernel_number;
use crate::io::{Buffer, with_buffers};
use libc::{c_int, c_void, id_t, pid_t, sched_param, size_t};

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
