//! What other nodes have delegated to this one: bytes that their streams have read ahead. The other side is `delegations`.
//!
//! At the address of another node's stream there is memory of this node, of which inlined `getc_unlocked` uses what a stream has
//! there: it reads delegated bytes as it would its own. The rest of the record is beside that.

use super::stream_memory;
use gondwana_node::StreamDone;
use libc::{FILE, c_int};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The record of a stream of another node, at its address. All zero is that of a stream of which nothing is delegated.
#[repr(C)]
struct Record {
    here: Here,
    /// Held for some instructions by whoever uses `here`.
    busy: AtomicBool,
    /// The stream is about the program's memory or functions, or orders what threads do.
    must_release: AtomicBool,
    /// The thread that has locked the stream; 0 for none of this node.
    holder: AtomicU64,
    /// How often it has.
    times: AtomicU32,
}

/// The bytes that are here.
#[repr(C)]
struct Here {
    marks: c_int,
    next: usize,
    end: usize,
    /// Of a stream that is written.
    unused: [usize; 4],
    start: usize,
    /// The delegation that is here; 0 for none.
    number: u64,
    /// One that is here no more, and how much of it was read.
    last: u64,
    last_read: u32,
    /// It and those before it were recalled before they were here.
    recalled: u64,
    buffer: usize,
    room: usize,
}

/// The C library's standard input is a stream of its own on each node.
struct Input(UnsafeCell<MaybeUninit<Record>>);

// SAFETY: whoever uses more than the atomic members sets `busy`.
unsafe impl Sync for Input {}

static INPUT: Input = Input(UnsafeCell::new(MaybeUninit::zeroed()));

fn record_of(stream: *mut FILE) -> *mut Record {
    if stream == stream_memory::standard_input() { INPUT.0.get().cast() } else { stream.cast() }
}

/// A record that no other thread uses meanwhile.
struct Busy(*mut Record);

