//! Reading and writing descriptors through a private buffer.
//!
//! A call that meets a page which another node has just taken would stop half way, and a program does not expect a
//! short count from a file. So the kernel accesses private memory only, and common pages, which nobody takes.

use super::blocks::Blocks;
use super::descriptors::{MOST_THERE, Place, There, is_file, place};
use super::{Buffer, is_shared};
use crate::accesses;
use crate::numbers::many;
use crate::pthread::cancel::at_point_if;
use crate::pthread::cancellation_points::is_point;
use gondwana_node::Node;
use gondwana_sys::Argument;
use libc::{c_int, c_void, iovec, off_t, size_t, sockaddr, socklen_t, ssize_t};

/// The most bytes of one call. The call is repeated until all bytes are moved, unless what is read is no file: a short count is valid
/// there.
const PIECE: usize = 1 << 20;

/// The program's memory for a transfer: one range or several.
struct Memory {
    parts: Vec<(*mut u8, usize)>,
    /// The call names the one range itself, and no vector that the kernel would have to read.
    is_plain: bool,
}

impl Memory {
    /// # Safety
    /// The range is memory of the program.
    unsafe fn of(start: *const c_void, length: usize) -> Option<Self> {
        Some(Self { parts: vec![(start as *mut u8, length)], is_plain: true })
    }

    /// `None` if the vector is nowhere. One that the kernel takes no such vector for is as if it were too long.
    ///
    /// # Safety
    /// `vector` has `count` elements, if it is there.
    unsafe fn of_vector(vector: *const iovec, count: c_int) -> Option<Self> {
        // SAFETY: as promised.
        if !(0..=libc::UIO_MAXIOV).contains(&count) {
            return Some(Self { parts: vec![(std::ptr::null_mut(), usize::MAX)], is_plain: false });
        }
        // SAFETY: as promised.
        let pieces = (0..many(count)).map(|index| unsafe { accesses::load(vector.wrapping_add(index)) });
        pieces
            .map(|piece| piece.map(|piece| (piece.iov_base.cast(), piece.iov_len)))
            .collect::<Option<_>>()
            .map(|parts| Self { parts, is_plain: false })
    }

    fn is_shared(&self) -> bool {
        self.parts.iter().any(|&(start, length)| is_shared(start.cast(), length))
    }

    /// True if the kernel can access the memory at any time, as the program passes it.
    fn is_present(&self) -> bool {
        let is_common = |&(start, length): &(*mut u8, usize)| {
            Node::current().is_some_and(|node| node.is_in_common_pages(start as usize, length))
        };
        !self.is_shared() || self.is_plain && self.parts.iter().all(is_common)
    }

    /// `None` for more than one call can move.
    fn length(&self) -> Option<usize> {
        let length = self.parts.iter().try_fold(0_usize, |sum, (_, length)| sum.checked_add(*length))?;
        isize::try_from(length).is_ok().then_some(length)
    }

    /// Calls `copy(place, offset in the buffer, length)` for the parts of the memory that `length` bytes from
    /// `offset` on lie in, up to one of which it copies less. Gives how many bytes were copied.
    fn for_range(
        &self,
        offset: usize,
        length: usize,
        mut copy: impl FnMut(*mut u8, usize, usize) -> usize,
    ) -> usize {
        let (mut before, mut done) = (0, 0);
        for &(start, size) in &self.parts {
            let from = offset.max(before);
            let to = (offset + length).min(before + size);
            if from < to {
                let copied = copy(start.wrapping_add(from - before), from - offset, to - from);
                done += copied;
                if copied < to - from {
                    break;
                }
            }
            before += size;
        }
        done
    }

    /// True if the first byte can be read, or there is none.
    fn begins(&self) -> bool {
        self.parts
            .iter()
            .find(|(_, length)| *length > 0)
            .is_none_or(|&(start, _)| accesses::is_readable(start))
    }
}

/// The process that moves bytes.
#[derive(Clone, Copy)]
enum Mover {
    Here,
    There(There),
}

