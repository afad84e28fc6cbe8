//! Signals to the process, which are node 0's, to its threads by their numbers, and waiting for those that are blocked.

use super::identity::{self, Place};
use super::{common, result_of};
use crate::io::channels::{announce, learn};
use crate::io::descriptors::of_time;
use crate::io::{Failing, children};
use crate::numbers::after;
use crate::pthread::cancel::at_point_if;
use crate::signals;
use gondwana_node::{Node, ProcessChange};
use libc::{c_int, pid_t, siginfo_t, sigset_t, sigval, timespec};
use std::time::{Duration, Instant};

/// How long a thread waits for signals of its own node before it looks again at those of the process that are at other nodes.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The set of the signal that tells of the end of a child, bit 0 being signal 1.
const CHILD_ENDED: u64 = 1 << (libc::SIGCHLD - 1);

/// Sends a signal to this process, which is node 0's; 0 or an error number.
pub(crate) fn send_here(group: bool, signal: c_int, value: Option<u64>) -> c_int {
    let before = crate::errno::get();
    let process = gondwana_sys::process();
    // SAFETY: touches no memory.
    let result = unsafe {
        match value {
            Some(value) => crate::real!(sigqueue: fn(pid_t, c_int, sigval) -> c_int)(
                process,
                signal,
                sigval { sival_ptr: gondwana_page::to_usize(value) as *mut libc::c_void },
            ),
            None => crate::real!(kill: fn(pid_t, c_int) -> c_int)(if group { 0 } else { process }, signal),
        }
    };
    let error = if result == 0 { 0 } else { crate::errno::get() };
    crate::errno::set(before);
    error
}

/// Sends a signal to a thread of this process by the kernel's number; 0 or an error number.
pub(crate) fn send_to_thread_here(thread: c_int, signal: c_int) -> c_int {
    let before = crate::errno::get();
    // SAFETY: touches no memory.
    let result = unsafe { gondwana_sys::syscall!(libc::SYS_tgkill, gondwana_sys::process(), thread, signal) };
    let error = if result == 0 { 0 } else { crate::errno::get() };
    crate::errno::set(before);
    error
}

