//! Mappings as the kernel makes them. The next functions of these names need not be the C library's: tcmalloc has some, which use
//! memory of its own.

use gondwana_sys::syscall;
use libc::{c_int, c_void, off_t, size_t};

/// # Safety
/// As the system call.
pub(crate) unsafe fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { syscall!(libc::SYS_mmap, address, length, protection, flags, fd, offset) as *mut c_void }
}

/// New memory: at an address if nothing is there, anywhere for 0.
pub(crate) fn map_anonymous(address: usize, length: usize, protection: c_int) -> Option<usize> {
    let place = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | place;
    // SAFETY: maps nothing over what is there.
    let mapped = unsafe { mmap(address as *mut c_void, length, protection, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some(mapped as usize)
}

/// # Safety
/// As the system call.
pub(crate) unsafe fn munmap(address: *mut c_void, length: size_t) -> c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { syscall!(libc::SYS_munmap, address, length) };
    if result == 0 { 0 } else { -1 }
}

/// # Safety
/// As the system call.
pub(crate) unsafe fn mremap(
    old: *mut c_void,
    old_length: size_t,
    new_length: size_t,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { syscall!(libc::SYS_mremap, old, old_length, new_length, flags, new) as *mut c_void }
}
