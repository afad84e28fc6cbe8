//! Waiting for child processes. Those of the program are children of the nodes whose threads have started them, and any thread may wait
//! for any of them.
//!
//! The kernel forgets a child before it writes what became of it, so that it writes to memory that stays with its thread.

use super::asking;
use super::buffers::Buffer;
use super::descriptors::{Place, There, described, place};
use super::written::written;
use crate::pthread::cancel::at_point_if;
use gondwana_locks::lock;
use gondwana_node::ProcessChange;
use libc::{c_int, c_uint, id_t, pid_t, rusage, siginfo_t};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::time::Duration;

/// What became of a child.
#[derive(Clone, Copy)]
struct Ended {
    status: c_int,
    usage: rusage,
    info: siginfo_t,
}

thread_local! {
    /// Where the kernel writes.
    // SAFETY: all-zero structures are valid.
    static ENDED: Cell<Ended> = const { Cell::new(unsafe { zeroed() }) };
}

/// The nodes that have started children, this one included.
static PARENTS: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// How long a thread pauses that waits for children of several nodes, from first to last.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));

/// The calling thread is about to start a child. The other nodes know before it exists.
pub(super) fn begin() {
    if let Some(node) = asking()
        && note_parent(node.id().0)
    {
        // Noting it cannot fail.
        let _ = node.change_elsewhere(ProcessChange::HasChildren { node: node.id().0 });
    }
}

/// A node has started a child, or is about to; false if that was known.
pub(crate) fn note_parent(node: u16) -> bool {
    lock(&PARENTS).insert(node)
}

/// The nodes that have started children.
pub(crate) fn parents() -> Vec<usize> {
    lock(&PARENTS).iter().copied().map(usize::from).collect()
}

/// The other nodes that may have children.
fn elsewhere() -> Vec<There> {
    let Some(node) = asking() else { return vec![] };
    let own = node.id().index();
    parents().into_iter().filter(|&owner| owner != own).map(|owner| There { node, owner }).collect()
}

/// The outcome of a call that waits.
enum Outcome<T> {
    Child(T),
    /// There are such children, and none has changed.
    NotYet,
    /// There is no such child.
    NoChild,
    /// `errno` is set.
    Failed,
}

/// Waits for a child of any node. `is_one` tells whether only one child can be meant, `ask` makes the call with some options here or at
/// another node.
fn wait_for<T>(is_one: bool, options: c_int, ask: impl Fn(Option<There>, c_int) -> Outcome<T>) -> Outcome<T> {
    let places: Vec<Option<There>> = std::iter::once(None).chain(elsewhere().into_iter().map(Some)).collect();
    if is_one || places.len() == 1 {
        let mut asked = places.into_iter().map(|place| ask(place, options));
        return asked.find(|outcome| !matches!(outcome, Outcome::NoChild)).unwrap_or(Outcome::NoChild);
    }
    let mut pause = PAUSES.0;
    loop {
        let mut left = vec![];
        for &place in &places {
            match ask(place, options | libc::WNOHANG) {
                Outcome::NoChild => {}
                Outcome::NotYet => left.push(place),
                outcome => return outcome,
            }
        }
        match left[..] {
            [] => return Outcome::NoChild,
            _ if options & libc::WNOHANG != 0 => return Outcome::NotYet,
            [place] => return ask(place, options),
            _ => std::thread::sleep(pause),
        }
        pause = PAUSES.1.min(pause * 2);
    }
}

/// The outcome for the caller: what `found` makes of a child, 0 if none has changed, or -1.
fn result<T>(outcome: Outcome<T>, found: impl FnOnce(T) -> c_int) -> c_int {
    match outcome {
        Outcome::Child(child) => found(child),
        Outcome::NotYet => 0,
        Outcome::NoChild => {
            crate::errno::set(libc::ECHILD);
            -1
        }
        Outcome::Failed => -1,
    }
}

/// The outcome of a call that has failed.
fn failure<T>() -> Outcome<T> {
    if crate::errno::get() == libc::ECHILD { Outcome::NoChild } else { Outcome::Failed }
}

/// # Safety
/// As the C library's `wait4`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn wait4(
    pid: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    let ask = |place: Option<There>, options: c_int| {
        let (child, status, used) = match place {
            None => {
                let (child, ended) = written(&ENDED, |place| {
                    // SAFETY: the place is this thread's own.
                    unsafe {
                        let (status, used) = (&raw mut (*place).status, &raw mut (*place).usage);
                        let used = if usage.is_null() { null_mut() } else { used };
                        gondwana_wait4_here(pid, status, options, used)
                    }
                });
                (child, ended.status, ended.usage)
            }
            Some(there) => {
                // SAFETY: an all-zero structure is valid.
                let mut used: Box<rusage> = Box::new(unsafe { zeroed() });
                let mut status = Box::new(0);
                let (to_status, to_usage) = (&raw mut *status, &raw mut *used);
                let words = [pid.into(), to_status as i64, options.into(), to_usage as i64];
                let buffers = [Buffer::result(to_status), Buffer::result(to_usage)];
                (there.call("gondwana_wait4_here", &words, &buffers), *status, *used)
            }
        };
        match child {
            0 => Outcome::NotYet,
            -1 => failure(),
            _ => Outcome::Child((child, status, used)),
        }
    };
    let found = |(child, ended, used)| {
        // SAFETY: the caller passes null or places for the results.
        unsafe {
            put(status, ended);
            put(usage, used);
        }
        child
    };
    at_point_if(true, || result(wait_for(pid > 0, options, ask), found))
}

