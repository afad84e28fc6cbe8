//! Reading and writing sockets by system call. In the preloaded library, the C library's functions are the program's, which find out first
//! whether another node has the descriptor: a microsecond for each message.

use gondwana_sys::syscall;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::ptr::null;

/// As `Read::read`.
pub(super) fn receive(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let (fd, none) = (socket.as_raw_fd(), null::<u8>());
    // SAFETY: the buffer has room for as many bytes as it says; no address is wanted.
    count(unsafe { syscall!(libc::SYS_recvfrom, fd, buffer.as_mut_ptr(), buffer.len(), 0, none, none) })
}

/// As `Write::write`.
pub(super) fn send(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let (fd, none) = (socket.as_raw_fd(), null::<u8>());
    let how = libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads as many bytes as there are; the socket is connected.
    count(unsafe { syscall!(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), how, none, 0) })
}

/// The result of a system call that says how many bytes.
fn count(result: i64) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
