//! The end of the program.

use gondwana_node::{Node, Thread};
use libc::{FILE, c_int};

unsafe extern "C" {
    static mut stdout: *mut FILE;
}

/// Writes out what the C library's streams hold, unless a thread is just using them.
pub fn flush_streams() {
    // SAFETY: the stream exists as long as the process; the lock keeps others away from it.
    unsafe {
        if crate::real!(ftrylockfile: fn(*mut FILE) -> c_int)(stdout) == 0 {
            crate::real!(fflush_unlocked: fn(*mut FILE) -> c_int)(stdout);
            crate::real!(funlockfile: fn(*mut FILE))(stdout);
        }
    }
}

/// Ends the program: on node 0 with everything that natively happens at exit, elsewhere by asking node 0.
///
/// # Safety
/// As the C library's `exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exit(status: c_int) -> ! {
    if let Some(node) = Node::current() {
        if node.is_first() {
            node.begin_exit(status);
            // From here on this is the only thread that counts; the others end with the process.
            let real = crate::real!(exit: fn(c_int) -> ());
            // SAFETY: runs the program's own exit handlers, then `_exit` below.
            unsafe { real(status) };
        } else {
            node.exit_through_first(status);
        }
    }
    let real = crate::real!(exit: fn(c_int) -> ());
    // SAFETY: forwards the call.
    unsafe { real(status) };
    unreachable!("exit does not return")
}

/// Ends the program for a thread of another node.
pub fn exit_here(status: c_int) {
    // SAFETY: as the program's own call.
    unsafe { exit(status) }
}

/// After all handlers and destructors of the program, when the C library is about to end the process.
pub fn after_all_handlers() {
    if let Some(node) = Node::current()
        && node.is_first()
    {
        flush_streams();
        node.close_run();
    }
}

/// # Safety
/// As the C library's `_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    leave(status)
}

/// # Safety
/// As the C library's `_Exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    leave(status)
}

/// Ends the whole run at once.
fn leave(status: c_int) -> ! {
    if let Some(node) = Node::current() {
        let _ = Thread::current(node);
        if node.is_first() { node.close_run() } else { node.exit_through_first(status) }
    }
    let real = crate::real!(_exit: fn(c_int) -> ());
    // SAFETY: forwards the call.
    unsafe { real(status) };
    unreachable!("_exit does not return")
}