impl Mover {
    /// The most bytes of one call.
    fn most(self) -> usize {
        match self {
            Self::Here => PIECE,
            Self::There(_) => MOST_THERE,
        }
    }
}

/// Moves bytes piece by piece: `call` gets a private buffer, its length and how much was moved before.
fn transfer(
    fd: c_int,
    memory: &Memory,
    into_memory: bool,
    mover: Mover,
    mut call: impl FnMut(*mut c_void, usize, usize) -> ssize_t,
) -> ssize_t {
    let Some(total) = memory.length() else {
        crate::errno::set(libc::EINVAL);
        return -1;
    };
    let most = mover.most();
    let fault = |done: usize| {
        if done > 0 {
            return done.cast_signed();
        }
        crate::errno::set(libc::EFAULT);
        -1
    };
    // Before anything is taken out of the descriptor.
    if into_memory && !memory.begins() {
        return fault(0);
    }
    let mut buffer = Blocks::new(total.min(most));
    let mut done = 0;
    loop {
        let wanted = (total - done).min(most);
        let mut piece = wanted;
        if !into_memory {
            piece = memory.for_range(done, wanted, |place, at, length| {
                // SAFETY: the program's memory, as it passed it, and a part of the buffer.
                unsafe { accesses::copy(place, buffer.as_mut_ptr().add(at), length) }
            });
            if piece == 0 && wanted > 0 {
                return fault(done);
            }
        }
        let moved = call(buffer.as_mut_ptr().cast(), piece, done);
        if moved <= 0 {
            return if done > 0 { done.cast_signed() } else { moved };
        }
        let moved = moved.cast_unsigned();
        if into_memory {
            let copied = memory.for_range(done, moved, |place, at, length| {
                // SAFETY: as above.
                unsafe { accesses::copy(buffer.as_ptr().add(at), place, length) }
            });
            if copied < moved {
                return fault(done + copied);
            }
        }
        done += moved;
        let goes_on = match mover {
            Mover::Here => moved == piece && (!into_memory || is_file(fd)),
            // The node may have moved what it could without waiting.
            Mover::There(there) => !into_memory || is_file_there(there, fd),
        };
        if done == total || piece < wanted || !goes_on {
            return done.cast_signed();
        }
    }
}

/// True if a descriptor has a position, as files do, whose bytes are all there.
fn is_file_there(there: There, fd: c_int) -> bool {
    there.call::<off_t>("lseek", &[fd.into(), 0, libc::SEEK_CUR.into()], &[]) >= 0
}

