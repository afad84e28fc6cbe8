//! Messages through sockets of other nodes. All memory of a call travels with it, so that a long message of a stream goes in pieces.

use super::descriptors::{MOST_THERE, There};
use super::vectors::of_message;
use crate::accesses;
use gondwana_sys::Argument;
use libc::{c_int, iovec, msghdr, ssize_t};

/// The most bytes of one piece: with names and what is passed along they fit into one call.
const PIECE: usize = MOST_THERE / 2;

/// The parts of a message, and how many bytes they have together. `None` if they are nowhere.
unsafe fn parts(message: *const msghdr) -> Option<(Vec<iovec>, usize)> {
    // SAFETY: the caller passes a message.
    let header = unsafe { accesses::load(message) }?;
    let part = |index: usize| {
        // SAFETY: so many parts are promised.
        unsafe { accesses::load(header.msg_iov.cast_const().wrapping_add(index)) }
    };
    let parts: Vec<iovec> = (0..header.msg_iovlen).map(part).collect::<Option<_>>()?;
    let bytes = parts.iter().map(|part| part.iov_len).sum();
    Some((parts, bytes))
}

/// The parts from the byte `from` on, up to the most of one piece.
fn piece(parts: &[iovec], from: usize) -> Vec<iovec> {
    let (mut skipped, mut room) = (from, PIECE);
    let mut piece = vec![];
    for part in parts {
        let before = skipped.min(part.iov_len);
        skipped -= before;
        let length = (part.iov_len - before).min(room);
        room -= length;
        if length > 0 {
            piece.push(iovec { iov_base: part.iov_base.wrapping_byte_add(before), iov_len: length });
        }
    }
    piece
}

/// True if what a socket transfers has no ends of messages.
fn is_stream(socket: c_int) -> bool {
    let (mut kind, mut size) = (Box::new(0), Box::new(4));
    // SAFETY: both are places for the results.
    let told = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut *kind).cast(), &raw mut *size)
    };
    told == 0 && *kind == libc::SOCK_STREAM
}

/// Transfers a message by calls of another node, each with a part of it: `call` gets the header of a part. What travels with a message goes
/// with the first one. After a part that is not whole no other follows, and none unless all of the message is wanted.
///
/// # Safety
/// There is a message.
unsafe fn in_pieces(
    message: *const msghdr,
    all: bool,
    mut call: impl FnMut(*mut msghdr) -> ssize_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let whole = unsafe { accesses::load(message).zip(parts(message)) };
    let Some((header, (parts, bytes))) = whole.filter(|(_, (_, bytes))| *bytes > PIECE) else {
        return call(message.cast_mut());
    };
    let mut done = 0;
    loop {
        let mut vector = piece(&parts, done);
        let wanted: usize = vector.iter().map(|part| part.iov_len).sum();
        let mut part = Box::new(msghdr { msg_iov: vector.as_mut_ptr(), msg_iovlen: vector.len(), ..header });
        if done > 0 {
            (part.msg_namelen, part.msg_controllen) = (0, 0);
        }
        let moved = call(&raw mut *part);
        if done == 0 && moved >= 0 {
            let told = msghdr { msg_iov: header.msg_iov, msg_iovlen: header.msg_iovlen, ..*part };
            let lengths = |header: &msghdr| (header.msg_namelen, header.msg_controllen, header.msg_flags);
            // What is only sent may not be written to.
            if lengths(&told) != lengths(&header) {
                // SAFETY: the message is the caller's.
                unsafe { accesses::store(&told, message.cast_mut()) };
            }
        }
        let Ok(moved) = usize::try_from(moved) else { return if done > 0 { done.cast_signed() } else { -1 } };
        done += moved;
        if moved < wanted || done == bytes || !all {
            return done.cast_signed();
        }
    }
}

/// `sendmsg` on a socket of another node.
///
/// # Safety
/// As the C library's `sendmsg`.
pub(super) unsafe fn send(there: There, socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        if parts(message).is_some_and(|(_, bytes)| bytes > PIECE) && !is_stream(socket) {
            crate::errno::set(libc::EMSGSIZE);
            return -1;
        }
        in_pieces(message, true, |part| {
            there.call("sendmsg", &[socket.into(), part.word(), flags.into()], &of_message(part, false))
        })
    }
}

/// `recvmsg` on a socket of another node.
///
/// # Safety
/// As the C library's `recvmsg`.
pub(super) unsafe fn receive(there: There, socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise. No message of a socket is longer than a piece, whatever room there is for it.
    unsafe {
        in_pieces(message, flags & libc::MSG_WAITALL != 0 && is_stream(socket), |part| {
            there.call("recvmsg", &[socket.into(), part.word(), flags.into()], &of_message(part, true))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other() {
        let part = |start: usize, iov_len: usize| iovec { iov_base: start as *mut _, iov_len };
        let parts = [part(1000, 10), part(5000, PIECE), part(9_000_000, 7)];
        let starts = |from| {
            let piece = piece(&parts, from);
            piece.iter().map(|part| (part.iov_base as usize, part.iov_len)).collect::<Vec<_>>()
        };
        assert_eq!(starts(0), [(1000, 10), (5000, PIECE - 10)]);
        assert_eq!(starts(PIECE), [(5000 + PIECE - 10, 10), (9_000_000, 7)]);
        assert_eq!(starts(PIECE + 12), [(9_000_002, 5)]);
    }
}