/// Sends a signal to the program, wherever the calling thread is.
fn send(node: &'static Node, group: bool, signal: c_int, value: Option<u64>) -> c_int {
    result_of(if node.is_first() {
        match send_here(group, signal, value) {
            0 => Ok(()),
            error => Err(error),
        }
    } else {
        node.change_on_first(ProcessChange::Kill { group, signal, value })
    })
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kill(process: pid_t, signal: c_int) -> c_int {
    match common() {
        Some(node) if process == 0 || process == identity::process() => {
            announce();
            send(node, process == 0, signal, None)
        }
        // SAFETY: forwards the caller's arguments.
        _ => unsafe { crate::real!(kill: fn(pid_t, c_int) -> c_int)(process, signal) },
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigqueue(process: pid_t, signal: c_int, value: sigval) -> c_int {
    match common() {
        Some(node) if process == identity::process() => {
            announce();
            send(node, false, signal, Some(value.sival_ptr as u64))
        }
        // SAFETY: forwards the caller's arguments.
        _ => unsafe { crate::real!(sigqueue: fn(pid_t, c_int, sigval) -> c_int)(process, signal, value) },
    }
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tgkill(process: pid_t, thread: pid_t, signal: c_int) -> c_int {
    let Some(node) = common().filter(|_| process == identity::process()) else {
        // SAFETY: forwards the caller's arguments.
        return unsafe { crate::real!(tgkill: fn(pid_t, pid_t, c_int) -> c_int)(process, thread, signal) };
    };
    announce();
    match identity::place(node, thread) {
        Place::Elsewhere(at, thread) => {
            result_of(node.change_on_node(at, ProcessChange::KillThread { thread, signal }))
        }
        Place::Here(thread) => {
            // Without its process, which may be that of another node.
            // SAFETY: touches no memory.
            let result = unsafe { gondwana_sys::syscall!(libc::SYS_tkill, thread, signal) };
            if result == 0 { 0 } else { -1 }
        }
    }
}

/// Takes one of some signals that are pending for this process; `None` if none is.
pub(super) fn take(mask: u64) -> Option<siginfo_t> {
    let before = crate::errno::get();
    let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: all zero is a valid description; private memory; the kernel's sets are 64 bits.
    let (taken, info) = unsafe {
        let mut info: siginfo_t = std::mem::zeroed();
        let taken = gondwana_sys::syscall!(
            libc::SYS_rt_sigtimedwait,
            &raw const mask,
            &raw mut info,
            &raw const at_once,
            size_of::<u64>()
        );
        (taken, info)
    };
    crate::errno::set(before);
    (taken > 0).then_some(info)
}

/// For a thread of another node: takes one of some signals that are pending for this process. Gives the signal, or 0 for none.
pub(crate) fn take_here(mask: u64) -> c_int {
    take(mask).map_or(0, |info| info.si_signo)
}

fn as_time(time: Duration) -> timespec {
    timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// Takes a signal of a set that is pending for the process at another node: at node 0, and if it tells of the end of a child, at the node
/// that has started one.
fn take_elsewhere(node: &'static Node, set: u64) -> Option<c_int> {
    let own = node.id().index();
    let of_children = set & CHILD_ENDED;
    let parents = (of_children != 0).then(children::parents).into_iter().flatten();
    let others =
        std::iter::once((0, set)).chain(parents.filter(|&node| node != 0).map(|node| (node, of_children)));
    // The other node gives the signal in place of an error number.
    let take = |(other, mask)| node.change_on_node(other, ProcessChange::TakePending { mask }).err();
    others.filter(|&(other, _)| other != own).find_map(take)
}

/// Waits for a signal of a set: for one of this thread, or for one of the process, which may be at another node. The kernel has
/// taken the signal when it writes, so it writes to private memory.
fn wait(set: u64, until: Option<Instant>) -> Result<(c_int, Box<siginfo_t>), c_int> {
    // SAFETY: all zero is a valid description.
    let mut info: Box<siginfo_t> = Box::new(unsafe { std::mem::zeroed() });
    // Others may start children later.
    let apart = common().filter(|node| !node.is_first() || set & CHILD_ENDED != 0);
    loop {
        if let Some(signal) = apart.and_then(|node| take_elsewhere(node, set)) {
            info.si_signo = signal;
            return Ok((signal, info));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let longest =
            if apart.is_some() { Some(left.map_or(LOOK_AGAIN, |left| left.min(LOOK_AGAIN))) } else { left };
        let time = longest.map(|longest| Box::new(as_time(longest)));
        let set = Box::new(set);
        // SAFETY: private memory; the kernel's sets are 64 bits.
        let signal = unsafe {
            gondwana_sys::syscall!(
                libc::SYS_rt_sigtimedwait,
                &raw const *set,
                &raw mut *info,
                time.as_deref().map_or(std::ptr::null(), std::ptr::from_ref),
                size_of::<u64>()
            )
        };
        match (c_int::try_from(signal), crate::errno::get()) {
            (Ok(signal @ 1..), _) => return Ok((signal, info)),
            (_, libc::EAGAIN) if until.is_some_and(|until| Instant::now() >= until) => {
                return Err(libc::EAGAIN);
            }
            (_, libc::EAGAIN) => {}
            (_, error) => return Err(error),
        }
    }
}

/// # Safety
/// As the C library's `sigtimedwait`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sigtimedwait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: forwards the caller's arguments.
    at_point_if(true, || unsafe { wait_for(set, info, time) })
}

/// # Safety
/// As the C library's `sigtimedwait`.
unsafe fn wait_for(set: *const sigset_t, info: *mut siginfo_t, time: *const timespec) -> c_int {
    // SAFETY: the caller passes a set, and null or a time.
    let (set, longest) = unsafe { (signals::bits(&*set), of_time(time)) };
    let until = longest.and_then(after);
    match wait(set, until) {
        Ok((signal, found)) => {
            learn();
            if !info.is_null() {
                // SAFETY: the caller passes null or a place for the description.
                unsafe { *info = *found };
            }
            signal
        }
        Err(error) => {
            crate::errno::set(error);
            c_int::FAILED
        }
    }
}

/// # Safety
/// As the C library's `sigwaitinfo`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe { sigtimedwait(set, info, std::ptr::null()) }
}

/// # Safety
/// As the C library's `sigwait`, which returns its error and goes on after handlers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int {
    loop {
        // SAFETY: forwards the caller's argument.
        match unsafe { sigwaitinfo(set, std::ptr::null_mut()) } {
            found @ 1.. => {
                // SAFETY: the caller passes a place for the signal.
                unsafe { *signal = found };
                return 0;
            }
            _ if crate::errno::get() == libc::EINTR => {}
            _ => return crate::errno::get(),
        }
    }
}
