//! Streams into memory: the program may read their contents after a flush, and owns them after the close.
//!
//! Their first block is the program's, but the C library grows it in private memory, during any call that prints.
//! After a flush or a close such contents are copied to shared memory.

use super::streams_elsewhere::elsewhere;
use super::{delegations, is_shared};
use crate::alloc::{self, Purpose, with_purpose};
use gondwana_locks::lock;
use gondwana_node::StreamAction;
use libc::{FILE, c_char, c_int, c_void, size_t, wchar_t};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The program's variables for the contents of an open stream.
struct Contents {
    stream: usize,
    /// The program's variables for the block and for its length, in characters of `width` bytes.
    block: *mut *mut c_void,
    length: *mut size_t,
    width: usize,
    /// The shared copy while the stream is open; null if the program sees the stream's own block.
    copy: *mut c_void,
}

// SAFETY: the program's variables are used by the thread that flushes or closes, as the C library would.
unsafe impl Send for Contents {}

static OPEN: Mutex<Vec<Contents>> = Mutex::new(Vec::new());

/// How many are open: mostly none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Contents {
    /// Copies the contents to shared memory unless they are shared already, into the block of the last copy if there
    /// is one.
    ///
    /// # Safety
    /// The stream has just been flushed or closed, so that the variables describe its contents.
    unsafe fn share(&mut self) {
        // SAFETY: as promised, with the terminator that the C library appends.
        unsafe {
            let own = *self.block;
            let bytes = (*self.length + 1) * self.width;
            if own.is_null() || is_shared(own, bytes) {
                return;
            }
            let copy = alloc::resize(self.copy, bytes);
            if !copy.is_null() {
                std::ptr::copy_nonoverlapping(own.cast::<u8>(), copy.cast(), bytes);
                *self.block = copy;
                self.copy = copy;
            }
        }
    }
}

/// Removes the streams that `wanted` selects from the list.
fn take(wanted: impl Fn(usize) -> bool) -> Vec<Contents> {
    lock(&OPEN).extract_if(.., |contents| wanted(contents.stream)).collect()
}

/// Opens a stream, which is noted together with where its contents go.
unsafe fn open(
    block: *mut *mut c_void,
    length: *mut size_t,
    width: usize,
    call: impl FnOnce() -> *mut FILE,
) -> *mut FILE {
    let stream = with_purpose(Purpose::StreamThenProgram, call);
    if !stream.is_null() {
        let contents = Contents { stream: stream as usize, block, length, width, copy: std::ptr::null_mut() };
        lock(&OPEN).push(contents);
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    stream
}

/// # Safety
/// As the C library's `open_memstream`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn open_memstream(block: *mut *mut c_char, length: *mut size_t) -> *mut FILE {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        open(block.cast(), length, 1, || {
            crate::real!(open_memstream: fn(*mut *mut c_char, *mut size_t) -> *mut FILE)(block, length)
        })
    }
}

/// # Safety
/// As the C library's `open_wmemstream`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn open_wmemstream(block: *mut *mut wchar_t, length: *mut size_t) -> *mut FILE {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        open(block.cast(), length, size_of::<wchar_t>(), || {
            crate::real!(open_wmemstream: fn(*mut *mut wchar_t, *mut size_t) -> *mut FILE)(block, length)
        })
    }
}

/// Closes a stream of any kind by `close`; for a stream into memory the program gets the contents.
pub(super) fn closing(stream: *mut FILE, close: impl FnOnce() -> c_int) -> c_int {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return close();
    }
    // Before it is closed: afterwards its address may be another stream's.
    let mut closed = take(|open| open == stream as usize);
    COUNT.fetch_sub(closed.len(), Ordering::Relaxed);
    let result = close();
    for contents in &mut closed {
        // SAFETY: the stream is closed, so its block is the program's: replaced by a copy, nobody else will free it.
        unsafe {
            let own = *contents.block;
            contents.share();
            if *contents.block != own {
                alloc::free(own);
            } else if !contents.copy.is_null() {
                alloc::free(contents.copy);
            }
        }
    }
    result
}

/// Flushes one stream, or all if null.
fn flushing(stream: *mut FILE, flush: impl FnOnce() -> c_int) -> c_int {
    let result = flush();
    if COUNT.load(Ordering::Relaxed) > 0 {
        // Not under the lock: copying may wait for other nodes.
        let mut flushed = take(|open| stream.is_null() || open == stream as usize);
        for contents in &mut flushed {
            // SAFETY: the stream was flushed.
            unsafe { contents.share() };
        }
        lock(&OPEN).extend(flushed);
    }
    result
}

macro_rules! flushing {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(stream: *mut FILE) -> c_int {
            if let Some(there) = elsewhere(stream) {
                return there.int(StreamAction::Flush);
            }
            if stream.is_null() {
                delegations::recall_all();
            } else {
                delegations::recall_unlocked(stream);
            }
            // SAFETY: forwards the caller's argument.
            flushing(stream, || unsafe { crate::real!($name: fn(*mut FILE) -> c_int)(stream) })
        }
    )*};
}

flushing! { fflush fflush_unlocked }
