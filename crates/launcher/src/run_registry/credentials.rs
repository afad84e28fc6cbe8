//! The identity of the other end of a socket.

use super::Launcher;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The effective user of this process.
pub(crate) fn this_user() -> u32 {
    // SAFETY: touches no memory.
    unsafe { libc::geteuid() }
}

/// Process and effective user of the other end, when it connected or began to listen.
pub(super) fn of_peer(stream: &UnixStream) -> io::Result<Launcher> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most as many bytes as it is told that there are.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(Launcher { process: u32::try_from(peer.pid).unwrap_or(0), user: peer.uid }),
        _ => Err(io::Error::last_os_error()),
    }
}
