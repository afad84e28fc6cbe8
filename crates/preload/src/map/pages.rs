//! Shared pages for mappings, and their contents from files.

use super::failed;
use super::forbidden::Forbidden;
use super::protection::protect;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node};
use libc::{c_int, c_void, off_t, size_t};

/// Pages of shared memory for a mapping; `MAP_FAILED` if there are none.
pub(super) fn share(node: &'static Node, length: size_t, caller: Caller) -> *mut c_void {
    node.map_pages(length, caller).map_or_else(
        || failed(libc::ENOMEM),
        |address| {
            node.note_allocation(address, length, caller, true);
            address as *mut c_void
        },
    )
}

/// Fills a new mapping from a file, and forbids accesses beyond the file's end; 0 or an error number.
pub(super) fn read_file(
    node: &'static Node,
    address: usize,
    length: size_t,
    fd: c_int,
    offset: off_t,
) -> c_int {
    let mut done = 0;
    while done < length {
        // SAFETY: the mapping is `length` bytes long; `pread` here is the one that makes pages present first.
        let got = unsafe {
            crate::io::pread(
                fd,
                (address + done) as *mut c_void,
                (length - done).min(1 << 20),
                offset + done.cast_signed() as off_t,
            )
        };
        match got {
            0 => break,
            1.. => done += got.cast_unsigned(),
            _ => return unmappable(fd, crate::errno::get()),
        }
    }
    let start = address + done.next_multiple_of(PAGE_SIZE);
    let end = address + length.next_multiple_of(PAGE_SIZE);
    if start == end {
        return 0;
    }
    protect(node, Forbidden { start, end, protection: libc::PROT_NONE, beyond_file: true })
}

/// What `mmap` gives for a file that cannot be read, for which `pread` gave this error number.
fn unmappable(fd: c_int, error: c_int) -> c_int {
    // SAFETY: touches no memory.
    let is_open = || unsafe { libc::fcntl(fd, libc::F_GETFL) } >= 0;
    match error {
        libc::EBADF if is_open() => libc::EACCES,
        libc::EISDIR | libc::ESPIPE => libc::ENODEV,
        _ => error,
    }
}