/// Waits for children of this node, also for threads of other nodes.
///
/// # Safety
/// As the C library's `wait4`.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn gondwana_wait4_here(
    pid: pid_t,
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    let real = crate::real!(wait4: fn(pid_t, *mut c_int, c_int, *mut rusage) -> pid_t);
    // SAFETY: forwards the caller's arguments.
    unsafe { real(pid, status, options, usage) }
}

/// # Safety
/// As the C library's `waitid`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn waitid(
    kind: c_uint,
    id: id_t,
    info: *mut siginfo_t,
    options: c_int,
) -> c_int {
    // A descriptor of a child may be another node's than the child.
    let (kind, id, is_patient) = match kind {
        libc::P_PIDFD => match child_of(id) {
            Some((child, is_patient)) => (libc::P_PID, child.cast_unsigned(), is_patient),
            None => return -1,
        },
        _ => (kind, id, true),
    };
    let ask = |place: Option<There>, options: c_int| {
        let (failed, info) = match place {
            None => {
                let (failed, ended) = written(&ENDED, |place| {
                    // SAFETY: the place is this thread's own. An all-zero structure is valid.
                    unsafe {
                        (*place).info = zeroed();
                        gondwana_waitid_here(kind, id, &raw mut (*place).info, options)
                    }
                });
                (failed, ended.info)
            }
            Some(there) => {
                // SAFETY: an all-zero structure is valid.
                let mut info: Box<siginfo_t> = Box::new(unsafe { zeroed() });
                let to_info = &raw mut *info;
                let words = [kind.into(), id.into(), to_info as i64, options.into()];
                (there.call("gondwana_waitid_here", &words, &[Buffer::result(to_info)]), *info)
            }
        };
        // SAFETY: the kernel has filled it in, or it is zero.
        match (failed, unsafe { info.si_pid() }) {
            (0, 0) => Outcome::NotYet,
            (0, _) => Outcome::Child(info),
            _ => failure(),
        }
    };
    let found = |ended| {
        // SAFETY: the caller passes null or a place for the result.
        unsafe { put(info, ended) };
        0
    };
    at_point_if(true, || {
        let is_asking = options & libc::WNOHANG != 0;
        let options = if is_patient { options } else { options | libc::WNOHANG };
        let outcome = wait_for(kind == libc::P_PID, options, ask);
        if matches!(outcome, Outcome::NotYet) {
            if !is_asking && !is_patient {
                crate::errno::set(libc::EAGAIN);
                return -1;
            }
            // SAFETY: the caller passes null or a place for the result. An all-zero structure is valid.
            unsafe { put(info, zeroed()) };
        }
        result(outcome, found)
    })
}

/// The child that a descriptor is of, and whether who waits for it waits until it changes. `None` with `errno` set if it is of none.
fn child_of(descriptor: id_t) -> Option<(pid_t, bool)> {
    let descriptor = descriptor.cast_signed();
    let child = match place(&[descriptor], "waitid") {
        // SAFETY: it only takes a number.
        Place::Here => unsafe { gondwana_child_of(descriptor) },
        Place::There(there) => there.call("gondwana_child_of", &[descriptor.into()], &[]),
        Place::Nowhere => -1,
    };
    // SAFETY: the call only tells the flags.
    let flags = if child > 0 { unsafe { libc::fcntl(descriptor, libc::F_GETFL) } } else { -1 };
    (flags >= 0).then_some((child, flags & libc::O_NONBLOCK == 0))
}

/// The process that a descriptor of this node is of, also for threads of other nodes; -1 with `errno` set if it is of none.
///
/// # Safety
/// It only takes a number.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn gondwana_child_of(descriptor: c_int) -> pid_t {
    let text = described(gondwana_sys::process(), descriptor);
    let process = text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
    match process {
        Some(process @ 1..) => process,
        // It has ended, and somebody has waited for it.
        Some(_) => {
            crate::errno::set(libc::ECHILD);
            -1
        }
        None => {
            crate::errno::set(libc::EBADF);
            -1
        }
    }
}

/// Waits for children of this node, also for threads of other nodes.
///
/// # Safety
/// As the C library's `waitid`.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn gondwana_waitid_here(
    kind: c_uint,
    id: id_t,
    info: *mut siginfo_t,
    options: c_int,
) -> c_int {
    let real = crate::real!(waitid: fn(c_uint, id_t, *mut siginfo_t, c_int) -> c_int);
    // SAFETY: forwards the caller's arguments.
    unsafe { real(kind, id, info, options) }
}

/// # Safety
/// The pointer is null or valid.
unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
    }
}

/// # Safety
/// As the C library's `waitpid`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn waitpid(pid: pid_t, status: *mut c_int, options: c_int) -> pid_t {
    // SAFETY: forwards the caller's arguments.
    unsafe { wait4(pid, status, options, null_mut()) }
}

/// # Safety
/// As the C library's `wait`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn wait(status: *mut c_int) -> pid_t {
    // SAFETY: forwards the caller's argument.
    unsafe { wait4(-1, status, 0, null_mut()) }
}

/// # Safety
/// As the C library's `wait3`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn wait3(
    status: *mut c_int,
    options: c_int,
    usage: *mut rusage,
) -> pid_t {
    // SAFETY: forwards the caller's arguments.
    unsafe { wait4(-1, status, options, usage) }
}
