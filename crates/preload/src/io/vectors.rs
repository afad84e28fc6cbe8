//! System calls that take their buffers in a vector.

use super::descriptors::is_here;
use super::{Buffer, with_buffers};
use libc::{c_int, iovec, msghdr, ssize_t};

/// Adds the buffers of a vector, and the vector itself.
fn add(buffers: &mut Vec<Buffer>, vector: *const iovec, count: usize, filled: bool) {
    buffers.push(Buffer::read(vector, count * size_of::<iovec>()));
    if vector.is_null() {
        return;
    }
    for index in 0..count {
        // SAFETY: the caller of the wrapped function promises `count` elements.
        let piece = unsafe { &*vector.add(index) };
        buffers.push(if filled {
            Buffer::write(piece.iov_base, piece.iov_len)
        } else {
            Buffer::read(piece.iov_base, piece.iov_len)
        });
    }
}

fn of_message(message: *const msghdr, filled: bool) -> Vec<Buffer> {
    let mut buffers = vec![Buffer::write(message.cast_mut(), size_of::<msghdr>())];
    if !message.is_null() {
        // SAFETY: the caller of the wrapped function promises a valid message header.
        let header = unsafe { &*message };
        add(&mut buffers, header.msg_iov, header.msg_iovlen, filled);
        buffers.push(Buffer::write(header.msg_name, header.msg_namelen as usize));
        buffers.push(Buffer::write(header.msg_control, header.msg_controllen));
    }
    buffers
}

macro_rules! vectored {
    ($($name:ident($fd:ident: c_int, $($argument:ident: $type:ty),*) = $buffers:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($fd: c_int, $($argument: $type),*) -> ssize_t {
            if !is_here($fd, stringify!($name)) {
                return -1;
            }
            with_buffers(&$buffers, || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn(c_int, $($type),*) -> ssize_t)($fd, $($argument),*) }
            })
        }
    )*};
}

vectored! {
    recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) = of_message(message, true);
    sendmsg(fd: c_int, message: *const msghdr, flags: c_int) = of_message(message, false);
}
