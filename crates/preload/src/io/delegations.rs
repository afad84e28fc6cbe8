//! Delegations: what a stream of this node has read ahead goes to a node that reads byte by byte, which then reads without
//! messages. Whoever reads elsewhere, or moves, recalls it first. The other side is `delegated`.
//!
//! The bytes stay in the buffer, and the stream looks as though they had been read. Who changes that holds the stream's lock. So
//! each call that reads locks the stream before it looks whether something is to be recalled.

use super::buffered;
use super::stream_marks::name_of;
use crate::errno;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{MOST_BYTES, Node, StreamAction, StreamCall};
use libc::{FILE, c_int};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A delegation of this node's.
#[derive(Clone, Copy)]
struct Delegation {
    number: u64,
    /// The node that has it.
    to: u16,
    /// The address of its first byte.
    start: usize,
}

/// What is known of a stream that other nodes read byte by byte.
#[derive(Default)]
struct Reading {
    /// The node that has read a byte last.
    last: Option<u16>,
    delegation: Option<Delegation>,
}

static READ: Mutex<BTreeMap<usize, Reading>> = Mutex::new(BTreeMap::new());

/// How many delegations there are: mostly none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The number of the last delegation.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A stream that the calling thread has locked.
pub(super) struct Locked(*mut FILE);

impl Locked {
    pub(super) fn new(stream: *mut FILE) -> Self {
        // SAFETY: the program says that the stream is open.
        unsafe { crate::real!(flockfile: fn(*mut FILE))(stream) };
        Self(stream)
    }

    /// `None` if another thread has locked it.
    pub(super) fn at_once(stream: *mut FILE) -> Option<Self> {
        // SAFETY: as above.
        let failed = unsafe { crate::real!(ftrylockfile: fn(*mut FILE) -> c_int)(stream) } != 0;
        // Not made at all otherwise: its end unlocks the stream.
        (!failed).then(|| Self(stream))
    }

    /// Leaves it locked.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: this thread has locked it.
        unsafe { crate::real!(funlockfile: fn(*mut FILE))(self.0) };
    }
}

/// Makes a call on a stream of this node that reads or moves: with all that was read ahead, and nobody else's call in between.
#[inline]
pub(super) fn whole<R>(stream: *mut FILE, call: impl FnOnce() -> R) -> R {
    let _locked = Locked::new(stream);
    recall(stream);
    call()
}

/// Recalls a stream for a thread that has locked it, or is the only one that uses it.
#[inline]
pub(super) fn recall_unlocked(stream: *mut FILE) {
    if COUNT.load(Ordering::Relaxed) > 0 {
        whole(stream, || {});
    }
}

/// Recalls a stream that the calling thread has locked.
#[inline]
pub(super) fn recall(stream: *mut FILE) {
    if COUNT.load(Ordering::Relaxed) > 0
        && let Some(delegation) = delegation_of(stream)
    {
        recall_from(stream, delegation);
    }
}

#[cold]
fn recall_from(stream: *mut FILE, delegation: Delegation) {
    let Some(node) = Node::current() else { return };
    let before = errno::get();
    let call = StreamCall {
        stream: name_of(stream),
        action: StreamAction::Recall(delegation.number),
        node: node.id().0,
        thread: 0,
        returned: None,
        is_released: false,
    };
    let read = node.call_stream(delegation.to.into(), call, vec![]).result;
    errno::set(before);
    returned(stream, delegation.number, u32::try_from(read).unwrap_or(0));
}

fn delegation_of(stream: *mut FILE) -> Option<Delegation> {
    uninterrupted(move || lock(&READ).get(&(stream as usize))?.delegation)
}

/// The node that has what the stream has read ahead, if one has.
pub(super) fn delegate_of(stream: *mut FILE) -> Option<u16> {
    let is_any = COUNT.load(Ordering::Relaxed) > 0;
    is_any.then(|| delegation_of(stream)).flatten().map(|delegation| delegation.to)
}

/// Takes back a delegation of which `read` bytes were read, unless it is back already. The calling thread has locked the stream.
pub(super) fn returned(stream: *mut FILE, number: u64, read: u32) {
    let start = uninterrupted(move || {
        let mut all = lock(&READ);
        let delegation = &mut all.get_mut(&(stream as usize))?.delegation;
        delegation.take_if(|delegation| delegation.number == number).map(|delegation| delegation.start)
    });
    if let Some(start) = start {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the stream is locked, and its buffer is as it was, because nothing could be read.
        unsafe { buffered::set_next(stream, start + read as usize) };
    }
}

/// A node has read a byte: what has been read ahead goes to it, from that byte on, if it has read the last one, too, or wants it.
/// Gives the number, 0 for none, and the bytes. The calling thread has locked the stream.
pub(super) fn delegate(stream: *mut FILE, byte: u8, to: u16, wants: bool) -> (u64, Vec<u8>) {
    // SAFETY: the stream is locked. The last byte is ahead of the next one, if it was read from the buffer.
    let bytes = unsafe {
        let (next, end) = buffered::next_and_end(stream);
        if next == 0 || next > end || buffered::is_wide(stream) || *((next - 1) as *const u8) != byte {
            return (0, vec![]);
        }
        std::slice::from_raw_parts((next - 1) as *const u8, (end - next + 1).min(MOST_BYTES))
    };
    let (start, count) = (bytes.as_ptr() as usize, bytes.len());
    let number = uninterrupted(move || {
        let mut all = lock(&READ);
        let reading = all.entry(stream as usize).or_default();
        let is_same = reading.last.replace(to) == Some(to);
        let number = (is_same && count > 1 || wants).then(|| NUMBER.fetch_add(1, Ordering::Relaxed) + 1)?;
        reading.delegation = Some(Delegation { number, to, start });
        Some(number)
    });
    let Some(number) = number else { return (0, vec![]) };
    COUNT.fetch_add(1, Ordering::Relaxed);
    let given = bytes.to_vec();
    // SAFETY: as above.
    unsafe { buffered::set_next(stream, buffered::next_and_end(stream).1) };
    (number, given)
}

/// The stream is about to be closed, or to be another file's.
pub(super) fn forget(stream: *mut FILE) {
    recall_unlocked(stream);
    uninterrupted(move || lock(&READ).remove(&(stream as usize)));
}

/// Recalls all streams.
pub(crate) fn recall_all() {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let all: Vec<usize> = uninterrupted(|| {
        let all = lock(&READ);
        all.iter().filter(|(_, reading)| reading.delegation.is_some()).map(|(&stream, _)| stream).collect()
    });
    for stream in all {
        recall_unlocked(stream as *mut FILE);
    }
}
