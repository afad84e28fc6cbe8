//! The kernel's own writes to a thread's memory: its area for restartable sequences, whose contents change whenever the thread gets
//! another processor.

use std::sync::OnceLock;

/// What the C library has registered the area with on x86.
const SIGNATURE: u32 = 0x5305_3053;

/// Lengths that it registers the area with, by its version.
const LENGTHS: [u32; 2] = [32, 64];

const UNREGISTER: i32 = 1;

/// Where the area is from the thread pointer on, if the C library registers one.
fn offset() -> Option<isize> {
    static OFFSET: OnceLock<Option<isize>> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        // SAFETY: the C library's constant, where it has one.
        unsafe {
            libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>().as_ref().copied()
        }
    })
}

/// Finds out what [`quietly`] will need. The first call takes memory and locks.
pub(crate) fn prepare() {
    offset();
}

/// Calls a function while the kernel writes nothing to the calling thread's area. `None` if it cannot be kept from that.
pub(crate) fn quietly<R>(call: impl FnOnce() -> R) -> Option<R> {
    let Some(offset) = offset() else { return Some(call()) };
    let pointer: *mut u8;
    // SAFETY: the first word of the thread's control block is its own address.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly)) };
    let area = pointer.wrapping_offset(offset);
    let tell = |length: u32, flags: i32| {
        // SAFETY: the area is the calling thread's own.
        unsafe { gondwana_sys::syscall!(libc::SYS_rseq, area, length, flags, SIGNATURE) == 0 }
    };
    let length = LENGTHS.into_iter().find(|&length| tell(length, UNREGISTER))?;
    let result = call();
    tell(length, 0);
    Some(result)
}
