//! Delegations: what a stream of this node has read ahead goes to a node that reads byte by byte, which then reads without
//! messages. Whoever reads elsewhere, or moves, recalls it first. The other side is `delegated`.
//!
//! A node that reads to the end of what it gets then gets more than the buffer has, from a regular file. The descriptor moves when it
//! is known how much of that was read.
//!
//! The bytes stay in the buffer, and the stream looks as though they had been read. Who changes that holds the stream's lock. So
//! each call that reads locks the stream before it looks whether something is to be recalled.

use super::buffered;
use super::descriptors::is_file;
use super::stream_marks::name_of;
use super::streams_elsewhere::fileno;
use crate::errno;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{MOST_BYTES, Node, StreamAction, StreamCall};
use libc::{FILE, c_int};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of a delegation of which some are beyond the buffer.
const AHEAD: usize = 64 << 10;

/// A delegation of this node's.
#[derive(Clone, Copy)]
struct Delegation {
    number: u64,
    /// The node that has it.
    to: u16,
    /// The address of its first byte.
    start: usize,
    /// How many bytes the buffer has from there on, and how many were given.
    buffered: usize,
    given: usize,
}

/// What is known of a stream that other nodes read byte by byte.
#[derive(Default)]
struct Reading {
    /// The node that has read a byte last.
    last: Option<u16>,
    /// All of the last delegation was read.
    is_used_up: bool,
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
    let read = read as usize;
    let delegation = uninterrupted(move || {
        let mut all = lock(&READ);
        let reading = all.get_mut(&(stream as usize))?;
        let delegation = reading.delegation.take_if(|delegation| delegation.number == number)?;
        reading.is_used_up = read == delegation.given;
        Some(delegation)
    });
    let Some(Delegation { start, buffered, .. }) = delegation else { return };
    COUNT.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the stream is locked, and its buffer is as it was, because nothing could be read.
    unsafe {
        buffered::set_next(stream, start + read.min(buffered));
        if let Some(beyond) = read.checked_sub(buffered).filter(|&beyond| beyond > 0) {
            gondwana_sys::syscall!(libc::SYS_lseek, fileno(stream), beyond, libc::SEEK_CUR);
            buffered::forget_offset(stream);
        }
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
    let (start, buffered) = (bytes.as_ptr() as usize, bytes.len());
    let (is_wanted, is_used_up) = uninterrupted(move || {
        let mut all = lock(&READ);
        let reading = all.entry(stream as usize).or_default();
        let is_same = reading.last.replace(to) == Some(to);
        (is_same && buffered > 1 || wants, is_same && reading.is_used_up)
    });
    if !is_wanted {
        return (0, vec![]);
    }
    let mut bytes = bytes.to_vec();
    // SAFETY: the stream is locked.
    unsafe {
        if is_used_up && !buffered::is_in_backup(stream) {
            bytes.extend(beyond(stream, AHEAD.saturating_sub(buffered)));
        }
        buffered::set_next(stream, buffered::next_and_end(stream).1);
    }
    let (number, given) = (NUMBER.fetch_add(1, Ordering::Relaxed) + 1, bytes.len());
    let delegation = Delegation { number, to, start, buffered, given };
    uninterrupted(move || lock(&READ).entry(stream as usize).or_default().delegation = Some(delegation));
    COUNT.fetch_add(1, Ordering::Relaxed);
    (number, bytes)
}

/// Up to `most` bytes of the file beyond what the buffer has; none of what is no regular file.
///
/// # Safety
/// The stream is open and locked, and reads.
unsafe fn beyond(stream: *mut FILE, most: usize) -> Vec<u8> {
    // SAFETY: the caller's promise, and a buffer of that size.
    unsafe {
        if !reads_file(stream) {
            return vec![];
        }
        let mut bytes = vec![0_u8; most];
        let descriptor = fileno(stream);
        let here = gondwana_sys::syscall!(libc::SYS_lseek, descriptor, 0, libc::SEEK_CUR);
        let read = if here < 0 {
            here
        } else {
            gondwana_sys::syscall!(libc::SYS_pread64, descriptor, bytes.as_mut_ptr(), most, here)
        };
        bytes.truncate(usize::try_from(read).unwrap_or(0));
        bytes
    }
}

/// True if the stream is read from a regular file, for whose next bytes nobody waits long.
///
/// # Safety
/// The stream is open.
pub(super) unsafe fn reads_file(stream: *mut FILE) -> bool {
    let before = errno::get();
    // SAFETY: the caller's promise.
    let is_regular = is_file(unsafe { fileno(stream) });
    errno::set(before);
    is_regular
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
