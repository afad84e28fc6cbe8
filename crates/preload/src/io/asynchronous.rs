//! Asynchronous input and output (`aio_read` and the like), on several nodes.
//!
//! The C library has threads of its own make these calls, for which pages of the program's memory cannot be made present. So the
//! calling thread makes them at once, as POSIX permits: each is over when the function returns, and the C library's `aio_error`,
//! `aio_return`, `aio_suspend` and `aio_cancel` find it so. What may wait for a reader or a writer is refused.

use super::descriptors::fsync;
use super::timers::{Function, function_in};
use super::transfer::{pread, pwrite};
use crate::numbers::many;
use crate::process::kill::sigqueue;
use gondwana_node::Node;
use libc::{c_int, c_void, off_t, sigevent, size_t, ssize_t};

/// The C library's control block, with its private part.
#[repr(C)]
pub(super) struct Control {
    descriptor: c_int,
    operation: c_int,
    priority: c_int,
    memory: *mut c_void,
    length: size_t,
    notice: sigevent,
    private: [u64; 2],
    error: c_int,
    result: ssize_t,
    offset: off_t,
    reserved: [u8; 32],
}

const _: () = assert!(size_of::<Control>() == size_of::<libc::aiocb>());

/// This node, if the C library's own functions must not be used.
fn ours() -> Option<&'static Node> {
    Node::current().filter(|node| node.has_company())
}

/// Tells the program that something is done, as it wants to be told.
fn tell(notice: &sigevent) {
    /// A function that takes a value, as one that a thread begins with: both have their argument in the same register.
    type Begin = extern "C" fn(*mut c_void) -> *mut c_void;
    // SAFETY: a description of each kind has what is used of it; the thread's attributes are a private variable.
    unsafe {
        match notice.sigev_notify {
            libc::SIGEV_SIGNAL => {
                sigqueue(crate::process::identity::process(), notice.sigev_signo, notice.sigev_value);
            }
            libc::SIGEV_THREAD => {
                let function: Begin = std::mem::transmute::<Function, Begin>(function_in(notice));
                let mut attributes = std::mem::zeroed();
                libc::pthread_attr_init(&raw mut attributes);
                libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
                let mut thread = 0;
                libc::pthread_create(
                    &raw mut thread,
                    &raw const attributes,
                    function,
                    notice.sigev_value.sival_ptr,
                );
                libc::pthread_attr_destroy(&raw mut attributes);
            }
            _ => {}
        }
    }
}

/// An operation of a control block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Synchronise,
}

/// Performs an operation, and notes its result; -1 if it is refused.
///
/// # Safety
/// The control block and its memory are the program's.
unsafe fn perform(node: &Node, control: *mut Control, operation: Operation) -> c_int {
    // SAFETY: the caller's promise.
    let control = unsafe { &mut *control };
    let (fd, memory, length, offset) = (control.descriptor, control.memory, control.length, control.offset);
    // SAFETY: forwards the caller's arguments.
    let result = unsafe {
        match operation {
            Operation::Synchronise => fsync(fd) as ssize_t,
            Operation::Read => pread(fd, memory, length, offset),
            Operation::Write => pwrite(fd, memory, length, offset),
        }
    };
    let error = if result < 0 { crate::errno::get() } else { 0 };
    if error == libc::ESPIPE {
        node.refuse("asynchronous input and output on what is no file: use threads");
        crate::errno::set(libc::ENOSYS);
        return -1;
    }
    (control.result, control.error) = (result, error);
    0
}

/// Performs an operation and tells the program; -1 if it is refused.
///
/// # Safety
/// The control block and its memory are the program's.
unsafe fn do_at_once(node: &Node, control: *mut Control, operation: Operation) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let done = perform(node, control, operation);
        if done == 0 {
            tell(&(*control).notice);
        }
        done
    }
}

/// Defines functions that begin an operation.
macro_rules! beginning {
    ($($name:ident => $operation:ident;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(control: *mut Control) -> c_int {
            match ours() {
                // SAFETY: the caller passes a control block.
                Some(node) => unsafe { do_at_once(node, control, Operation::$operation) },
                // SAFETY: forwards the caller's argument.
                None => unsafe { crate::real!($name: fn(*mut Control) -> c_int)(control) },
            }
        }
    )*};
}

beginning! {
    aio_read => Read;
    aio_read64 => Read;
    aio_write => Write;
    aio_write64 => Write;
}

/// Defines functions that write what is written to where it lasts.
macro_rules! synchronising {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(operation: c_int, control: *mut Control) -> c_int {
            match ours() {
                // SAFETY: the caller passes a control block.
                Some(node) => unsafe { do_at_once(node, control, Operation::Synchronise) },
                // SAFETY: forwards the caller's arguments.
                None => unsafe { crate::real!($name: fn(c_int, *mut Control) -> c_int)(operation, control) },
            }
        }
    )*};
}

synchronising! { aio_fsync aio_fsync64 }

/// Defines `lio_listio`: a list of operations.
macro_rules! listing {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            mode: c_int,
            list: *const *mut Control,
            count: c_int,
            notice: *const sigevent,
        ) -> c_int {
            match ours() {
                // SAFETY: the caller passes that many control blocks, each null or valid.
                Some(node) => unsafe { perform_all(node, mode, list, many(count), notice) },
                // SAFETY: forwards the caller's arguments.
                None => unsafe {
                    crate::real!($name: fn(c_int, *const *mut Control, c_int, *const sigevent) -> c_int)(
                        mode, list, count, notice,
                    )
                },
            }
        }
    )*};
}

listing! { lio_listio lio_listio64 }

/// # Safety
/// There are that many control blocks, each null or valid; the notice is null or valid.
unsafe fn perform_all(
    node: &Node,
    mode: c_int,
    list: *const *mut Control,
    count: usize,
    notice: *const sigevent,
) -> c_int {
    let mut failed = false;
    for index in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let control = *list.add(index);
            let operation = match control.as_ref().map(|control| control.operation) {
                Some(libc::LIO_READ) => Operation::Read,
                Some(libc::LIO_WRITE) => Operation::Write,
                _ => continue,
            };
            failed |= do_at_once(node, control, operation) != 0 || (*control).error != 0;
        }
    }
    if mode == libc::LIO_NOWAIT {
        // SAFETY: the caller's promise.
        unsafe { notice.as_ref() }.into_iter().for_each(tell);
    } else if failed {
        crate::errno::set(libc::EIO);
        return -1;
    }
    0
}
