//! Anonymous mappings of the program: shared like its heap.

use crate::handler_stack::uninterrupted;
use forbidden::{Forbidden, Parts};
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node, ProcessChange};
use libc::{c_int, c_void, off_t, size_t};
use std::arch::naked_asm;
use std::ops::Range;
use std::sync::Mutex;

mod change;
mod forbidden;

/// What the program may not do with parts of shared memory.
static FORBIDDEN: Mutex<Parts> = Mutex::new(Parts::new());

fn with_forbidden<R>(call: impl FnOnce(&mut Parts) -> R) -> R {
    uninterrupted(|| call(&mut FORBIDDEN.lock().expect("not poisoned")))
}

/// What the program may not do with parts of a range.
fn restricted(range: &Range<usize>) -> Vec<Forbidden> {
    with_forbidden(|parts| parts.within(range))
}

/// True for an address of a mapping that lies beyond the mapped file.
pub fn is_beyond_file(address: usize) -> bool {
    restricted(&(address..address + 1)).iter().any(|part| part.beyond_file)
}

type Mmap = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;

#[allow(clippy::too_many_arguments, reason = "those of mmap")]
fn map(
    real: Mmap,
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
    caller: Caller,
) -> *mut c_void {
    let anonymous = flags & libc::MAP_ANONYMOUS != 0;
    let readable = protection & libc::PROT_READ != 0;
    let copied = readable && (flags & libc::MAP_PRIVATE != 0 || protection & libc::PROT_WRITE == 0);
    // Code stays with the node that maps it.
    if let Some(node) = Node::current()
        && length > 0
        && protection & libc::PROT_EXEC == 0
    {
        if flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == 0 {
            if anonymous {
                return share_restricted(node, length, protection, caller);
            }
            if copied {
                return copy_file(node, length, fd, offset, caller);
            }
        } else if node.is_shared(address as usize) && (anonymous || copied) {
            if flags & libc::MAP_FIXED_NOREPLACE != 0 {
                crate::errno::set(libc::EEXIST);
                return libc::MAP_FAILED;
            }
            return change::replace(
                node,
                address as usize,
                length,
                protection,
                (!anonymous).then_some((fd, offset)),
            );
        }
        if !anonymous && readable {
            node.refuse("a writable shared mapping of a file: its pages stay on the node that maps it");
        }
    }
    if flags & libc::MAP_ANONYMOUS == 0 && !crate::io::descriptors::is_here(fd, "mmap") {
        return libc::MAP_FAILED;
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { real(address, length, protection, flags, fd, offset) }
}

fn share(node: &'static Node, length: size_t, caller: Caller) -> *mut c_void {
    node.map_pages(length, caller).map_or_else(
        || {
            crate::errno::set(libc::ENOMEM);
            libc::MAP_FAILED
        },
        |address| {
            node.note_allocation(address, length, caller, true);
            address as *mut c_void
        },
    )
}

/// Anonymous memory of which the program allows itself only so much: often none, until it needs it.
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
            crate::errno::set(error);
            libc::MAP_FAILED
        }
    }
}

/// Forbids what a new mapping does not allow; 0 or an error number.
fn restrict(node: &'static Node, pages: Range<usize>, protection: c_int) -> c_int {
    if protection & libc::PROT_WRITE != 0 {
        return 0;
    }
    protect(node, Forbidden { start: pages.start, end: pages.end, protection, beyond_file: false })
}

/// A private or read-only mapping of a file is a copy of it that every node can read.
fn copy_file(node: &'static Node, length: size_t, fd: c_int, offset: off_t, caller: Caller) -> *mut c_void {
    if offset % PAGE_SIZE as off_t != 0 {
        crate::errno::set(libc::EINVAL);
        return libc::MAP_FAILED;
    }
    let address = share(node, length, caller);
    if address == libc::MAP_FAILED {
        return address;
    }
    match read_file(node, address as usize, length, fd, offset) {
        0 => address,
        error => {
            node.unmap_pages(address as usize, length);
            crate::errno::set(error);
            libc::MAP_FAILED
        }
    }
}

/// Fills a new mapping from a file. What lies beyond the file's end is nobody's; 0 or an error number.
fn read_file(node: &'static Node, address: usize, length: size_t, fd: c_int, offset: off_t) -> c_int {
    let mut done = 0;
    while done < length {
        // SAFETY: the mapping is `length` bytes long; `pread` here is the one that makes pages present first.
        let got = unsafe {
            crate::io::pread(
                fd,
                (address + done) as *mut c_void,
                (length - done).min(1 << 20),
                offset + done as off_t,
            )
        };
        match got {
            0 => break,
            1.. => done += got as usize,
            _ => return crate::errno::get(),
        }
    }
    let start = address + done.next_multiple_of(PAGE_SIZE);
    let end = address + length.next_multiple_of(PAGE_SIZE);
    if start == end {
        return 0;
    }
    protect(node, Forbidden { start, end, protection: libc::PROT_NONE, beyond_file: true })
}

