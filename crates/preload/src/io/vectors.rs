//! System calls that take their buffers in a vector.

use super::channels::{giving, taking};
use super::descriptors::{Place, place};
use super::messages_elsewhere;
use super::peers::rename_senders;
use super::{Buffer, with_buffers};
use crate::accesses;
use crate::pthread::cancel::at_point_if;
use crate::pthread::cancellation_points::is_point;
use gondwana_sys::Argument;
use libc::{c_int, c_uint, iovec, mmsghdr, msghdr, ssize_t, timespec};

/// Adds the buffers of a vector, and the vector itself.
fn add(buffers: &mut Vec<Buffer>, vector: *const iovec, count: usize, filled: bool) {
    buffers.push(Buffer::read(vector, count * size_of::<iovec>()));
    for index in 0..count {
        // SAFETY: the caller of the wrapped function promises `count` elements.
        let Some(piece) = (unsafe { accesses::load(vector.wrapping_add(index)) }) else { return };
        buffers.push(if filled {
            Buffer::write(piece.iov_base, piece.iov_len)
        } else {
            Buffer::read(piece.iov_base, piece.iov_len)
        });
    }
}

pub(super) fn of_message(message: *const msghdr, filled: bool) -> Vec<Buffer> {
    let mut buffers = vec![Buffer::write(message.cast_mut(), size_of::<msghdr>())];
    add_contents(&mut buffers, message, filled);
    buffers
}

/// Adds what a message header points to.
fn add_contents(buffers: &mut Vec<Buffer>, message: *const msghdr, filled: bool) {
    // SAFETY: the caller of the wrapped function promises a message header.
    if let Some(header) = unsafe { accesses::load(message) } {
        add(buffers, header.msg_iov, header.msg_iovlen, filled);
        buffers.push(Buffer::write(header.msg_name, header.msg_namelen as usize));
        buffers.push(Buffer::write(header.msg_control, header.msg_controllen));
    }
}

/// The messages of a batch, whose lengths the kernel fills in, and one more buffer.
fn of_messages(messages: *mut mmsghdr, count: c_uint, filled: bool, more: Buffer) -> Vec<Buffer> {
    let mut buffers = vec![Buffer::write(messages, count as usize * size_of::<mmsghdr>()), more];
    for index in 0..count as usize {
        // The headers are in the batch.
        add_contents(&mut buffers, header(messages, index), filled);
    }
    buffers
}

/// The memory of `vmsplice`, which a pipe may reference.
fn of_vector(vector: *const iovec, count: usize) -> Vec<Buffer> {
    let mut buffers = vec![];
    add(&mut buffers, vector, count, false);
    buffers
}

/// The header of a message, which is at its beginning.
fn header(messages: *mut mmsghdr, index: usize) -> *const msghdr {
    const { assert!(std::mem::offset_of!(mmsghdr, msg_hdr) == 0) }
    messages.wrapping_add(index).cast()
}

fn headers(messages: *mut mmsghdr, count: c_uint) -> Vec<*const msghdr> {
    (0..count as usize).map(|index| header(messages, index)).collect()
}

/// A socket, and the descriptors that messages pass through it.
fn with_passed(socket: c_int, messages: &[*const msghdr]) -> Vec<c_int> {
    let mut all = vec![socket];
    for &message in messages {
        // SAFETY: the caller of the wrapped function promises messages.
        let header = unsafe { accesses::load(message) };
        if !header.is_some_and(|header| accesses::is_readable(header.msg_control.cast())) {
            continue;
        }
        // SAFETY: as above; what is passed is there.
        unsafe {
            let mut part = libc::CMSG_FIRSTHDR(message);
            while let Some(header) = part.as_ref() {
                if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                    let numbers = libc::CMSG_DATA(part).cast::<c_int>();
                    let bytes = header.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                    all.extend(
                        (0..bytes / size_of::<c_int>()).map(|index| numbers.add(index).read_unaligned()),
                    );
                }
                part = libc::CMSG_NXTHDR(message, part);
            }
        }
    }
    all
}

/// All memory of a call travels to the node that has the descriptor, and back: so many bytes of a batch are enough for one call.
const MOST_OF_BATCH: usize = 64 << 10;

