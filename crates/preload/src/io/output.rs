//! The order of standard output and error.
//!
//! Each node prints by streams of its own, whose buffer a release writes out (`exit::flush_output`). That is not enough in two cases.
//!
//! A thread that passes a turn to print by an atomic instruction releases nothing that this library sees. So under sequential consistency nodes
//! other than node 0 buffer no output, and node 0 does not from when another node prints first: what a call prints is written out when it
//! returns, and threads print in the order in which they make their calls, as natively.
//!
//! What nodes of other hosts write reaches the launcher through their agents, each on its own way. So node 0 prints for them: what their streams
//! write out by its own, what they write to the descriptors as a call (`descriptors::place`).

use super::streams_elsewhere::Elsewhere;
use super::{buffered, channels, descriptors, stream_memory};
use gondwana_node::{Node, StreamAction, StreamCall, Thread};
use libc::{FILE, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    static stdout: *mut FILE;
}

/// This node buffers no output, whatever the program wants.
static UNBUFFERED: AtomicBool = AtomicBool::new(false);

/// Node 0 may buffer output that is to come before what this node prints.
static FIRST_BUFFERS: AtomicBool = AtomicBool::new(false);

/// On a node other than node 0, at the start; `apart`: it has its own way to the launcher, `ordered`: calls that synchronise order what is
/// printed.
pub(crate) fn begin(apart: bool, ordered: bool) {
    if apart {
        descriptors::leave_output_to_first();
    }
    if !ordered {
        FIRST_BUFFERS.store(!apart, Ordering::Relaxed);
        // SAFETY: the C library has set the variable; nothing was printed, and no other thread runs yet.
        unsafe { stop_buffering(stdout) };
    }
}

/// Writes out what the stream holds, and keeps nothing in it from now on.
///
/// # Safety
/// It is this node's standard output.
pub(super) unsafe fn stop_buffering(stream: *mut FILE) -> c_int {
    UNBUFFERED.store(true, Ordering::Relaxed);
    let real = crate::real!(setvbuf: fn(*mut FILE, *mut c_char, c_int, usize) -> c_int);
    // SAFETY: as promised.
    unsafe { real(stream, null_mut(), libc::_IONBF, 0) }
}

/// True for standard output that must not be buffered.
pub(crate) fn stays_unbuffered(stream: *mut FILE) -> bool {
    UNBUFFERED.load(Ordering::Relaxed) && is_output(stream)
}

/// Called before a stream is written out, by the thread that has locked it: node 0 prints first what it has.
#[inline]
pub(super) fn before_writing(stream: *mut FILE) {
    if FIRST_BUFFERS.load(Ordering::Relaxed) && is_output(stream) {
        print_behind_first();
    }
}

/// Prints what standard output or error writes out by node 0's, if that is where it goes. Returns how many bytes were printed.
///
/// # Safety
/// The source has that many bytes.
#[inline]
pub(super) unsafe fn print_by_first(stream: *mut FILE, source: *const c_void, bytes: usize) -> Option<usize> {
    let name = stream_memory::common_name_of(stream)?;
    // SAFETY: the C library writes it out.
    let number = unsafe { buffered::descriptor(stream) };
    if !descriptors::is_output_of_first(number) {
        return None;
    }
    // SAFETY: the caller's promise.
    first(name).map(|first| unsafe { first.write(source, bytes) })
}

/// Node 0's stream of a common name, if the calling thread may ask for something now.
fn first(name: u64) -> Option<Elsewhere> {
    let asks =
        Node::current().is_some_and(Node::has_company) && Thread::is_of_program() && !channels::is_over();
    Elsewhere::without_record(0, name).filter(|_| asks)
}

#[cold]
fn print_behind_first() {
    if let Some(first) = first(StreamCall::OUTPUT) {
        first.int(StreamAction::Buffer { mode: libc::_IONBF, size: 0 });
        FIRST_BUFFERS.store(false, Ordering::Relaxed);
    }
}

/// True for this node's standard output.
pub(super) fn is_output(stream: *mut FILE) -> bool {
    stream_memory::common_name_of(stream) == Some(StreamCall::OUTPUT)
}
