//! One established connection.

use super::calls;
use super::epoll::{ENDED, Epoll, READABLE, WRITABLE};
use super::frame::{Channel, Decoder, MAX_FRAME, prefix};
use super::handshake::FIRST_FRAME;
use super::mesh::Link;
use super::queue::ByteQueue;
use crate::LostReason;
use crate::counters::MessageCounter;
use gondwana_locks::lock;
use gondwana_racing::RacingBytes;
use gondwana_sys::syscall;
use gondwana_topology::NodeId;
use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The most bytes that are encrypted before the socket accepts them.
const AHEAD: usize = 4 * MAX_FRAME;
/// From this many bytes on, data is sent at once, even if more will follow soon.
const ENOUGH: usize = 64 << 10;

/// A connection to a peer that has been authenticated.
pub(super) struct Connection {
    pub peer: NodeId,
    /// True if the peer is on another computer.
    pub elsewhere: bool,
    stream: TcpStream,
    channel: Channel,
    sender: Mutex<Sender>,
    /// Bytes of messages that the socket has not taken.
    unsent: AtomicUsize,
    /// Set once, when the connection is abandoned, under the lock of `sender`.
    lost: AtomicBool,
    pub sent: MessageCounter,
    pub received: MessageCounter,
}

struct Sender {
    /// Messages as a stream, not yet in frames. They stay here while the socket is full, so that small messages
    /// share a frame and a system call.
    plain: ByteQueue,
    /// Frames that the socket has not taken.
    wire: ByteQueue,
    /// Number of the next frame.
    nonce: u64,
    /// True while the socket is watched for room.
    watching: bool,
}

/// The receiving side of a connection; its owner serialises the calls.
pub(super) struct Receiver {
    decoder: Decoder,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self { decoder: Decoder::new(FIRST_FRAME) }
    }
}

impl Connection {
    /// Takes a non-blocking socket, and registers it with `epoll` with the peer's number as token.
    pub(super) fn new(link: Link, epoll: &Epoll) -> std::io::Result<Self> {
        let Link { peer, stream, channel, elsewhere } = link;
        epoll.add(&stream, READABLE | ENDED, peer.index())?;
        let sender = Sender {
            plain: ByteQueue::default(),
            wire: ByteQueue::default(),
            nonce: FIRST_FRAME,
            watching: false,
        };
        Ok(Self {
            peer,
            elsewhere,
            stream,
            channel,
            sender: Mutex::new(sender),
            unsent: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            sent: MessageCounter::default(),
            received: MessageCounter::default(),
        })
    }

