//! The end of the program.

use crate::io::buffered::{may_hold_input, may_hold_output};
use crate::io::{channels, delegations, output, stream_locks, unlocked_output};
use crate::private_stack::uninterrupted;
use crate::process::standard_streams;
use crate::report;
use gondwana_node::{Ending, Node, ProcessChange, Thread};
use libc::{FILE, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::time::{Duration, Instant};

unsafe extern "C" {
    static mut stdout: *mut FILE;
}

/// The C library's standard output, read at the start. A program that uses `stdout` has that variable in its own
/// data, which is shared, and receiving messages must not depend on shared memory.
static STANDARD_OUTPUT: AtomicPtr<FILE> = AtomicPtr::new(std::ptr::null_mut());

/// Saves values before the program's data is shared.
pub(crate) fn begin() {
    // SAFETY: the C library has set the variable, and no other thread runs yet.
    STANDARD_OUTPUT.store(unsafe { stdout }, Ordering::Relaxed);
}

/// How long a release waits for another thread's call on standard output, at most: that may itself wait, for who reads a pipe or for
/// what the calling thread does next.
const LONGEST_CALL: Duration = Duration::from_millis(10);

/// Flushes standard output for the calling thread, if it holds something.
pub(crate) fn flush_output() {
    let stream = STANDARD_OUTPUT.load(Ordering::Relaxed);
    if output::stays_unbuffered(stream) || channels::writes_out() {
        return;
    }
    // SAFETY: the stream exists as long as the process; the lock keeps others away from it.
    unsafe {
        if unlocked_output::must_flush(stream) && lock_output(stream) {
            unlocked_output::flush(stream);
            crate::real!(funlockfile: fn(*mut FILE))(stream);
        }
    }
}

/// Locks standard output; false if the program keeps it locked, or a call of another thread takes too long.
///
/// # Safety
/// It is this node's standard output.
unsafe fn lock_output(stream: *mut FILE) -> bool {
    // SAFETY: the caller's promise.
    let try_lock = || unsafe { crate::real!(ftrylockfile: fn(*mut FILE) -> c_int)(stream) == 0 };
    if try_lock() {
        return true;
    }
    let until = Instant::now() + LONGEST_CALL;
    while Thread::is_of_program() && !stream_locks::is_output_kept() && Instant::now() < until {
        std::thread::yield_now();
        if try_lock() {
            return true;
        }
    }
    false
}

/// True if standard output must be flushed before a thread unlocks: the next holder, perhaps on another node, prints
/// behind it.
#[inline]
pub(crate) fn has_output_for_next(node: &Node) -> bool {
    // SAFETY: the stream exists as long as the process.
    node.has_company() && unsafe { unlocked_output::must_flush(STANDARD_OUTPUT.load(Ordering::Relaxed)) }
}

/// Called before a thread unlocks.
#[inline]
pub(crate) fn flush_before_unlock(node: &Node) {
    if has_output_for_next(node) {
        flush_output();
    }
}

/// Flushes all streams, waiting for threads that write. It does not wait for threads that read, which may block for
/// ever; their streams hold no output.
pub(crate) fn flush_all_streams() {
    stream_locks::release_all();
    for_each_stream(|stream| {
        // SAFETY: the stream is open.
        unsafe {
            if may_hold_output(stream) {
                crate::real!(fflush: fn(*mut FILE) -> c_int)(stream);
            }
        }
    });
}

/// Calls a function with each of the C library's streams, which all stay open meanwhile.
fn for_each_stream(mut call: impl FnMut(*mut FILE)) {
    // SAFETY: the list of streams stays as it is while it is locked.
    unsafe {
        crate::real!(_IO_list_lock: fn())();
        let next = crate::real!(_IO_iter_next: fn(*mut FILE) -> *mut FILE);
        let mut stream = crate::real!(_IO_iter_begin: fn() -> *mut FILE)();
        while !stream.is_null() {
            call(stream);
            stream = next(stream);
        }
        crate::real!(_IO_list_unlock: fn())();
    }
}

/// Ends the program: on node 0 with everything that natively happens at exit, elsewhere by asking node 0.
///
/// # Safety
/// As the C library's `exit`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn exit(status: c_int) -> ! {
    if through_first(Ending::Exit, status) {
        // From here on the other threads end with the process.
        stream_locks::release_all();
    }
    let real = crate::real!(exit: fn(c_int) -> ());
    // SAFETY: runs the program's own exit handlers, then `after_all_handlers` on node 0.
    unsafe { real(status) };
    unreachable!("exit does not return")
}

/// # Safety
/// As the C library's `quick_exit`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn quick_exit(status: c_int) -> ! {
    if through_first(Ending::QuickExit, status) {
        QUICK_STATUS.store(status, Ordering::Relaxed);
    }
    let real = crate::real!(quick_exit: fn(c_int) -> ());
    // SAFETY: runs the program's own handlers, then `after_quick_handlers` on node 0.
    unsafe { real(status) };
    unreachable!("quick_exit does not return")
}

