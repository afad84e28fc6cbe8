//! Signals to the process that all threads of node 0 block, and a thread of another node does not.
//!
//! Signals to the process come to node 0, whose kernel keeps them as long as all threads of it block them. The process's first thread, which does nothing
//! else, looks for such signals, and sends them on to a node with a thread that takes them.

use super::kill;
use crate::blocked_signals::blocks;
use gondwana_node::{Node, ProcessChange};
use gondwana_topology::NodeId;
use libc::{c_int, pollfd};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The signals that the program handles, bit 0 being signal 1.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Changes once there are some.
static BEGINS: AtomicU32 = AtomicU32::new(0);

/// Can be read while one of these signals is pending; on node 0, once the program handles some.
static PENDING: OnceLock<OwnedFd> = OnceLock::new();

/// How long the thread pauses before it looks at a signal that is pending, and at most before it looks again: most are taken at once.
const PAUSES: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(64));

/// The program handles a signal from now on, or no more.
pub(crate) fn note(signal: c_int, is_handled: bool) {
    let bit = 1 << (signal - 1);
    let before = if is_handled {
        HANDLED.fetch_or(bit, Ordering::SeqCst)
    } else {
        HANDLED.fetch_and(!bit, Ordering::SeqCst)
    };
    if (before & bit != 0) == is_handled {
        return;
    }
    if let Some(pending) = PENDING.get() {
        watch(pending.as_raw_fd());
    } else if is_handled && BEGINS.fetch_or(1, Ordering::SeqCst) == 0 {
        // SAFETY: waking touches no memory.
        unsafe { gondwana_sys::syscall!(libc::SYS_futex, BEGINS.as_ptr(), libc::FUTEX_WAKE, 1) };
    }
}

/// Has a descriptor, or a new one for -1, tell of the signals that the program handles.
fn watch(descriptor: c_int) -> c_int {
    let handled = HANDLED.load(Ordering::SeqCst);
    let flags = libc::SFD_CLOEXEC;
    // SAFETY: the kernel reads a private variable, as long as told.
    let descriptor = unsafe {
        gondwana_sys::syscall!(libc::SYS_signalfd4, descriptor, &raw const handled, size_of::<u64>(), flags)
    };
    crate::numbers::int(descriptor)
}

/// What the process's first thread does on node 0; it blocks all signals.
pub(crate) fn forward(node: &'static Node) -> ! {
    while BEGINS.load(Ordering::SeqCst) == 0 {
        // SAFETY: the word lives for ever.
        unsafe {
            gondwana_sys::syscall!(
                libc::SYS_futex,
                BEGINS.as_ptr(),
                libc::FUTEX_WAIT,
                0,
                std::ptr::null::<u8>()
            )
        };
    }
    let descriptor = watch(-1);
    if descriptor < 0 {
        forever();
    }
    // SAFETY: the descriptor is new.
    let pending = gondwana_memory::out_of_the_way(unsafe { OwnedFd::from_raw_fd(descriptor) });
    let pending = PENDING.get_or_init(|| pending).as_raw_fd();
    // Handlers may have come meanwhile.
    watch(pending);
    let mut pause = PAUSES.0;
    loop {
        let mut set = pollfd { fd: pending, events: libc::POLLIN, revents: 0 };
        // SAFETY: the set is private.
        unsafe { gondwana_sys::syscall!(libc::SYS_poll, &raw mut set, 1, -1) };
        std::thread::sleep(pause);
        let strays = pending_here() & HANDLED.load(Ordering::SeqCst);
        let stay = signals_in(strays).filter(|&signal| !send_on(node, signal)).count();
        pause = if stay == 0 { PAUSES.0 } else { PAUSES.1.min(pause * 2) };
    }
}

/// The calling thread waits for ever.
fn forever() -> ! {
    loop {
        // SAFETY: nothing wakes the thread.
        unsafe { gondwana_sys::syscall!(libc::SYS_pause) };
    }
}

fn signals_in(set: u64) -> impl Iterator<Item = c_int> {
    (1..65).filter(move |signal| set >> (signal - 1) & 1 == 1)
}

/// The signals that are pending for this process, as far as the calling thread blocks them.
fn pending_here() -> u64 {
    let mut pending = 0_u64;
    // SAFETY: the kernel writes to a private variable.
    unsafe { gondwana_sys::syscall!(libc::SYS_rt_sigpending, &raw mut pending, size_of::<u64>()) };
    pending
}

/// Sends a signal that is pending here on to another node with a thread that takes it; false if there is none. A thread of this node that takes
/// it, and has had no processor yet, comes first.
fn send_on(node: &'static Node, signal: c_int) -> bool {
    if are_taken_here(signal) == 0 {
        return true;
    }
    let takes = |other: &NodeId| node.change_on_node(other.index(), ProcessChange::Takes { signal }).is_ok();
    let Some(other) = node.others().find(takes) else { return false };
    // Somebody else may have taken it.
    let Some(info) = kill::take(1 << (signal - 1)) else { return true };
    // SAFETY: a signal with this code has come with a value.
    let value = (info.si_code == libc::SI_QUEUE).then(|| unsafe { info.si_value().sival_ptr } as u64);
    // A node that is gone takes the run with it.
    let _ = node.change_on_node(other.index(), ProcessChange::Kill { group: false, signal, value });
    true
}

/// 0 if a thread of this node does not block a signal, and else an error number. By system calls: the functions that close a folder tell
/// other nodes of it, which no message can wait for.
pub(crate) fn are_taken_here(signal: c_int) -> c_int {
    let mut takes = false;
    // SAFETY: a string, and private memory as long as told.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let path = c"/proc/self/task".as_ptr();
        let folder = gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0);
        let mut entries = [0_u8; 1024];
        while !takes {
            let length =
                gondwana_sys::syscall!(libc::SYS_getdents64, folder, entries.as_mut_ptr(), entries.len());
            let Some(length) = usize::try_from(length).ok().filter(|&length| length > 0) else { break };
            takes = threads_in(&entries[..length]).any(|thread| !blocks(thread, signal));
        }
        gondwana_sys::syscall!(libc::SYS_close, folder);
    }
    if takes { 0 } else { libc::ESRCH }
}

/// Where in an entry of a folder its length is, and its name.
const LENGTH: usize = 16;
const NAME: usize = 19;

/// The numbers among the names in entries of a folder, as the kernel writes them.
fn threads_in(mut entries: &[u8]) -> impl Iterator<Item = c_int> {
    let names = std::iter::from_fn(move || {
        let length = entries.get(LENGTH..LENGTH + 2)?;
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        let (entry, rest) = entries.split_at_checked(length.max(NAME))?;
        entries = rest;
        entry[NAME..].split(|&byte| byte == 0).next()
    });
    names.filter_map(|name| std::str::from_utf8(name).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_among_the_entries_of_a_folder() {
        let entry = |name: &[u8]| {
            let mut entry = vec![0; (NAME + name.len() + 1).next_multiple_of(8)];
            entry[LENGTH] = u8::try_from(entry.len()).unwrap();
            entry[NAME..NAME + name.len()].copy_from_slice(name);
            entry
        };
        let entries = [&b"."[..], b"..", b"17", b"123456"].map(entry).concat();
        assert_eq!(threads_in(&entries).collect::<Vec<_>>(), [17, 123_456]);
    }

    #[test]
    fn a_thread_that_blocks_nothing_takes_a_signal() {
        assert_eq!(are_taken_here(libc::SIGUSR2), 0);
        assert_eq!(signals_in(0b101).collect::<Vec<_>>(), [1, 3]);
    }
}
