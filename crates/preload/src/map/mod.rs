//! Mappings of the program: anonymous ones and copies of files are shared like its heap, shared mappings of files are [those files](files).

use crate::io::descriptors::{Place, place};
use forbidden::Forbidden;
use gondwana_memory::{LOW, PAGE_SIZE};
use gondwana_node::{Caller, Node};
use gondwana_sys::Argument;
use libc::{c_int, c_void, off_t, size_t};
use pages::{read_file, share};
use protection::{protect, real_protect, restrict, result};
use std::arch::naked_asm;
use std::ops::Range;

mod change;
mod file_copy;
mod files;
mod forbidden;
pub(crate) mod kernel;
pub(crate) mod locking;
pub(crate) mod low;
mod pages;
pub(crate) mod program_break;
mod protection;
pub(crate) mod protection_keys;
mod segments;

pub(crate) use file_copy::FileCopy;
pub(crate) use files::{change_file_here, map_everywhere, tell_of_copies};
pub(crate) use protection::{allow_again, allow_here, forbid_here, is_beyond_file, protect_here};

/// How many addresses a process has on x86-64 with page tables of four levels.
const ADDRESSES: usize = 1 << 47;

/// `mmap` and `mmap64`, called from `slot`, the place of their return address.
unsafe extern "C" fn map(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
    slot: *const usize,
) -> *mut c_void {
    // SAFETY: the exported functions pass the place of their return address, and wait.
    let caller = unsafe { Caller::at(slot) };
    let file_kind = match Node::current() {
        Some(_) if flags & libc::MAP_ANONYMOUS == 0 && files::is_shared(flags) => {
            match place(&[fd], "mmap") {
                Place::Here => files::kind(fd),
                Place::There(there) if files::is_read_only_there(there, fd, protection) => files::Kind::Other,
                Place::There(there) => {
                    let words = [
                        address.word(),
                        length.word(),
                        protection.word(),
                        flags.word(),
                        fd.word(),
                        offset.word(),
                    ];
                    let mapped: i64 = there.call("mmap", &words, &[]);
                    return mapped as *mut c_void;
                }
                Place::Nowhere => return libc::MAP_FAILED,
            }
        }
        _ => files::Kind::Other,
    };
    let anonymous = flags & libc::MAP_ANONYMOUS != 0 || file_kind == files::Kind::Zeros;
    let is_fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    if let Some(node) = Node::current() {
        if let Some(error) = wrong_argument(address as usize, length, flags, is_fixed) {
            return failed(error);
        }
        if flags & libc::MAP_ANONYMOUS != 0
            && files::is_shared(flags)
            && !is_fixed
            && let Some(mapped) = files::map_nameless(node, length, protection, flags)
        {
            return mapped;
        }
        let among_files = is_fixed && node.mapped_files().node_of(address as usize).is_some();
        if file_kind == files::Kind::Regular
            && files::is_ours(node, protection, fd)
            && (among_files || !is_fixed)
        {
            return files::map(node, address as usize, length, protection, flags, fd, offset);
        }
        if file_kind == files::Kind::Regular && files::is_of_generated_code(node, protection, fd) {
            return failed(libc::EPERM);
        }
        let writable = file_kind == files::Kind::Regular && protection & libc::PROT_WRITE != 0;
        if among_files || writable && is_fixed && node.is_shared(address as usize) {
            node.refuse(if among_files {
                "mmap() of other memory in place of a part of a shared mapping of a file"
            } else {
                "mmap() of a file, shared and writable, in place of a part of other memory"
            });
            return failed(libc::ENODEV);
        }
    }
    let readable = protection & libc::PROT_READ != 0;
    let copied = readable && (flags & libc::MAP_PRIVATE != 0 || protection & libc::PROT_WRITE == 0);
    let is_shared = |node: &Node| node.is_shared(address as usize);
    let mut stays = false;
    // The code of files is the same on all nodes only if each maps them: those mappings stay node-local, unless they take the place of
    // shared memory.
    if let Some(node) = Node::current()
        && (anonymous || protection & libc::PROT_EXEC == 0 || is_fixed && is_shared(node))
    {
        let file = (!anonymous).then_some((fd, offset));
        if !is_fixed {
            if (anonymous || copied)
                && let Some(mapped) = map_low(node, address as usize, length, protection, flags, file)
            {
                return mapped;
            }
            if anonymous {
                return share_restricted(node, length, protection, caller);
            }
            if copied {
                return copy_file(node, length, fd, offset, caller);
            }
        } else if is_shared(node) && (anonymous || copied) {
            let is_new = flags & libc::MAP_FIXED_NOREPLACE != 0;
            let bytes = address as usize..(address as usize).saturating_add(length);
            if !low::take_at(node, &bytes, is_new) && is_new {
                return failed(libc::EEXIST);
            }
            return change::replace(node, address as usize, length, protection, file);
        }
        stays = !anonymous && readable;
    }
    if flags & libc::MAP_ANONYMOUS == 0 && !crate::io::descriptors::is_here(fd, "mmap") {
        return libc::MAP_FAILED;
    }
    // SAFETY: forwards the caller's arguments.
    let mapped = unsafe { kernel::mmap(address, length, protection, flags, fd, offset) };
    if let Some(node) = Node::current().filter(|_| stays && mapped != libc::MAP_FAILED) {
        node.refuse("a writable shared mapping of a device, or at an address of the program's choice: its pages stay on the node that maps it");
    }
    mapped
}

