//! Calls that say who the peer is. The kernel has taken the connection or the message when it writes the address.

use super::calls::length_at;
use super::channels::{opening, taking};
use super::descriptors::{MOST_THERE, Place, place};
use super::transfer::received;
use super::written::written;
use super::{Buffer, with_buffers};
use crate::accesses;
use crate::process::usage::neighbours;
use crate::process::{common, identity};
use crate::pthread::cancel::at_point_if;
use gondwana_sys::Argument;
use libc::{c_int, c_void, msghdr, pid_t, size_t, sockaddr, sockaddr_storage, socklen_t, ssize_t, ucred};
use std::cell::Cell;
use std::mem::zeroed;
use std::ptr::null_mut;

/// Bytes of the longest address.
const MOST: socklen_t = 128;
const _: () = assert!(MOST as usize == size_of::<sockaddr_storage>());

/// A socket's address.
#[derive(Clone, Copy)]
struct Peer {
    address: sockaddr_storage,
    size: socklen_t,
}

thread_local! {
    /// Where the kernel writes.
    // SAFETY: all-zero structures are valid.
    static PEER: Cell<Peer> = const { Cell::new(unsafe { zeroed() }) };
}

/// Makes a call that writes an address of at most `*size` bytes, and its size, to where it is told.
///
/// # Safety
/// `address` is null, or it and `size` are places for the results.
unsafe fn with_peer<R: super::Failing>(
    address: *mut sockaddr,
    size: *mut socklen_t,
    call: impl FnOnce(*mut sockaddr, *mut socklen_t) -> R,
) -> R {
    if address.is_null() {
        return call(null_mut(), null_mut());
    }
    // SAFETY: the caller's promise.
    let Some(most) = (unsafe { accesses::load(size) }) else {
        crate::errno::set(libc::EFAULT);
        return R::FAILED;
    };
    let (result, peer) = written(&PEER, |place| {
        // SAFETY: the place is this thread's own.
        unsafe {
            (*place).size = most.min(MOST);
            call((&raw mut (*place).address).cast(), &raw mut (*place).size)
        }
    });
    if !result.failed() {
        // SAFETY: the caller's promise; no more than there is room for is copied.
        let is_written = unsafe {
            let (from, length) =
                ((&raw const peer.address).cast::<u8>(), peer.size.min(most).min(MOST) as usize);
            accesses::copy(from, address.cast(), length) == length && accesses::store(&peer.size, size)
        };
        if !is_written {
            crate::errno::set(libc::EFAULT);
            return R::FAILED;
        }
    }
    result
}

/// The buffers of an address of at most `*size` bytes and its size.
///
/// # Safety
/// As for [`with_peer`].
unsafe fn of_peer(address: *mut sockaddr, size: *mut socklen_t) -> [Buffer; 2] {
    // SAFETY: the caller's promise.
    let most = if address.is_null() { 0 } else { unsafe { accesses::load(size) }.unwrap_or(0) };
    let size = if address.is_null() { null_mut() } else { size };
    [Buffer::write(address, most as usize), Buffer::result(size)]
}

/// # Safety
/// As the C library's `accept4`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    size: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let real = crate::real!(accept4: fn(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int);
    let call = || match place(&[fd], "accept4") {
        // SAFETY: the caller passes null or places for the results, and `with_peer` valid ones.
        Place::Here => unsafe { with_peer(address, size, |address, size| real(fd, address, size, flags)) },
        Place::There(there) => {
            let words = [fd.into(), address.word(), size.word(), flags.into()];
            // SAFETY: the caller passes null or places for the results.
            there.call("accept4", &words, &unsafe { of_peer(address, size) })
        }
        Place::Nowhere => -1,
    };
    opening(fd, || taking(fd, || at_point_if(true, call)))
}

/// # Safety
/// As the C library's `accept`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    size: *mut socklen_t,
) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe { accept4(fd, address, size, 0) }
}

/// # Safety
/// As the C library's `recvfrom`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    memory: *mut c_void,
    count: size_t,
    flags: c_int,
    address: *mut sockaddr,
    size: *mut socklen_t,
) -> ssize_t {
    let call = || match place(&[fd], "recvfrom") {
        // SAFETY: the caller passes null or places for the results, and `with_peer` valid ones.
        Place::Here => unsafe {
            with_peer(address, size, |address, size| received(fd, (memory, count), flags, (address, size)))
        },
        Place::There(there) => {
            // A message of a socket is no longer.
            let most = count.min(MOST_THERE - MOST as usize - size_of::<socklen_t>());
            let words = [fd.into(), memory.word(), most.word(), flags.into(), address.word(), size.word()];
            // SAFETY: the caller passes null or places for the results.
            let [address, size] = unsafe { of_peer(address, size) };
            there.call("recvfrom", &words, &[Buffer::write(memory, most), address, size])
        }
        Place::Nowhere => -1,
    };
    taking(fd, || at_point_if(true, call))
}

/// A process as the program knows it: each of the run's nodes is the program.
fn known_as(process: pid_t) -> pid_t {
    let is_ours = process == gondwana_sys::process()
        || common().is_some_and(|node| neighbours(node).contains(&process));
    if is_ours { identity::process() } else { process }
}

/// # Safety
/// As the C library's `getsockopt`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let buffers = [Buffer::result(length), Buffer::write(value, length_at(length))];
    let result = match place(&[fd], "getsockopt") {
        Place::Here => with_buffers(&buffers, || {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                crate::real!(getsockopt: fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int)(
                    fd, level, name, value, length,
                )
            }
        }),
        Place::There(there) => {
            let words = [fd.into(), level.into(), name.into(), value.word(), length.word()];
            there.call("getsockopt", &words, &buffers)
        }
        Place::Nowhere => -1,
    };
    if result == 0
        && (level, name) == (libc::SOL_SOCKET, libc::SO_PEERCRED)
        && length_at(length) >= size_of::<ucred>()
    {
        // SAFETY: the kernel has written so much.
        unsafe { rename(value.cast()) };
    }
    result
}

/// Has credentials name a process as the program knows it.
///
/// # Safety
/// They are there.
unsafe fn rename(credentials: *mut ucred) {
    // SAFETY: the caller's promise.
    unsafe {
        let told = credentials.read_unaligned();
        credentials.write_unaligned(ucred { pid: known_as(told.pid), ..told });
    }
}

/// The same for what came with a message.
///
/// # Safety
/// The kernel has filled the message in.
pub(super) unsafe fn rename_senders(message: *const msghdr) {
    // SAFETY: the caller's promise: each part is as long as it says.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = part.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) {
                rename(libc::CMSG_DATA(part).cast());
            }
            part = libc::CMSG_NXTHDR(message, part);
        }
    }
}
