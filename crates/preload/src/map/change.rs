//! Changes mappings: discards their contents, replaces and moves them.

use super::forbidden::Forbidden;
use super::pages::{read_file, share};
use super::protection::{allow_again, protect, restrict, restricted, result};
use super::{failed, release};
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node};
use libc::{c_int, c_void, off_t, size_t};
use std::arch::naked_asm;
use std::ops::Range;

/// The pages of a range in shared memory; `None` if it does not begin or end there, or not at a page.
fn shared_pages(node: &Node, address: usize, length: usize) -> Option<Range<usize>> {
    let end = address.checked_add(length)?.checked_next_multiple_of(PAGE_SIZE)?;
    let whole = address.is_multiple_of(PAGE_SIZE) && address < end;
    (whole && node.is_shared(address) && node.is_shared(end - 1)).then_some(address..end)
}

/// `MADV_DONTNEED` for shared memory: it reads as zero afterwards. Protection stays.
fn discard(node: &'static Node, pages: Range<usize>) -> c_int {
    let parts = restricted(&pages);
    let error = allow_again(node, &pages);
    if error != 0 {
        return error;
    }
    // SAFETY: the program gave the pages up, and may use them now.
    unsafe { node.discard(pages) };
    parts.into_iter().map(|part| protect(node, part)).find(|&error| error != 0).unwrap_or(0)
}

/// # Safety
/// As the C library's `madvise`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn madvise(address: *mut c_void, length: size_t, advice: c_int) -> c_int {
    // All other advice leaves the contents of shared memory, which to the kernel is a file mapping, as they are.
    if advice == libc::MADV_DONTNEED
        && let Some(node) = Node::current()
        && let Some(pages) = shared_pages(node, address as usize, length)
    {
        return result(discard(node, pages));
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { crate::real!(madvise: fn(*mut c_void, size_t, c_int) -> c_int)(address, length, advice) }
}

/// A mapping at a fixed address inside shared memory: the contents are replaced by zeros or by a copy of the file.
pub(super) fn replace(
    node: &'static Node,
    address: usize,
    length: usize,
    protection: c_int,
    file: Option<(c_int, off_t)>,
) -> *mut c_void {
    let Some(pages) = shared_pages(node, address, length) else {
        return failed(libc::EINVAL);
    };
    let mut error = allow_again(node, &pages);
    if error == 0 {
        // SAFETY: the program wants something else in place of these pages.
        unsafe { node.discard(pages.clone()) };
        error = match file {
            Some((fd, offset)) => match read_file(node, address, length, fd, offset) {
                0 if protection & libc::PROT_EXEC != 0 => restrict(node, pages, protection),
                error => error,
            },
            None => restrict(node, pages, protection),
        };
    }
    if error == 0 {
        return address as *mut c_void;
    }
    failed(error)
}

/// # Safety
/// As the C library's `mremap`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn mremap() {
    // The last argument register is free: it gets the address of the return address.
    naked_asm!("mov r9, rsp", "jmp {}", sym remap)
}

unsafe extern "C" fn remap(
    old: *mut c_void,
    old_length: size_t,
    new_length: size_t,
    flags: c_int,
    new: *mut c_void,
    slot: *const usize,
) -> *mut c_void {
    if let Some(node) = Node::current()
        && node.mapped_files().node_of(old as usize).is_some()
    {
        return super::files::resize(node, old as usize, old_length, new_length, flags)
            .unwrap_or_else(failed);
    }
    let Some(node) = Node::current().filter(|node| node.is_shared(old as usize)) else {
        // SAFETY: forwards the caller's arguments; an address that is not asked for is not looked at.
        return unsafe { super::kernel::mremap(old, old_length, new_length, flags, new) };
    };
    // SAFETY: the exported function passes the place of its return address.
    let caller = unsafe { Caller::at(slot) };
    resize(node, old as usize, old_length, new_length, flags, caller).unwrap_or_else(failed)
}

/// Mappings shrink where they are, and grow elsewhere.
fn resize(
    node: &'static Node,
    old: usize,
    old_length: usize,
    new_length: usize,
    flags: c_int,
    caller: Caller,
) -> Result<*mut c_void, c_int> {
    if flags & !libc::MREMAP_MAYMOVE != 0 {
        node.refuse("mremap() of shared memory to an address of the program's choice");
        return Err(libc::EINVAL);
    }
    let pages = shared_pages(node, old, old_length).ok_or(libc::EINVAL)?;
    let length = new_length.checked_next_multiple_of(PAGE_SIZE).filter(|&new| new > 0).ok_or(libc::EINVAL)?;
    if length <= pages.len() {
        if length < pages.len() {
            release(node, pages.start + length..pages.end);
        }
        return Ok(old as *mut c_void);
    }
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return Err(libc::ENOMEM);
    }
    let parts = restricted(&pages);
    let new = share(node, length, caller);
    if new == libc::MAP_FAILED {
        return Err(libc::ENOMEM);
    }
    allow_again(node, &pages);
    // SAFETY: both are mappings of the program, so long at least, and the new one is nobody else's yet.
    unsafe { node.copy_to_zeros(pages.clone(), new as usize) };
    release(node, pages);
    for part in parts {
        let moved = |address: usize| address - old + new as usize;
        protect(node, Forbidden { start: moved(part.start), end: moved(part.end), ..part });
    }
    Ok(new)
}