/// What the kernel says of arguments that no mapping can have; the C library's `mmap` looks at nothing.
fn wrong_argument(address: usize, length: size_t, flags: c_int, is_fixed: bool) -> Option<c_int> {
    let has_kind = files::is_shared(flags) || flags & libc::MAP_TYPE == libc::MAP_PRIVATE;
    let wrong = length == 0 || !has_kind || is_fixed && !address.is_multiple_of(PAGE_SIZE);
    if wrong {
        return Some(libc::EINVAL);
    }
    (length > ADDRESSES).then_some(libc::ENOMEM)
}

/// What a function that makes a mapping gives if it cannot.
fn failed(error: c_int) -> *mut c_void {
    crate::errno::set(error);
    libc::MAP_FAILED
}

/// A mapping at low addresses, if the program wants that; `None` if it does not, or does without.
fn map_low(
    node: &'static Node,
    wanted: usize,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: Option<(c_int, off_t)>,
) -> Option<*mut c_void> {
    let must = flags & libc::MAP_32BIT != 0;
    if !must && !node.is_low(wanted) {
        return None;
    }
    if let Some(place) = low::take(node, wanted, length) {
        return Some(change::replace(node, place, length, protection, file));
    }
    if must && !node.is_low(LOW.start) {
        node.refuse(
            "mmap() of addresses of 32 bits: the program lies there, so that nodes do not share them",
        );
    }
    must.then(|| failed(libc::ENOMEM))
}

/// Anonymous memory with restricted protection, often PROT_NONE at first.
fn share_restricted(node: &'static Node, length: size_t, protection: c_int, caller: Caller) -> *mut c_void {
    let address = share(node, length, caller);
    if address == libc::MAP_FAILED {
        return address;
    }
    let pages = address as usize..address as usize + length.next_multiple_of(PAGE_SIZE);
    match restrict(node, pages.clone(), protection) {
        0 => address,
        error => {
            node.unmap_pages(pages.start, pages.len());
            failed(error)
        }
    }
}

/// A private or read-only mapping of a file becomes a shared copy of it.
fn copy_file(node: &'static Node, length: size_t, fd: c_int, offset: off_t, caller: Caller) -> *mut c_void {
    if !offset.cast_unsigned().is_multiple_of(PAGE_SIZE as u64) {
        return failed(libc::EINVAL);
    }
    let address = share(node, length, caller);
    if address == libc::MAP_FAILED {
        return address;
    }
    match read_file(node, address as usize, length, fd, offset) {
        0 => address,
        error => {
            node.unmap_pages(address as usize, length);
            failed(error)
        }
    }
}

/// The program gives whole pages of shared memory up.
fn release(node: &'static Node, pages: Range<usize>) {
    allow_again(node, &pages);
    if node.is_low(pages.start) {
        // SAFETY: the program gives them up.
        unsafe { node.discard(pages.clone()) };
        low::give_back(node, &pages);
    } else {
        node.unmap_pages(pages.start, pages.len());
    }
}

macro_rules! mapping {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            // All argument registers are in use: the address of the return address is passed on the stack.
            naked_asm!(
                ".cfi_startproc",
                "push rsp",
                ".cfi_adjust_cfa_offset 8",
                "call {}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                sym map,
            )
        }
    )*};
}

mapping! { mmap mmap64 }

/// # Safety
/// As the C library's `munmap`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    if let Some(node) = Node::current()
        && node.is_shared(address as usize)
    {
        if !(address as usize).is_multiple_of(PAGE_SIZE) || length == 0 {
            crate::errno::set(libc::EINVAL);
            return -1;
        }
        release(node, address as usize..address as usize + length.next_multiple_of(PAGE_SIZE));
        return 0;
    }
    if let Some(node) = Node::current()
        && node.mapped_files().node_of(address as usize).is_some()
    {
        return result(files::unmap(node, address as usize, length));
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { kernel::munmap(address, length) }
}

/// # Safety
/// As the C library's `mprotect`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    let address = address as usize;
    if let Some(node) = Node::current().filter(|_| length > 0)
        && node.mapped_files().node_of(address).is_some()
    {
        return result(files::protect(node, address, length, protection));
    }
    let Some(node) = Node::current().filter(|node| length > 0 && node.is_shared(address)) else {
        let error = real_protect(address, length, protection);
        if error == 0 && protection & libc::PROT_WRITE != 0 {
            protection::says_where_code_changes(address);
        }
        return error;
    };
    result(protect(node, Forbidden { start: address, end: address + length, protection, beyond_file: false }))
}