/// What `quick_exit` was called with.
static QUICK_STATUS: AtomicI32 = AtomicI32::new(0);

/// Asks node 0 to end the program, if this is another one, and does not return then. True on node 0; false in a process that is no node.
fn through_first(ending: Ending, status: c_int) -> bool {
    match Node::current() {
        Some(node) if node.is_first() => true,
        Some(node) => node.exit_through_first(ending, status),
        None => false,
    }
}

/// Ends the program for a thread of another node.
pub(crate) fn end_here(ending: Ending, status: c_int) {
    // SAFETY: as the program's own call.
    unsafe {
        match ending {
            Ending::Exit => exit(status),
            Ending::QuickExit => quick_exit(status),
            Ending::AtOnce => _exit(status),
        }
    }
}

/// Registers, on node 0, what ends the run. The C library calls last what was registered first.
pub(crate) fn register_last_handlers() {
    // SAFETY: functions of the types that the C library calls.
    let refused = unsafe {
        crate::real!(on_exit: fn(extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int)(
            after_all_handlers,
            std::ptr::null_mut(),
        ) | crate::real!(__cxa_at_quick_exit: fn(Handler, *mut c_void) -> c_int)(
            after_quick_handlers,
            std::ptr::null_mut(),
        )
    };
    if refused != 0 {
        report::fatal("there is no memory for the functions that end the program");
    }
}

/// Puts the positions of files that streams have read ahead of the program back to where the program is, for processes that go on
/// reading. Streams that other threads use just now are left out, as the C library does at exit.
fn put_back_read_ahead() {
    for_each_stream(|stream| {
        // SAFETY: the stream is open; the lock keeps others away from it.
        unsafe {
            if may_hold_input(stream) && crate::real!(ftrylockfile: fn(*mut FILE) -> c_int)(stream) == 0 {
                crate::real!(fflush_unlocked: fn(*mut FILE) -> c_int)(stream);
                crate::real!(funlockfile: fn(*mut FILE))(stream);
            }
        }
    });
}

/// Called after all handlers and destructors of the program, when the C library is about to end the process. Node 0 ends it itself,
/// after what the C library would still do.
extern "C" fn after_all_handlers(status: c_int, _: *mut c_void) {
    if let Some(node) = Node::current() {
        standard_streams::end();
        delegations::recall_all();
        flush_all_streams();
        channels::end();
        put_back_read_ahead();
        node.close_run(status);
    }
}

extern "C" fn after_quick_handlers(_: *mut c_void) {
    leave(QUICK_STATUS.load(Ordering::Relaxed))
}

/// # Safety
/// As the C library's `_exit`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _exit(status: c_int) -> ! {
    leave(status)
}

/// # Safety
/// As the C library's `_Exit`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Exit(status: c_int) -> ! {
    leave(status)
}

/// Ends the whole run at once.
fn leave(status: c_int) -> ! {
    if let Some(node) = Node::current() {
        let _ = Thread::current(node);
        if node.is_first() {
            node.close_run(status);
        }
        node.exit_through_first(Ending::AtOnce, status);
    }
    let real = crate::real!(_exit: fn(c_int) -> ());
    // SAFETY: forwards the call.
    unsafe { real(status) };
    unreachable!("_exit does not return")
}

type Handler = extern "C" fn(*mut c_void);

/// Registers a function of a thread of another node; 0 or an error number.
pub(crate) fn at_exit_here(function: usize, argument: usize, object: usize) -> c_int {
    // SAFETY: the program's code is at the same addresses on all nodes.
    unsafe {
        let function: Handler = std::mem::transmute(function);
        real_at_exit(function, argument as *mut c_void, object as *mut c_void)
    }
}

unsafe fn real_at_exit(function: Handler, argument: *mut c_void, object: *mut c_void) -> c_int {
    // The C library's list has a lock, which whoever receives messages takes, too. SAFETY: forwards the caller's arguments.
    uninterrupted(|| unsafe {
        crate::real!(__cxa_atexit: fn(Handler, *mut c_void, *mut c_void) -> c_int)(function, argument, object)
    })
}

/// `atexit` and the destructors of objects with static storage: run on node 0, wherever they were registered.
///
/// # Safety
/// As the C library's function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cxa_atexit(
    function: Handler,
    argument: *mut c_void,
    object: *mut c_void,
) -> c_int {
    // What a runtime library registers on other nodes is about its variables there, of which those processes are the end.
    match Node::current().filter(|node| !node.is_first() && crate::library::calls_for_program()) {
        Some(node) => {
            let (function, argument, object) = (function as usize as u64, argument as u64, object as u64);
            let change = ProcessChange::AtExit { function, argument, object };
            node.change_on_first(change).err().unwrap_or(0)
        }
        // SAFETY: forwards the caller's arguments.
        None => unsafe { real_at_exit(function, argument, object) },
    }
}
