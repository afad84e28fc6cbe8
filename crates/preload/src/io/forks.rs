//! Child processes that go on with the program's code.

use super::descriptors::Reopened;
use super::{children, delegations, descriptors, fork_handlers, record_holder};
use crate::private_stack::on_private_stack;
use crate::process::identity;
use crate::pthread::semaphore;
use crate::{main_thread, thread_list, thread_memory};
use gondwana_node::{Child, Node};
use gondwana_page::to_usize;
use libc::{c_char, c_int, pid_t, termios, winsize};
use std::ptr::{from_ref, null};

/// Bytes of a terminal's path.
const PATH: usize = 4096;

/// # Safety
/// As the C library's `fork`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fork() -> pid_t {
    // SAFETY: the caller's promise.
    fork_handlers::around(|| unsafe { _Fork() })
}

/// # Safety
/// As the C library's `_Fork`, which calls no handlers.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn _Fork() -> pid_t {
    // SAFETY: the caller's promise.
    unsafe { make(Child::GoesOn) }
}

/// # Safety
/// As the C library's `_Fork`, or `vfork` for a child that leaves.
unsafe fn make(child: Child) -> pid_t {
    if let Some(node) = Node::current() {
        let parent = identity::process();
        if child == Child::GoesOn {
            crate::map::tell_of_copies(node);
        }
        children::begin();
        delegations::recall_all();
        let reopened = Reopened::for_fork();
        let mut semaphores = node.all_semaphores();
        semaphores.retain(|semaphore| node.is_shared(to_usize(semaphore.object.0)));
        let own = thread_memory::of_caller(node);
        // SAFETY: forwards the call.
        let fork = || unsafe { crate::real!(fork: fn() -> pid_t)() };
        let forked = node.fork(own, child, || thread_list::hold(node), fork);
        if forked == Ok(0) {
            reopened.keep();
            descriptors::restore();
            record_holder::leave_to_parent();
            main_thread::leave_to_parent();
            crate::random::restore();
            crate::map::low::leave_rest(node);
            semaphore::inherit(&semaphores);
            identity::become_child(parent);
        }
        return forked.unwrap_or_else(|error| {
            crate::errno::set(error);
            -1
        });
    }
    // SAFETY: forwards the call.
    unsafe { crate::real!(fork: fn() -> pid_t)() }
}

/// # Safety
/// As the C library's `vfork`, which calls no handlers. What the child writes is its own, as by fork: otherwise closing its descriptors
/// would change the runtime's records of this process's descriptors.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn vfork() -> pid_t {
    // SAFETY: the caller's promise.
    unsafe { make(Child::Leaves) }
}

/// In a child: a descriptor becomes standard input, output and error, and nothing else. False if it cannot.
///
/// By the functions that the program would call: they know which numbers were in use for the run.
fn becomes_streams(descriptor: c_int) -> bool {
    let streams = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];
    // SAFETY: touches no memory.
    let done = streams.iter().all(|&stream| unsafe { libc::dup2(descriptor, stream) } == stream);
    if descriptor > libc::STDERR_FILENO {
        // SAFETY: as above.
        unsafe { libc::close(descriptor) };
    }
    done
}

/// A terminal: the descriptors of both of its ends, and its path. `None` with `errno` set if there is none.
fn open_terminal(settings: Option<termios>, size: Option<winsize>) -> Option<(c_int, c_int, [c_char; PATH])> {
    let mut opened = None;
    // The kernel reads and writes what is on the stack.
    on_private_stack(&mut || {
        let (mut ours, mut theirs, mut path) = (-1, -1, [0; PATH]);
        let (settings, size) = (settings, size);
        let settings = settings.as_ref().map_or(null(), from_ref);
        let size = size.as_ref().map_or(null(), from_ref);
        // SAFETY: private copies, and places for results.
        let failed = unsafe {
            crate::real!(
                openpty: fn(*mut c_int, *mut c_int, *mut c_char, *const termios, *const winsize) -> c_int
            )(&raw mut ours, &raw mut theirs, path.as_mut_ptr(), settings, size)
        };
        opened = (failed == 0).then_some((ours, theirs, path));
    });
    opened
}

/// # Safety
/// As the C library's `forkpty`, which calls its own `fork`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn forkpty(
    master: *mut c_int,
    name: *mut c_char,
    settings: *const termios,
    size: *const winsize,
) -> pid_t {
    // SAFETY: the caller passes null or what `openpty` takes, and places for results.
    unsafe {
        let Some((ours, theirs, path)) = open_terminal(settings.as_ref().copied(), size.as_ref().copied())
        else {
            return -1;
        };
        let child = fork();
        if child == 0 {
            libc::close(ours);
            if libc::setsid() < 0 || libc::ioctl(theirs, libc::TIOCSCTTY, 0) != 0 || !becomes_streams(theirs)
            {
                libc::_exit(1);
            }
            return 0;
        }
        libc::close(theirs);
        if child < 0 {
            let error = crate::errno::get();
            libc::close(ours);
            crate::errno::set(error);
            return child;
        }
        master.write(ours);
        if !name.is_null() {
            libc::strcpy(name, path.as_ptr());
        }
        child
    }
}

/// # Safety
/// As the C library's `daemon`, which calls its own `fork`. The run ends; the child is a process of its own.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn daemon(stays_in_folder: c_int, keeps_streams: c_int) -> c_int {
    // SAFETY: touches no memory but literals and what a fork may.
    unsafe {
        match fork() {
            -1 => return -1,
            0 => {}
            _ => libc::_exit(0),
        }
        if libc::setsid() < 0 || stays_in_folder == 0 && libc::chdir(c"/".as_ptr()) != 0 {
            return -1;
        }
        if keeps_streams == 0 {
            let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            if nowhere < 0 || !becomes_streams(nowhere) {
                return -1;
            }
        }
    }
    0
}