/// `recvfrom` into memory of the program.
///
/// # Safety
/// The memory is as long as told, and the address null or private.
pub(super) unsafe fn received(
    fd: c_int,
    (memory, count): (*mut c_void, size_t),
    flags: c_int,
    (address, size): (*mut sockaddr, *mut socklen_t),
) -> ssize_t {
    let real = crate::real!(
        recvfrom: fn(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t
    );
    // SAFETY: as promised.
    if let Some(whole) = unsafe { Memory::of(memory, count) }.filter(|memory| !memory.is_present()) {
        // SAFETY: the buffer is private and as long as told.
        transfer(fd, &whole, true, Mover::Here, |buffer, length, _| unsafe {
            real(fd, buffer, length, flags, address, size)
        })
    } else {
        // SAFETY: as promised.
        unsafe { real(fd, memory, count, flags, address, size) }
    }
}

/// Moves a piece by a function, whose argument 1 is the buffer, in the process that has the descriptor.
macro_rules! moved {
    ($mover:ident, ($buffer:ident, $length:ident, $into:literal),
        $name:ident: fn($($type:ty),* $(,)?)($($argument:expr),* $(,)?)) => {
        match $mover {
            Mover::Here => crate::real!($name: fn($($type),*) -> ssize_t)($($argument),*),
            Mover::There(there) => {
                let words = [$(gondwana_sys::Argument::word($argument)),*];
                there.transfer(stringify!($name), &words, ($buffer, $length), $into)
            }
        }
    };
}

/// Defines transfers: the direction, what they do to a [channel](super::channels), the memory, and the call that moves one piece.
macro_rules! transferring {
    ($($into:literal [$($order:ident)?] fn $name:ident($fd:ident: c_int $(, $argument:ident: $type:ty)*)
        = $memory:expr, |$mover:ident, $buffer:ident, $length:ident, $done:ident| $call:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name($fd: c_int $(, $argument: $type)*) -> ssize_t {
            const IS_POINT: bool = is_point(stringify!($name));
            crate::ordered!([$($order $fd)?] at_point_if(IS_POINT, || {
                let $mover = match place(&[$fd], stringify!($name)) {
                    Place::Here => Mover::Here,
                    Place::There(there) => Mover::There(there),
                    Place::Nowhere => return -1,
                };
                // SAFETY: the caller passes memory.
                let Some(memory) = (unsafe { $memory }) else {
                    crate::errno::set(libc::EFAULT);
                    return -1;
                };
                if matches!($mover, Mover::Here) && memory.is_present() {
                    // SAFETY: forwards the caller's arguments.
                    return unsafe { crate::real!($name: fn(c_int $(, $type)*) -> ssize_t)($fd $(, $argument)*) };
                }
                // SAFETY: the buffer is private and as long as told.
                transfer($fd, &memory, $into, $mover, |$buffer, $length, $done| unsafe { $call })
            }))
        }
    )*};
}

fn at(offset: off_t, done: usize) -> off_t {
    offset + done.cast_signed() as off_t
}

/// For calls that take -1 for wherever the file is.
fn at_or_current(offset: off_t, done: usize) -> off_t {
    if offset == -1 { -1 } else { at(offset, done) }
}

/// One piece by `preadv2` or `pwritev2`.
///
/// # Safety
/// The buffer has that many bytes.
unsafe fn flagged_piece(
    mover: Mover,
    into_memory: bool,
    fd: c_int,
    (buffer, length): (*mut c_void, usize),
    (offset, flags): (off_t, c_int),
) -> ssize_t {
    let piece = iovec { iov_base: buffer, iov_len: length };
    let (name, real, memory) = if into_memory {
        let real = crate::real!(preadv2: fn(c_int, *const iovec, c_int, off_t, c_int) -> ssize_t);
        ("preadv2", real, Buffer::write(buffer, length))
    } else {
        let real = crate::real!(pwritev2: fn(c_int, *const iovec, c_int, off_t, c_int) -> ssize_t);
        ("pwritev2", real, Buffer::read(buffer, length))
    };
    match mover {
        // SAFETY: as promised.
        Mover::Here => unsafe { real(fd, &raw const piece, 1, offset, flags) },
        Mover::There(there) => {
            let words = [fd.into(), (&raw const piece).word(), 1, offset, flags.into()];
            there.call(name, &words, &[Buffer::value(&raw const piece), memory])
        }
    }
}

/// One piece by `sendto`.
///
/// # Safety
/// The buffer has that many bytes, and the address as many as told.
unsafe fn send_piece(
    mover: Mover,
    fd: c_int,
    (buffer, length): (*mut c_void, usize),
    flags: c_int,
    (address, size): (*const sockaddr, socklen_t),
) -> ssize_t {
    let real = crate::real!(
        sendto: fn(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t
    );
    match mover {
        // SAFETY: as promised.
        Mover::Here => unsafe { real(fd, buffer, length, flags, address, size) },
        Mover::There(there) => there.call(
            "sendto",
            &[fd.into(), buffer.word(), length.word(), flags.into(), address.word(), size.into()],
            &[Buffer::read(buffer, length), Buffer::read(address, size as usize)],
        ),
    }
}

transferring! {
    true [taking] fn read(fd: c_int, memory: *mut c_void, count: size_t) = Memory::of(memory, count), |mover, buffer, length, _done|
        moved!(mover, (buffer, length, true), read: fn(c_int, *mut c_void, size_t)(fd, buffer, length));
    false [giving] fn write(fd: c_int, memory: *const c_void, count: size_t) = Memory::of(memory, count), |mover, buffer, length, _done|
        moved!(mover, (buffer, length, false), write: fn(c_int, *const c_void, size_t)(fd, buffer, length));
    true [] fn pread(fd: c_int, memory: *mut c_void, count: size_t, offset: off_t) = Memory::of(memory, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, true), pread: fn(c_int, *mut c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    true [] fn pread64(fd: c_int, memory: *mut c_void, count: size_t, offset: off_t) = Memory::of(memory, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, true), pread: fn(c_int, *mut c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    false [] fn pwrite(fd: c_int, memory: *const c_void, count: size_t, offset: off_t) = Memory::of(memory, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, false), pwrite: fn(c_int, *const c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    false [] fn pwrite64(fd: c_int, memory: *const c_void, count: size_t, offset: off_t) = Memory::of(memory, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, false), pwrite: fn(c_int, *const c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    true [taking] fn readv(fd: c_int, vector: *const iovec, count: c_int) = Memory::of_vector(vector, count),
        |mover, buffer, length, _done| moved!(mover, (buffer, length, true), read: fn(c_int, *mut c_void, size_t)(fd, buffer, length));
    false [giving] fn writev(fd: c_int, vector: *const iovec, count: c_int) = Memory::of_vector(vector, count),
        |mover, buffer, length, _done| moved!(mover, (buffer, length, false), write: fn(c_int, *const c_void, size_t)(fd, buffer, length));
    true [] fn preadv(fd: c_int, vector: *const iovec, count: c_int, offset: off_t) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, true), pread: fn(c_int, *mut c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    false [] fn pwritev(fd: c_int, vector: *const iovec, count: c_int, offset: off_t) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, false), pwrite: fn(c_int, *const c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    true [] fn preadv64(fd: c_int, vector: *const iovec, count: c_int, offset: off_t) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, true), pread: fn(c_int, *mut c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    false [] fn pwritev64(fd: c_int, vector: *const iovec, count: c_int, offset: off_t) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| moved!(mover, (buffer, length, false), pwrite: fn(c_int, *const c_void, size_t, off_t)(fd, buffer, length, at(offset, done)));
    true [] fn preadv2(fd: c_int, vector: *const iovec, count: c_int, offset: off_t, flags: c_int) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| flagged_piece(mover, true, fd, (buffer, length), (at_or_current(offset, done), flags));
    true [] fn preadv64v2(fd: c_int, vector: *const iovec, count: c_int, offset: off_t, flags: c_int) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| flagged_piece(mover, true, fd, (buffer, length), (at_or_current(offset, done), flags));
    false [] fn pwritev2(fd: c_int, vector: *const iovec, count: c_int, offset: off_t, flags: c_int) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| flagged_piece(mover, false, fd, (buffer, length), (at_or_current(offset, done), flags));
    false [] fn pwritev64v2(fd: c_int, vector: *const iovec, count: c_int, offset: off_t, flags: c_int) = Memory::of_vector(vector, count),
        |mover, buffer, length, done| flagged_piece(mover, false, fd, (buffer, length), (at_or_current(offset, done), flags));
    true [taking] fn recv(fd: c_int, memory: *mut c_void, count: size_t, flags: c_int) = Memory::of(memory, count),
        |mover, buffer, length, _done| moved!(mover, (buffer, length, true), recv: fn(c_int, *mut c_void, size_t, c_int)(fd, buffer, length, flags));
    false [giving] fn send(fd: c_int, memory: *const c_void, count: size_t, flags: c_int) = Memory::of(memory, count),
        |mover, buffer, length, _done| moved!(mover, (buffer, length, false), send: fn(c_int, *const c_void, size_t, c_int)(fd, buffer, length, flags));
    false [giving] fn sendto(fd: c_int, memory: *const c_void, count: size_t, flags: c_int, address: *const sockaddr, size: socklen_t)
        = Memory::of(memory, count), |mover, buffer, length, _done| send_piece(mover, fd, (buffer, length), flags, (address, size));
}
