//! Pipes, sockets, signals and the like order what threads do: who takes something out of one sees what the one who put it there has
//! written before.
//!
//! The kernel orders nothing between nodes. So a release precedes what a thread puts into a channel, and an acquire follows what it
//! takes out of one.

use super::Failing;
use super::descriptors::{self, is_channel, is_channel_of_stream};
use crate::accesses;
use gondwana_node::{Node, Thread};
use libc::c_int;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// This node, if threads of several nodes do anything and the calling one is the program's.
fn with_company() -> Option<&'static Node> {
    Node::current().filter(|node| node.has_company() && Thread::is_of_program() && !Thread::inside_runtime())
}

/// Other nodes see what this one has written.
#[cold]
fn publish(node: &'static Node) {
    let before = crate::errno::get();
    node.release_and_wait();
    crate::errno::set(before);
}

/// This node sees what others have published.
#[cold]
fn see(node: &'static Node) {
    let before = crate::errno::get();
    node.acquire(None);
    crate::errno::set(before);
}

/// Makes a call that puts something into a channel, or closes it, which its reader notices.
#[inline]
pub(crate) fn giving<R>(descriptor: c_int, call: impl FnOnce() -> R) -> R {
    if let Some(node) = with_company()
        && is_channel(descriptor)
    {
        publish(node);
    }
    call()
}

/// In place of a descriptor, where a call has none.
pub(crate) const NEW: c_int = -1;

/// Makes a call that opens a descriptor.
#[inline]
pub(crate) fn opening(_of: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let opened = call();
    descriptors::opened(opened);
    opened
}

/// Makes a call that opens two descriptors, and writes them there.
#[inline]
pub(crate) fn opening_two(ends: *mut c_int, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if result == 0 {
        // SAFETY: the call has written to them.
        unsafe { accesses::load(ends.add(1)) }.into_iter().for_each(descriptors::opened);
    }
    result
}

/// Makes a call that takes something out of a channel.
#[inline]
pub(crate) fn taking<R: Failing>(descriptor: c_int, call: impl FnOnce() -> R) -> R {
    let result = call();
    if !result.failed()
        && let Some(node) = with_company()
        && is_channel(descriptor)
    {
        see(node);
    }
    result
}

thread_local! {
    /// The calling thread is about to write out the buffer of a stream.
    static WRITES_OUT: Cell<bool> = const { Cell::new(false) };
}

/// This node, if threads of several nodes do anything. The calling thread may be one that makes a call for a thread of another node: what
/// it reads or writes is also what threads of this node will find in the buffer, or have put there.
fn with_company_of_streams() -> Option<&'static Node> {
    Node::current().filter(|node| node.has_company() && !Thread::inside_runtime() && !is_over())
}

/// True if the program has ended.
pub(super) fn is_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}

/// The program has ended, and nobody answers any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// The program has ended: the C library closes the streams on its own.
pub(crate) fn end() {
    IS_OVER.store(true, Ordering::Relaxed);
}

/// True if the calling thread is inside a call that writes out a stream, whose buffer may be that of any stream.
pub(crate) fn writes_out() -> bool {
    WRITES_OUT.get()
}

/// [`giving`] for what a stream of this node does to its descriptor.
#[inline]
pub(super) fn giving_stream<R>(descriptor: c_int, call: impl FnOnce() -> R) -> R {
    if let Some(node) = with_company_of_streams()
        && is_channel_of_stream(descriptor)
    {
        // A release writes out standard output, which may be this stream.
        let before = WRITES_OUT.replace(true);
        publish(node);
        WRITES_OUT.set(before);
    }
    call()
}

/// [`taking`] for what a stream of this node does to its descriptor.
#[inline]
pub(super) fn taking_stream<R: Failing>(descriptor: c_int, call: impl FnOnce() -> R) -> R {
    let result = call();
    if !result.failed()
        && let Some(node) = with_company_of_streams()
        && is_channel_of_stream(descriptor)
    {
        see(node);
    }
    result
}

/// Makes a call by which threads of the program wait for each other, in both directions.
#[inline]
pub(crate) fn exchanging<R: Failing>(descriptor: c_int, call: impl FnOnce() -> R) -> R {
    giving(descriptor, || taking(descriptor, call))
}

/// Makes a call that locks or unlocks a file, of which threads may have several descriptors.
#[inline]
pub(crate) fn locking<R: Failing>(_file: c_int, call: impl FnOnce() -> R) -> R {
    let Some(node) = with_company() else { return call() };
    publish(node);
    let result = call();
    if !result.failed() {
        see(node);
    }
    result
}

/// The calling thread is about to send a signal, which its receiver may take for a message.
pub(crate) fn announce() {
    if let Some(node) = with_company() {
        publish(node);
    }
}

/// The calling thread has received a signal.
pub(crate) fn learn() {
    if let Some(node) = Node::current().filter(|node| node.has_company()) {
        see(node);
    }
}

/// Makes a call that waits for several descriptors.
#[inline]
pub(crate) fn waiting(call: impl FnOnce() -> c_int) -> c_int {
    let count = call();
    if count > 0
        && let Some(node) = with_company()
    {
        see(node);
    }
    count
}