/// How many messages of a batch another node gets at once; one at least. A batch may always end early.
fn fitting(messages: *mut mmsghdr, count: c_uint) -> c_uint {
    let mut bytes = 0;
    let is_too_much = |index: &c_uint| {
        let buffers = of_message(header(messages, *index as usize), true);
        bytes += size_of::<mmsghdr>() + buffers.iter().map(|buffer| buffer.length).sum::<usize>();
        bytes > MOST_OF_BATCH
    };
    (0..count).find(is_too_much).map_or(count, |fitting| fitting.max(1))
}

/// The first message of a batch, if it is one for which a call of its own is right: `None` if several fit or there is none.
fn alone(messages: *mut mmsghdr, fitting: c_uint) -> Option<*mut mmsghdr> {
    let buffers = of_message(header(messages, 0), true);
    let bytes: usize = buffers.iter().map(|buffer| buffer.length).sum();
    (fitting == 1 && bytes > MOST_OF_BATCH).then_some(messages)
}

/// The outcome for a batch of its one message, of which so many bytes were transferred.
fn one(message: *mut mmsghdr, bytes: ssize_t) -> c_int {
    let Ok(bytes) = c_uint::try_from(bytes) else { return -1 };
    // SAFETY: the caller of the wrapped function promises messages.
    unsafe { (*message).msg_len = bytes };
    1
}

macro_rules! vectored {
    ($($order:ident fn $name:ident($fd:ident: c_int, $($argument:ident: $type:ty),*) -> $result:ty $([$short:ident = $fitting:expr, or $single:expr])?
        = $buffers:expr, $descriptors:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($fd: c_int, $($argument: $type),*) -> $result {
            const IS_POINT: bool = is_point(stringify!($name));
            $order($fd, || at_point_if(IS_POINT, || match place(&$descriptors, stringify!($name)) {
                Place::Here => with_buffers(&$buffers, || {
                    // SAFETY: forwards the caller's arguments.
                    unsafe { crate::real!($name: fn(c_int, $($type),*) -> $result)($fd, $($argument),*) }
                }),
                Place::There(there) => {
                    $(let $short = $fitting;
                    if let Some(result) = $single(there) {
                        return result;
                    })?
                    let words = [$fd.word(), $($argument.word()),*];
                    there.call(stringify!($name), &words, &$buffers)
                }
                Place::Nowhere => -1,
            }))
        }
    )*};
}

vectored! {
    taking fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int [count = fitting(messages, count), or |there| {
            // SAFETY: the caller passes messages.
            alone(messages, count).map(|message| one(message, unsafe {
                messages_elsewhere::receive(there, fd, message.cast(), flags)
            }))
        }]
        = of_messages(messages, count, true, Buffer::result(timeout)), [fd];
    giving fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int [count = fitting(messages, count), or |there| {
            // SAFETY: the caller passes messages.
            alone(messages, count).map(|message| one(message, unsafe {
                messages_elsewhere::send(there, fd, message.cast(), flags)
            }))
        }]
        = of_messages(messages, count, false, Buffer::read(messages, 0)), with_passed(fd, &headers(messages, count));
    giving fn vmsplice(fd: c_int, vector: *const iovec, count: usize, flags: c_uint) -> ssize_t = of_vector(vector, count), [fd];
}

/// # Safety
/// As the C library's `sendmsg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let call = || match place(&with_passed(fd, &[message]), "sendmsg") {
        Place::Here => with_buffers(&of_message(message, false), || {
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!(sendmsg: fn(c_int, *const msghdr, c_int) -> ssize_t)(fd, message, flags) }
        }),
        // SAFETY: the caller passes a message.
        Place::There(there) => unsafe { messages_elsewhere::send(there, fd, message, flags) },
        Place::Nowhere => -1,
    };
    giving(fd, || at_point_if(true, call))
}

/// # Safety
/// As the C library's `recvmsg`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let call = || match place(&[fd], "recvmsg") {
        Place::Here => with_buffers(&of_message(message, true), || {
            // SAFETY: forwards the caller's arguments.
            unsafe { crate::real!(recvmsg: fn(c_int, *mut msghdr, c_int) -> ssize_t)(fd, message, flags) }
        }),
        // SAFETY: the caller passes a message.
        Place::There(there) => unsafe { messages_elsewhere::receive(there, fd, message, flags) },
        Place::Nowhere => -1,
    };
    let received = taking(fd, || at_point_if(true, call));
    if received >= 0 {
        // SAFETY: the kernel has filled the message in.
        unsafe { rename_senders(message) };
    }
    received
}