    /// True once the connection has been abandoned.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Bytes that the socket has not taken.
    pub(super) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Sends a message, or keeps it for the next [`Connection::flush`] if `later` is set and less than [`ENOUGH`]
    /// bytes wait.
    pub(super) fn send(
        &self,
        epoll: &Epoll,
        head: &[u8],
        bulk: &[RacingBytes<'_>],
        later: bool,
    ) -> Result<(), LostReason> {
        let mut sender = self.lock();
        if self.is_lost() {
            // Abandoned since the caller checked: the message is lost like those before it.
            return Ok(());
        }
        let bulk_len = bulk.iter().map(|piece| piece.len()).sum();
        self.sent.count(head.len() + bulk_len);
        sender.plain.extend(&prefix(head.len(), bulk_len));
        sender.plain.extend(head);
        for piece in bulk {
            sender.plain.extend_racing(*piece);
        }
        let result =
            if later && sender.plain.len() < ENOUGH { Ok(()) } else { self.flush_locked(&mut sender, epoll) };
        self.unsent.store(sender.plain.len() + sender.wire.len(), Ordering::Relaxed);
        result
    }

    /// Writes to the socket what it accepts.
    pub(super) fn flush(&self, epoll: &Epoll) -> Result<(), LostReason> {
        if self.unsent() == 0 {
            return Ok(());
        }
        let mut sender = self.lock();
        if self.is_lost() {
            return Ok(());
        }
        let result = self.flush_locked(&mut sender, epoll);
        self.unsent.store(sender.plain.len() + sender.wire.len(), Ordering::Relaxed);
        result
    }

    fn flush_locked(&self, sender: &mut Sender, epoll: &Epoll) -> Result<(), LostReason> {
        loop {
            while !sender.plain.is_empty() && sender.wire.len() < AHEAD {
                self.channel.seal(sender.nonce, &mut sender.plain, &mut sender.wire);
                sender.nonce += 1;
            }
            if sender.wire.is_empty() {
                return self.watch(sender, epoll, false);
            }
            match calls::send(&self.stream, sender.wire.bytes()) {
                Ok(written) => sender.wire.consume(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.watch(sender, epoll, true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failure(&error)),
            }
        }
    }

    /// True if the socket has not accepted all that was to be written.
    pub(super) fn waits_for_room(&self) -> bool {
        self.unsent() > 0 && self.lock().watching
    }

    /// Begins or ends watching for room.
    fn watch(&self, sender: &mut Sender, epoll: &Epoll, watching: bool) -> Result<(), LostReason> {
        if sender.watching != watching {
            let room = if watching { WRITABLE } else { 0 };
            epoll
                .change(&self.stream, READABLE | ENDED | room, self.peer.index())
                .map_err(|error| failure(&error))?;
            sender.watching = watching;
        }
        Ok(())
    }

    /// Reads once, as much as fits into `buffer`, and delivers the complete messages; returns their number.
    pub(super) fn receive(
        &self,
        receiver: &mut Receiver,
        buffer: &mut [u8],
        deliver: &mut dyn FnMut(&[u8], &[u8]),
    ) -> (usize, Result<(), LostReason>) {
        let mut count = 0;
        let mut counted = |head: &[u8], bulk: &[u8]| {
            self.received.count(head.len() + bulk.len());
            count += 1;
            deliver(head, bulk);
        };
        let result = match calls::receive(&self.stream, buffer) {
            Ok(0) => Err(LostReason::Closed),
            Ok(len) => receiver
                .decoder
                .feed(&self.channel, &buffer[..len], &mut counted)
                .map_err(LostReason::Damaged),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(failure(&error)),
        };
        (count, result)
    }

    /// Whether data waits for an acknowledgement of the peer's kernel, and the time since the last one; `None` if the
    /// system does not report it.
    pub(super) fn acknowledged(&self) -> Option<(bool, Duration)> {
        // SAFETY: plain numbers, for which zero is valid; the kernel writes as many bytes as it is told at most.
        let (result, info) = unsafe {
            let mut info: libc::tcp_info = std::mem::zeroed();
            let mut length = libc::socklen_t::try_from(size_of::<libc::tcp_info>()).ok()?;
            let (fd, place) = (self.stream.as_raw_fd(), &raw mut info);
            let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
            // By system call: in the preloaded library the function of that name is the program's.
            let result = syscall!(libc::SYS_getsockopt, fd, level, option, place, &raw mut length);
            (result, info)
        };
        let waits = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
        (result == 0).then(|| (waits, Duration::from_millis(u64::from(info.tcpi_last_ack_recv))))
    }

    /// Abandons the connection; true for the first caller.
    pub(super) fn abandon(&self, epoll: &Epoll) -> bool {
        let mut sender = self.lock();
        if self.lost.swap(true, Ordering::Relaxed) {
            return false;
        }
        // Whether these fail or not, the socket delivers nothing any more.
        let _ = epoll.remove(&self.stream);
        let _ = self.stream.shutdown(Shutdown::Both);
        (sender.plain, sender.wire) = (ByteQueue::default(), ByteQueue::default());
        self.unsent.store(0, Ordering::Relaxed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Sender> {
        lock(&self.sender)
    }
}

fn failure(error: &std::io::Error) -> LostReason {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => LostReason::Closed,
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            LostReason::Silent(error.to_string())
        }
        _ => LostReason::Failed(error.to_string()),
    }
}
