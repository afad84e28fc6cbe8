//! The thread that runs `main` is none that the kernel starts a process with, but one of the C library's, like all other threads of the
//! program: only so are its thread-local variables in the run's [thread memory](crate::thread_memory), where other nodes reach them. The
//! process's first thread looks after [stray signals](stray_signals).
//!
//! What tells a process's first thread from others goes to this one: its number is the process's, signals to the process come to it
//! first, and its name is that of the process.

use crate::blocked_signals::blocks;
use crate::io::timers;
use crate::process::stray_signals;
use crate::pthread::{attributes, start_in};
use crate::{handler_stack, report, signals, span_stack, thread_memory};
use gondwana_elf::loaded;
use gondwana_node::Node;
use libc::{c_int, c_void, pid_t, siginfo_t};
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// The kernel's number of the thread; 0 where it has not begun, and on other nodes than node 0.
static NUMBER: AtomicI32 = AtomicI32::new(0);

/// What the thread begins with.
struct Beginning<F> {
    run: F,
    /// The thread-local variables of the process's first thread: where those of each object are.
    first: Vec<Range<usize>>,
}

/// Runs a function, which does not return, on the new thread. The calling one is the process's first.
pub(crate) fn run<F: FnOnce()>(node: &'static Node, run: F) -> ! {
    let Some(memory) = thread_memory::take(node) else {
        report::fatal("there is no room for the thread of main; give a larger --span");
    };
    let beginning = Box::into_raw(Box::new(Beginning { run, first: thread_locals() }));
    if let Err(error) = start_in(&memory, begin::<F>, beginning.cast()) {
        let why = std::io::Error::from_raw_os_error(error);
        report::fatal(&format!("the thread of main cannot be started: {why}"));
    }
    // Its variables are the new one's.
    signals::block_only(u64::MAX);
    stray_signals::forward(node)
}

unsafe extern "C" fn begin<F: FnOnce()>(beginning: *mut c_void) -> *mut c_void {
    // SAFETY: `run` made this box for us.
    let Beginning { run, first } = *unsafe { Box::from_raw(beginning.cast::<Beginning<F>>()) };
    for (from, to) in first.iter().zip(thread_locals()) {
        // Initialisers of the language runtimes have written to the variables of the process's first thread.
        // SAFETY: the same object's variables, for two threads. The first thread waits, and nothing here has used these.
        unsafe { std::ptr::copy_nonoverlapping(from.start as *const u8, to.start as *mut u8, to.len()) };
    }
    NUMBER.store(gondwana_sys::thread(), Ordering::Relaxed);
    handler_stack::begin_thread();
    run();
    std::ptr::null_mut()
}

/// Bytes between the end of a stack and what the loader calls its end, as where a process begins.
const ABOVE: usize = 64;

/// What the loader calls the end of the stack: of the process's first thread, and of `main`.
static ENDS: OnceLock<[usize; 2]> = OnceLock::new();

/// `main` runs on the stack that ends here. Collectors of garbage ask the loader where that is, which knows of the process's first thread.
pub(crate) fn tell_stack_end(end: usize) {
    let main = end - ABOVE;
    if let Some(first) = set_stack_end(main) {
        // Called once.
        ENDS.get_or_init(|| [first, main]);
    }
}

/// The limit on stacks has changed on this node: the stack of `main` grows, if it is here.
pub(crate) fn lengthen_stack(limit: u64) {
    if let (Some(node), Some(stack)) = (Node::current(), span_stack::lengthen(limit)) {
        attributes::begin(node.main_thread(), stack);
    }
}

/// Calls a function of the loader while it knows of the stack of the process's first thread.
pub(crate) fn on_first_stack<R>(call: impl FnOnce() -> R) -> R {
    let ends = ENDS.get();
    ends.and_then(|&[first, _]| set_stack_end(first));
    let result = call();
    ends.and_then(|&[_, main]| set_stack_end(main));
    result
}

/// Changes what the loader calls the end of the stack; gives what it was.
fn set_stack_end(end: usize) -> Option<usize> {
    // SAFETY: the name is a string.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_stack_end".as_ptr()) };
    loaded::visit(|object| {
        if !object.holds(place as usize) {
            return ControlFlow::Continue(());
        }
        // SAFETY: the variable of the loader, or its copy in the program, which only the loader changes.
        unsafe {
            let before = place.cast::<usize>().read();
            object.overwrite(place.cast(), end as u64);
            ControlFlow::Break(before)
        }
    })
}

/// Where the calling thread's variables of each object are, but those of this library.
fn thread_locals() -> Vec<Range<usize>> {
    let mut found = vec![];
    loaded::visit(|object| {
        if !object.holds(thread_locals as *const () as usize) {
            found.push(object.thread_locals());
        }
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The kernel's number of the thread that runs `main`, if that is on this node.
pub(crate) fn number() -> Option<pid_t> {
    Some(NUMBER.load(Ordering::Relaxed)).filter(|&number| number != 0)
}

/// Passes a signal on to the thread of `main`, as the kernel would have done. False if it is for the calling thread: it was sent to a
/// thread, or `main` blocks it.
///
/// # Safety
/// The description is what the kernel passed to a handler of the signal.
pub(crate) unsafe fn gets(signal: c_int, info: *mut siginfo_t) -> bool {
    let Some(main) = number().filter(|&main| main != gondwana_sys::thread()) else { return false };
    // SAFETY: the caller's promise.
    let code = unsafe { (*info).si_code };
    let of_instruction =
        [libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS].contains(&signal) && code > 0;
    let to_thread = code == libc::SI_TKILL || code == libc::SI_TIMER && timers::are_for_threads();
    if of_instruction || to_thread || blocks(main, signal) {
        return false;
    }
    let process = gondwana_sys::process();
    // SAFETY: the kernel reads the description.
    unsafe { gondwana_sys::syscall!(libc::SYS_rt_tgsigqueueinfo, process, main, signal, info) == 0 }
}

/// In the child of a fork: the thread that made it is its only one.
pub(crate) fn leave_to_parent() {
    NUMBER.store(0, Ordering::Relaxed);
}