macro_rules! mapping {
    ($($name:ident => $with_caller:ident;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            // All registers for arguments are in use: the place of the return address goes on the stack as one more.
            naked_asm!(
                ".cfi_startproc",
                "push rsp",
                ".cfi_adjust_cfa_offset 8",
                "call {}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
                sym $with_caller,
            )
        }

        unsafe extern "C" fn $with_caller(
            address: *mut c_void,
            length: size_t,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: off_t,
            slot: *const usize,
        ) -> *mut c_void {
            let real =
                crate::real!($name: fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void);
            // SAFETY: the exported function passes the place of its return address, and waits.
            let caller = unsafe { Caller::at(slot) };
            map(real, address, length, protection, flags, fd, offset, caller)
        }
    )*};
}

mapping! {
    mmap => map_for;
    mmap64 => map64_for;
}

/// # Safety
/// As the C library's `munmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    if let Some(node) = Node::current()
        && node.is_shared(address as usize)
    {
        if !(address as usize).is_multiple_of(PAGE_SIZE) || length == 0 {
            crate::errno::set(libc::EINVAL);
            return -1;
        }
        let end = address as usize + length.next_multiple_of(PAGE_SIZE);
        allow_again(node, &(address as usize..end));
        node.unmap_pages(address as usize, length);
        return 0;
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { crate::real!(munmap: fn(*mut c_void, size_t) -> c_int)(address, length) }
}

fn real_protect(address: usize, length: size_t, protection: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        crate::real!(mprotect: fn(*mut c_void, size_t, c_int) -> c_int)(
            address as *mut c_void,
            length,
            protection,
        )
    }
}

/// Protects shared memory in this process; 0 or an error number.
pub fn protect_here(address: usize, length: size_t, protection: c_int, beyond_file: bool) -> c_int {
    let pages = address..address + length.next_multiple_of(PAGE_SIZE);
    // What is not a whole number of pages the kernel refuses.
    let node = Node::current().filter(|_| address.is_multiple_of(PAGE_SIZE));
    let done = node.map_or(Ok(false), |node| node.protect_pages(pages.clone(), protection));
    match done {
        Ok(true) => {}
        Ok(false) if real_protect(address, length, protection) == 0 => {}
        Ok(false) => return crate::errno::get(),
        Err(error) => return error,
    }
    with_forbidden(|parts| {
        if protection & ALL == ALL {
            parts.allow(&pages);
        } else {
            parts.forbid(Forbidden { start: pages.start, end: pages.end, protection, beyond_file });
        }
    });
    0
}

/// Forbids this process's threads all access to a part of shared memory.
pub fn forbid_here(address: usize, length: size_t) {
    protect_here(address, length, libc::PROT_NONE, false);
}

/// Undoes [`forbid_here`].
pub fn allow_here(address: usize, length: size_t) {
    protect_here(address, length, ALL, false);
}

/// What the program may do with its memory unless it asks otherwise.
const ALL: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// Protects shared memory on all nodes; 0 or an error number.
fn protect(node: &'static Node, part: Forbidden) -> c_int {
    let Forbidden { start, end, protection, beyond_file } = part;
    let (address, length) = (start as u64, (end - start) as u64);
    match protect_here(start, end - start, protection, beyond_file) {
        0 => node
            .change_elsewhere(ProcessChange::Protect { address, length, protection, beyond_file })
            .err()
            .unwrap_or(0),
        error => error,
    }
}

/// Memory that is given back, or up, may be used for anything; 0 or an error number.
fn allow_again(node: &'static Node, pages: &Range<usize>) -> c_int {
    if restricted(pages).is_empty() {
        return 0;
    }
    protect(node, Forbidden { start: pages.start, end: pages.end, protection: ALL, beyond_file: false })
}

/// What a system call returns for an error number or 0.
fn result(error: c_int) -> c_int {
    if error == 0 {
        return 0;
    }
    crate::errno::set(error);
    -1
}

/// # Safety
/// As the C library's `mprotect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    let address = address as usize;
    let Some(node) = Node::current().filter(|node| length > 0 && node.is_shared(address)) else {
        return real_protect(address, length, protection);
    };
    result(protect(node, Forbidden { start: address, end: address + length, protection, beyond_file: false }))
}
