//! Anonymous mappings of the program: shared like its heap.

use crate::handler_stack::uninterrupted;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node, ProcessChange};
use libc::{c_int, c_void, off_t, size_t};
use std::arch::naked_asm;
use std::sync::Mutex;

/// What the program may not do with parts of shared memory, because it asked for that or because a mapped file
/// ends before them.
static FORBIDDEN: Mutex<Vec<Forbidden>> = Mutex::new(Vec::new());

fn with_forbidden<R>(call: impl FnOnce(&mut Vec<Forbidden>) -> R) -> R {
    uninterrupted(|| call(&mut FORBIDDEN.lock().expect("not poisoned")))
}

#[derive(Clone, Copy)]
struct Forbidden {
    start: usize,
    end: usize,
    beyond_file: bool,
}

/// True for an address of a mapping that lies beyond the mapped file.
pub fn is_beyond_file(address: usize) -> bool {
    with_forbidden(|forbidden| {
        forbidden.iter().any(|part| part.beyond_file && (part.start..part.end).contains(&address))
    })
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
    let readable = protection & libc::PROT_READ != 0 && protection & libc::PROT_EXEC == 0;
    let movable = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == 0;
    if let Some(node) = Node::current()
        && length > 0
        && readable
        && movable
    {
        if flags & libc::MAP_ANONYMOUS != 0 {
            return share(node, length, caller);
        }
        if flags & libc::MAP_PRIVATE != 0 || protection & libc::PROT_WRITE == 0 {
            return copy_file(node, length, fd, offset, caller);
        }
        node.refuse("a writable shared mapping of a file: its pages stay on the node that maps it");
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
    let mut done = 0;
    while done < length {
        // SAFETY: the mapping is `length` bytes long; `pread` here is the one that makes pages present first.
        let got = unsafe {
            crate::io::pread(fd, address.byte_add(done), (length - done).min(1 << 20), offset + done as off_t)
        };
        match got {
            0 => break,
            1.. => done += got as usize,
            _ => {
                node.unmap_pages(address as usize, length);
                return libc::MAP_FAILED;
            }
        }
    }
    let held = done.next_multiple_of(PAGE_SIZE);
    if held < length {
        protect(node, address as usize + held, length - held, libc::PROT_NONE, true);
    }
    address
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
        allow_again(node, address as usize, length);
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
    let done = node.map_or(Ok(false), |node| node.protect_pages(pages, protection));
    match done {
        Ok(true) => {}
        Ok(false) if real_protect(address, length, protection) == 0 => {}
        Ok(false) => return crate::errno::get(),
        Err(error) => return error,
    }
    let end = address + length.next_multiple_of(PAGE_SIZE);
    with_forbidden(|forbidden| {
        if protection == ALL {
            forbidden.retain(|part| part.end <= address || part.start >= end);
        } else {
            forbidden.push(Forbidden { start: address, end, beyond_file });
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
fn protect(
    node: &'static Node,
    address: usize,
    length: size_t,
    protection: c_int,
    beyond_file: bool,
) -> c_int {
    let error = protect_here(address, length, protection, beyond_file);
    if error != 0 {
        return error;
    }
    let change =
        ProcessChange::Protect { address: address as u64, length: length as u64, protection, beyond_file };
    node.change_elsewhere(change).err().unwrap_or(0)
}

/// Memory that is given back may be used for anything.
fn allow_again(node: &'static Node, address: usize, length: size_t) {
    let end = address + length;
    let any = |part: &Forbidden| part.start < end && address < part.end;
    if with_forbidden(|forbidden| forbidden.iter().any(any)) {
        protect(node, address, length, ALL, false);
    }
}

/// # Safety
/// As the C library's `mprotect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    let address = address as usize;
    let Some(node) = Node::current().filter(|node| length > 0 && node.is_shared(address)) else {
        return real_protect(address, length, protection);
    };
    match protect(node, address, length, protection, false) {
        0 => 0,
        error => {
            crate::errno::set(error);
            -1
        }
    }
}
