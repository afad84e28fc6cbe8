//! Access to the buffers of streams. These members of `struct _IO_FILE` are part of the C library's ABI:
//! `getc_unlocked` and `putc_unlocked`, compiled into programs, use them too.

use gondwana_node::StreamDone;
use libc::{FILE, c_int};
use std::sync::atomic::{AtomicU32, Ordering};

/// The flags of the marks, in the first member.
pub(super) const EOF_SEEN: c_int = 0x10;
pub(super) const ERR_SEEN: c_int = 0x20;

const READ_PTR: usize = 8;
const READ_END: usize = 16;
const WRITE_BASE: usize = 32;
const WRITE_PTR: usize = 40;
const WRITE_END: usize = 48;
const BUFFER: usize = 56;
const BUFFER_END: usize = 64;
const DESCRIPTOR: usize = 112;
/// The lock: its state, the owner's recursion count, and the owner.
const LOCK: usize = 136;
const OWNER: usize = 8;
/// Where the C library believes the descriptor to be; -1 if it does not know.
const OFFSET: usize = 144;
/// Flags of the first member: the stream has no buffer, it writes out each line, it has written last.
const UNBUFFERED: c_int = 0x2;
const LINE_BUFFERED: c_int = 0x200;
const IS_WRITING: c_int = 0x800;
/// The flag of a stream that reads what was put back, in the first member.
const IN_BACKUP: c_int = 0x100;
/// Positive if characters are wide.
const MODE: usize = 192;

/// # Safety
/// The stream is open. Another thread may change the member meanwhile.
#[inline]
unsafe fn member(stream: *const FILE, at: usize) -> usize {
    // SAFETY: as promised.
    unsafe { stream.cast::<u8>().add(at).cast::<usize>().read_volatile() }
}

/// # Safety
/// As for [`member`].
#[inline]
pub(super) unsafe fn is_wide(stream: *const FILE) -> bool {
    // SAFETY: as promised.
    unsafe { stream.cast::<u8>().add(MODE).cast::<c_int>().read_volatile() > 0 }
}

/// Sets the end-of-file and error marks of a stream of another node, for inlined `feof_unlocked`. At its address this
/// node has no stream but zeroed memory for these marks, in which the buffers are empty.
pub(crate) fn mark(stream: *mut FILE, marks: u8) {
    let flag = |mark, flag| if marks & mark != 0 { flag } else { 0 };
    let marked = flag(StreamDone::AT_END, EOF_SEEN) | flag(StreamDone::FAILED, ERR_SEEN);
    let flags = stream.cast::<c_int>();
    // SAFETY: the flags are the first member of a stream; such memory is there for all streams of other nodes, and standard
    // input is a stream of the C library's.
    unsafe { flags.write_volatile(flags.read_volatile() & !(EOF_SEEN | ERR_SEEN) | marked) };
}

/// The number of its descriptor; negative for none.
///
/// # Safety
/// As for [`member`].
pub(super) unsafe fn descriptor(stream: *const FILE) -> c_int {
    // SAFETY: as promised.
    unsafe { stream.cast::<u8>().add(DESCRIPTOR).cast::<c_int>().read_volatile() }
}

/// False only if the stream has no buffered output. Called at each unlock, so it reads the members instead of calling
/// the C library.
///
/// # Safety
/// The stream is open. If another thread uses it, output of that thread may be missed.
#[inline]
pub(crate) unsafe fn may_hold_output(stream: *const FILE) -> bool {
    // SAFETY: as promised.
    unsafe { member(stream, WRITE_BASE) != member(stream, WRITE_PTR) || is_wide(stream) }
}

/// False only if the stream has read nothing ahead of the program.
///
/// # Safety
/// As for [`may_hold_output`].
pub(crate) unsafe fn may_hold_input(stream: *const FILE) -> bool {
    // SAFETY: as promised.
    unsafe { member(stream, READ_PTR) != member(stream, READ_END) || is_wide(stream) }
}

/// The bytes that were read ahead. Empty for a wide stream.
///
/// # Safety
/// The stream is open, and nobody else uses it as long as the slice lives.
pub(crate) unsafe fn read<'a>(stream: *const FILE) -> &'a [u8] {
    // SAFETY: as promised; the bytes between the two are the buffer's.
    unsafe {
        let [start, end] = [READ_PTR, READ_END].map(|at| member(stream, at));
        if is_wide(stream) || start >= end {
            return &[];
        }
        std::slice::from_raw_parts(start as *const u8, end - start)
    }
}

