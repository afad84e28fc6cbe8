//! Descriptors from node to node, over a datagram socket each.
//!
//! The kernel chooses the socket's name, and the segment tells it to the nodes of the run. Anybody on the computer may
//! send to it; a letter counts if the kernel says that a node of the run has sent it.

use super::segment::Mapping;
use gondwana_topology::NodeId;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Most descriptors in one letter.
const MOST: usize = 4;

/// The length of a name that the kernel chooses: a zero and five digits.
const NAME: usize = 6;

/// Room for the descriptors and the credentials that come with a letter, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Attached([u8; 128]);

/// How long to wait for a letter before looking whether one that could not be sent can be sent now, in milliseconds.
const MOMENT: libc::c_int = 1;

/// Sends descriptors to all other nodes of `nodes` and waits for theirs. What has not come when the time is over is
/// `None`.
pub fn exchange(
    map: &Mapping,
    (me, nodes): (NodeId, usize),
    mine: &[BorrowedFd<'_>],
    patience: Duration,
) -> Vec<Option<Vec<OwnedFd>>> {
    let mut received: Vec<_> = (0..nodes).map(|_| None).collect();
    let Ok(mailbox) = Mailbox::open(map, me) else { return received };
    let end = Instant::now() + patience;
    let mut unsent: Vec<_> = (0..nodes as u16).map(NodeId).filter(|&node| node != me).collect();
    let mut missing = unsent.len();
    while missing + unsent.len() > 0 && Instant::now() < end {
        unsent.retain(|&to| !mailbox.send(map, me, to, mine));
        while let Some((from, descriptors)) = mailbox.receive(map) {
            missing -= usize::from(received[from.index()].replace(descriptors).is_none());
        }
        if missing > 0 {
            mailbox.wait();
        }
    }
    received
}

/// This node's socket.
struct Mailbox {
    socket: OwnedFd,
}

impl Mailbox {
    /// Makes a socket and tells the other nodes its name.
    fn open(map: &Mapping, node: NodeId) -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // By system call, here and below: in the preloaded library, functions of these names are the program's.
        // SAFETY: makes a descriptor, touches no memory.
        let socket = unsafe { libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(socket as i32) };
        let on: libc::c_int = 1;
        let (mut address, empty) = address(&[]);
        let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        // SAFETY: every pointer is to a variable of this function that is as long as the length beside it says.
        let failed = unsafe {
            let fd = socket.as_raw_fd();
            libc::syscall(libc::SYS_setsockopt, fd, libc::SOL_SOCKET, libc::SO_PASSCRED, &raw const on, 4) < 0
                || libc::syscall(libc::SYS_bind, fd, &raw const address, empty) < 0
                || libc::syscall(libc::SYS_getsockname, fd, &raw mut address, &raw mut length) < 0
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
        let mut name = [0; 8];
        if length as usize != address_length(NAME) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        for (to, from) in name.iter_mut().zip(&address.sun_path[..NAME]) {
            *to = from.cast_unsigned();
        }
        map.set_mailbox(node, u64::from_le_bytes(name), std::process::id());
        Ok(Self { socket })
    }

    /// Sends descriptors to a node. False if it has no mailbox yet, or a full one.
    fn send(&self, map: &Mapping, from: NodeId, to: NodeId, descriptors: &[BorrowedFd<'_>]) -> bool {
        let name = map.mailbox(to);
        if name == 0 || descriptors.len() > MOST {
            return false;
        }
        let (mut address, length) = address(&name.to_le_bytes()[..NAME]);
        let mut attached = Attached([0; 128]);
        let mut text = from.0;
        let mut part = libc::iovec { iov_base: (&raw mut text).cast(), iov_len: size_of_val(&text) };
        let bytes = size_of_val(descriptors) as u32;
        // SAFETY: all zero is a valid message header; its parts are variables of this function, and the attachment has
        // room for one header and `MOST` descriptors. A borrowed descriptor is nothing but its number.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_name = (&raw mut address).cast();
            message.msg_namelen = length;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = attached.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(bytes) as usize;
            let numbers = descriptors.as_ptr().cast::<u8>();
            libc::CMSG_DATA(header).copy_from_nonoverlapping(numbers, bytes as usize);
            libc::syscall(libc::SYS_sendmsg, self.socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT)
                >= 0
        }
    }

    /// The next letter that a node of the run has sent, if there is one.
    fn receive(&self, map: &Mapping) -> Option<(NodeId, Vec<OwnedFd>)> {
        loop {
            let (from, sender, descriptors) = self.next()?;
            if sender.is_some() && map.process(from) == sender {
                return Some((from, descriptors));
            }
        }
    }

    /// Waits a moment for a letter.
    fn wait(&self) {
        let mut socket = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor to look at.
        unsafe { libc::syscall(libc::SYS_poll, &raw mut socket, 1, MOMENT) };
    }

    /// The next letter: the node that it says it is from, the process that the kernel says has sent it, and what was
    /// attached.
    fn next(&self) -> Option<(NodeId, Option<u32>, Vec<OwnedFd>)> {
        let mut attached = Attached([0; 128]);
        let mut text = 0_u16;
        let mut part = libc::iovec { iov_base: (&raw mut text).cast(), iov_len: size_of_val(&text) };
        let (mut sender, mut descriptors) = (None, Vec::new());
        // SAFETY: as in `send`. The kernel has written whole control messages, whose descriptors are ours from now on.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = attached.0.as_mut_ptr().cast();
            message.msg_controllen = attached.0.len();
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            let length = libc::syscall(libc::SYS_recvmsg, self.socket.as_raw_fd(), &raw mut message, flags);
            if length < 0 {
                return None;
            }
            let is_whole = length as usize == size_of_val(&text);
            let mut header = libc::CMSG_FIRSTHDR(&raw const message);
            while !header.is_null() {
                let data = libc::CMSG_DATA(header);
                let length = (*header).cmsg_len - (data as usize - header as usize);
                match (*header).cmsg_type {
                    libc::SCM_RIGHTS => {
                        descriptors.extend((0..length / size_of::<i32>()).map(|index| {
                            OwnedFd::from_raw_fd(data.cast::<i32>().add(index).read_unaligned())
                        }))
                    }
                    libc::SCM_CREDENTIALS if is_whole => {
                        sender = Some(data.cast::<libc::ucred>().read_unaligned().pid.cast_unsigned());
                    }
                    _ => (),
                }
                header = libc::CMSG_NXTHDR(&raw const message, header);
            }
        }
        Some((NodeId(text), sender, descriptors))
    }
}

/// The address of that name, and its length.
fn address(name: &[u8]) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: all zero is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(name) {
        *to = from.cast_signed();
    }
    (address, address_length(name.len()) as libc::socklen_t)
}

fn address_length(name: usize) -> usize {
    std::mem::offset_of!(libc::sockaddr_un, sun_path) + name
}
