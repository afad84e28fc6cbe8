//! System V shared memory: attached on all nodes, as [shared mappings of files](super::files) are.

use super::failed;
use super::files::{change, error_of, map_elsewhere};
use super::protection::result;
use crate::private_stack::uninterrupted;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{FileMapping, MappedFiles, Node};
use libc::{c_int, c_void, shmid_ds, size_t};
use std::ops::Range;

/// Bytes of a segment, in whole pages. `None` if it cannot be had.
fn bytes_of(segment: c_int) -> Option<size_t> {
    let bytes = uninterrupted(|| {
        // SAFETY: zero is a valid value, and the kernel fills it in on a private stack.
        unsafe {
            let mut about: shmid_ds = std::mem::zeroed();
            let done = gondwana_sys::syscall!(libc::SYS_shmctl, segment, libc::IPC_STAT, &raw mut about);
            (done == 0).then_some(about.shm_segsz)
        }
    })?;
    bytes.checked_next_multiple_of(PAGE_SIZE)
}

/// Attaches a segment in this process; 0 or an error number.
pub(super) fn attach_here(
    files: &MappedFiles,
    segment: c_int,
    addresses: Range<usize>,
    flags: c_int,
) -> c_int {
    // SAFETY: nothing else is at these addresses.
    let attached = unsafe { gondwana_sys::syscall!(libc::SYS_shmat, segment, addresses.start, flags) };
    let write = if flags & libc::SHM_RDONLY == 0 { libc::PROT_WRITE } else { 0 };
    error_of(attached, || uninterrupted(|| files.set(addresses, libc::PROT_READ | write)))
}

/// Detaches the segment at an address in this process; 0 or an error number.
pub(super) fn detach_here(files: &MappedFiles, address: usize) -> c_int {
    // SAFETY: the program gives the memory up.
    let detached = unsafe { gondwana_sys::syscall!(libc::SYS_shmdt, address) };
    error_of(detached, || uninterrupted(|| files.remove(&files.extent(address))))
}

/// # Safety
/// As the C library's `shmat`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn shmat(segment: c_int, wanted: *const c_void, flags: c_int) -> *mut c_void {
    let node = Node::current().filter(|_| wanted.is_null() && flags & libc::SHM_EXEC == 0);
    let Some((node, bytes)) = node.and_then(|node| bytes_of(segment).map(|bytes| (node, bytes))) else {
        if let Some(node) = Node::current().filter(|_| !wanted.is_null()) {
            node.refuse("shmat() at an address of the program's choice: the memory stays on the node that attaches it");
        }
        // SAFETY: forwards the caller's arguments.
        return unsafe {
            crate::real!(shmat: fn(c_int, *const c_void, c_int) -> *mut c_void)(segment, wanted, flags)
        };
    };
    let files = node.mapped_files();
    let Some(address) = uninterrupted(|| files.take(bytes)) else { return failed(libc::ENOMEM) };
    let error = attach_here(files, segment, address..address + bytes, flags);
    if error != 0 {
        uninterrupted(|| files.remove(&(address..address + bytes)));
        return failed(error);
    }
    let (at, length) = (address as u64, bytes as u64);
    let attach = FileMapping::Attach { segment, address: at, length, flags };
    map_elsewhere(node, address..address + bytes, attach, "shmat(): another node cannot attach the segment")
}

/// # Safety
/// As the C library's `shmdt`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn shmdt(address: *const c_void) -> c_int {
    let at = address as usize;
    match Node::current().filter(|node| node.mapped_files().node_of(at).is_some()) {
        Some(node) => result(change(node, at, FileMapping::Detach { address: at as u64 })),
        // SAFETY: forwards the caller's argument.
        None => unsafe { crate::real!(shmdt: fn(*const c_void) -> c_int)(address) },
    }
}