/// The next byte, if it was read ahead and no other thread has locked the stream. Between locking and unlocking nothing is called,
/// as it is in the C library's `getc`.
///
/// # Safety
/// The stream is open.
#[inline]
pub(super) unsafe fn take(stream: *mut FILE) -> Option<u8> {
    // SAFETY: a stream has its lock as long as it is open; whoever has the lock uses the other members.
    unsafe {
        let lock = &*(member(stream, LOCK) as *const AtomicU32);
        let owner = (member(stream, LOCK) + OWNER) as *mut u64;
        let own = crate::pthread::native_self();
        let is_locked = owner.read_volatile() == own;
        if !is_locked {
            lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
            owner.write_volatile(own);
        }
        let byte = read(stream).first().copied();
        if byte.is_some() {
            set_next(stream, next_and_end(stream).0 + 1);
        }
        if !is_locked {
            owner.write_volatile(0);
            if lock.swap(0, Ordering::Release) > 1 {
                let (operation, one) = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
                gondwana_sys::syscall!(libc::SYS_futex, lock.as_ptr(), operation, one);
            }
        }
        byte
    }
}

/// Where the next byte is read from, and the end of what was read ahead.
///
/// # Safety
/// The stream is open, and nobody else uses it.
pub(super) unsafe fn next_and_end(stream: *const FILE) -> (usize, usize) {
    // SAFETY: as promised.
    unsafe { (member(stream, READ_PTR), member(stream, READ_END)) }
}

/// Has the next byte be read from here.
///
/// # Safety
/// As for [`next_and_end`]; the address is in the buffer, up to the end of what was read ahead.
pub(super) unsafe fn set_next(stream: *mut FILE, next: usize) {
    // SAFETY: as promised.
    unsafe { stream.cast::<u8>().add(READ_PTR).cast::<usize>().write_volatile(next) };
}

/// True if what is read next was put back, and is not followed by what the file has.
///
/// # Safety
/// As for [`next_and_end`].
pub(super) unsafe fn is_in_backup(stream: *const FILE) -> bool {
    // SAFETY: as promised.
    unsafe { stream.cast::<c_int>().read_volatile() & IN_BACKUP != 0 }
}

/// The descriptor was moved behind the C library's back.
///
/// # Safety
/// As for [`next_and_end`].
pub(super) unsafe fn forget_offset(stream: *mut FILE) {
    // SAFETY: as promised.
    unsafe { stream.cast::<u8>().add(OFFSET).cast::<i64>().write_volatile(-1) };
}

/// True if the stream has a buffer.
///
/// # Safety
/// The stream is open.
pub(super) unsafe fn has_buffer(stream: *const FILE) -> bool {
    // SAFETY: as promised.
    unsafe { member(stream, BUFFER) != 0 }
}

/// The free bytes of the buffer. 0 for a wide stream.
///
/// # Safety
/// The stream is open, and nobody else uses it.
pub(crate) unsafe fn room(stream: *const FILE) -> usize {
    // SAFETY: as promised.
    unsafe {
        let room = member(stream, WRITE_END).saturating_sub(member(stream, WRITE_PTR));
        if is_wide(stream) { 0 } else { room }
    }
}

/// Sets where inlined code finds the end of the room for bytes to write, if it puts any there without a call.
///
/// # Safety
/// As for [`next_and_end`].
unsafe fn set_write_end(stream: *mut FILE, from: usize) {
    // SAFETY: as promised.
    unsafe {
        let flags = stream.cast::<c_int>().read_volatile();
        if flags & (IS_WRITING | LINE_BUFFERED | UNBUFFERED) == IS_WRITING && !is_wide(stream) {
            stream.cast::<u8>().add(WRITE_END).cast::<usize>().write_volatile(member(stream, from));
        }
    }
}

/// Shows the room that the buffer has for bytes to write.
///
/// # Safety
/// As for [`next_and_end`].
pub(super) unsafe fn show_room(stream: *mut FILE) {
    // SAFETY: as promised.
    unsafe { set_write_end(stream, BUFFER_END) };
}

/// Has inlined code call the C library for the next byte that it writes, as though the buffer had no room.
///
/// # Safety
/// As for [`next_and_end`].
pub(super) unsafe fn hide_room(stream: *mut FILE) {
    // SAFETY: as promised.
    unsafe { set_write_end(stream, WRITE_PTR) };
}

/// True if the calling thread has locked the stream, perhaps inside a call on it.
///
/// # Safety
/// The stream is open.
pub(crate) unsafe fn is_locked_here(stream: *const FILE) -> bool {
    // SAFETY: as promised; a stream has its lock as long as it is open.
    unsafe {
        let lock = member(stream, LOCK);
        ((lock + OWNER) as *const u64).read_volatile() == crate::pthread::native_self()
    }
}

/// Who has the lock of a stream: the C library's name of a thread, or what [`set_owner`] has put in its place.
///
/// # Safety
/// The stream is open, and its lock is held by or for the caller.
pub(super) unsafe fn set_owner(stream: *const FILE, owner: u64) {
    // SAFETY: as promised; a stream has its lock as long as it is open.
    unsafe { ((member(stream, LOCK) + OWNER) as *mut u64).write_volatile(owner) };
}