impl Busy {
    /// Touches no shared memory while it exists: whoever waits for a page does what messages ask for.
    #[inline]
    fn new(stream: *mut FILE) -> Self {
        let mut tries = 0_u32;
        loop {
            if let Some(busy) = Self::at_once(stream) {
                return busy;
            }
            tries += 1;
            if tries.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    #[inline]
    fn at_once(stream: *mut FILE) -> Option<Self> {
        let record = record_of(stream);
        // SAFETY: there is zeroed memory for a stream at each address of another node's streams.
        let was_busy = unsafe { (*record).busy.swap(true, Ordering::Acquire) };
        // Not made at all otherwise: its end says that nobody uses the record.
        (!was_busy).then(|| Self(record))
    }

    #[inline]
    fn here(&mut self) -> &mut Here {
        // SAFETY: `busy` keeps others away.
        unsafe { &mut (*self.0).here }
    }

    /// The bytes that are here, if the thread may read them.
    #[inline]
    fn here_for(&mut self, thread: impl FnOnce() -> u64) -> Option<&mut Here> {
        // SAFETY: as in `at_once`.
        let holder = unsafe { (*self.0).holder.load(Ordering::Relaxed) };
        (holder == 0 || holder == thread()).then(|| self.here())
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `at_once`.
        unsafe { (*self.0).busy.store(false, Ordering::Release) };
    }
}

impl Here {
    /// Gives up what is here; returns how much of it was read.
    fn give_up(&mut self) -> u32 {
        let read = u32::try_from(self.next - self.start).expect("within MOST_BYTES");
        (self.last, self.last_read) = (self.number, read);
        (self.number, self.start, self.next, self.end) = (0, 0, 0, 0);
        read
    }
}

/// The next byte, if it is here.
#[inline]
pub(super) fn next(stream: *mut FILE, thread: impl FnOnce() -> u64) -> Option<u8> {
    let mut busy = Busy::new(stream);
    let here = busy.here_for(thread)?;
    (here.next < here.end).then(|| {
        // SAFETY: the byte is in the buffer.
        let byte = unsafe { *(here.next as *const u8) };
        here.next += 1;
        byte
    })
}

/// As many bytes as `wanted` says when it is shown those that are here, if it says so.
pub(super) fn take(
    stream: *mut FILE,
    thread: u64,
    wanted: impl FnOnce(&[u8]) -> Option<usize>,
) -> Option<Vec<u8>> {
    let mut busy = Busy::new(stream);
    let here = busy.here_for(|| thread).filter(|here| here.next < here.end)?;
    // SAFETY: they are in the buffer.
    let bytes = unsafe { std::slice::from_raw_parts(here.next as *const u8, here.end - here.next) };
    let count = wanted(bytes)?;
    here.next += count;
    Some(bytes[..count].to_vec())
}

/// Takes back the byte that was read last, if it is here and no other than `byte`.
pub(super) fn unread(stream: *mut FILE, thread: u64, byte: Option<u8>) -> bool {
    let mut busy = Busy::new(stream);
    let Some(here) = busy.here_for(|| thread).filter(|here| here.next > here.start) else { return false };
    // SAFETY: the byte is in the buffer.
    let last = unsafe { *((here.next - 1) as *const u8) };
    let is_it = byte.is_none_or(|byte| byte == last);
    here.next -= usize::from(is_it);
    is_it
}

/// Bytes have come, the first of which is read already.
pub(super) fn install(stream: *mut FILE, number: u64, bytes: &[u8]) {
    // Allocated and freed while the record is not in use.
    let mut buffer = Vec::<u8>::with_capacity(bytes.len());
    let mut busy = Busy::new(stream);
    let here = busy.here();
    if here.recalled >= number {
        return;
    }
    if here.room < bytes.len() {
        let (start, room) = (here.buffer as *mut u8, here.room);
        (here.buffer, here.room) = (buffer.as_mut_ptr() as usize, buffer.capacity());
        std::mem::forget(buffer);
        // SAFETY: what an earlier call has forgotten.
        buffer = if room > 0 { unsafe { Vec::from_raw_parts(start, 0, room) } } else { vec![] };
    }
    // SAFETY: the buffer has room for them.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), here.buffer as *mut u8, bytes.len()) };
    (here.number, here.start) = (number, here.buffer);
    (here.next, here.end) = (here.start + 1, here.start + bytes.len());
    drop(busy);
    drop(buffer);
}

/// What this node gives back with a call: the number of the delegation, and how many bytes of it were read.
pub(super) fn give_up(stream: *mut FILE, thread: u64) -> Option<(u64, u32)> {
    let mut busy = Busy::new(stream);
    let here = busy.here_for(|| thread)?;
    let number = here.number;
    (number != 0).then(|| (number, here.give_up()))
}

/// The marks of the stream, if something is delegated: nobody can set any meanwhile.
pub(super) fn marks(stream: *mut FILE) -> Option<c_int> {
    let mut busy = Busy::new(stream);
    let here = busy.here();
    (here.number != 0).then_some(here.marks)
}

/// The opener recalls a delegation. `None` if a thread is just using the record, unless `waits` is set.
pub(super) fn recalled(stream: *mut FILE, number: u64, waits: bool) -> Option<StreamDone> {
    let mut busy = if waits { Busy::new(stream) } else { Busy::at_once(stream)? };
    let here = busy.here();
    let read = if here.number == number {
        here.give_up()
    } else if here.last == number {
        here.last_read
    } else {
        // It is still to be installed, by the thread that has read its first byte.
        here.recalled = number;
        1
    };
    Some(StreamDone { result: read.into(), ..StreamDone::default() })
}

/// The calling thread has locked the stream where it is open.
pub(super) fn locked(stream: *mut FILE, thread: u64) {
    // SAFETY: as in `Busy::at_once`.
    let record = unsafe { &*record_of(stream) };
    record.holder.store(thread, Ordering::Relaxed);
    record.times.fetch_add(1, Ordering::Relaxed);
}

/// The calling thread, which has locked the stream, is about to unlock it.
pub(super) fn unlocked(stream: *mut FILE, thread: u64) {
    // SAFETY: as in `Busy::at_once`.
    let record = unsafe { &*record_of(stream) };
    if record.holder.load(Ordering::Relaxed) == thread && record.times.fetch_sub(1, Ordering::Relaxed) == 1 {
        record.holder.store(0, Ordering::Relaxed);
    }
}

/// The stream is about to be closed.
pub(super) fn forget(stream: *mut FILE) {
    must_release(stream).store(false, Ordering::Relaxed);
    // SAFETY: as in `Busy::at_once`.
    let record = unsafe { &*record_of(stream) };
    record.holder.store(0, Ordering::Relaxed);
    record.times.store(0, Ordering::Relaxed);
}

/// Whether this node must release what it has written before a call on the stream, as far as it knows.
pub(super) fn must_release<'a>(stream: *mut FILE) -> &'a AtomicBool {
    // SAFETY: as in `Busy::at_once`; the memory stays.
    unsafe { &(*record_of(stream)).must_release }
}
