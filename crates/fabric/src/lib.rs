//! Messages between the nodes of one run.
//!
//! A [`Fabric`] carries active messages: a short *head* that says what the message means, and *bulk* data
//! (page contents, diffs). Messages of one ordered pair of nodes arrive in the order in which they were sent;
//! between different pairs there is no order.
//!
//! - [`ShmFabric`]: rings in memory that the nodes of one computer share.
//! - [`TcpFabric`]: authenticated and encrypted connections between computers.
//!
//! Receiving: each node has one *service thread*, which alternates [`Fabric::poll`] and [`Fabric::wait`]. An
//! application thread that waits for an answer may poll as well, between [`Fabric::begin_polling`] and
//! [`Fabric::end_polling`] (see [`Polling`]); meanwhile the service thread stays asleep and senders need no system
//! call to wake it.

mod counters;
mod error;
pub mod raw;
mod shm;
mod tcp;

pub use counters::Counters;
pub use error::{ConnectError, Event, LostReason, SegmentError, SendError};
pub use shm::{DEFAULT_RING_BYTES, ShmFabric, ShmSegment};
#[doc(hidden)]
pub use tcp::fuzzing;
pub use tcp::{Security, TcpConfig, TcpFabric, listen, socket};

use gondwana_racing::RacingBytes;
use gondwana_topology::NodeId;
use std::time::Duration;

/// The longest head of a message, in bytes.
pub const MAX_HEAD: usize = 64 << 10;

/// The longest bulk part of a message, in bytes, all its pieces together.
pub const MAX_BULK: usize = 1 << 20;

/// What a receiver does with one message: its sender, its head and its bulk data.
///
/// The slices are valid during the call only; they may lie in the transport's own buffers.
pub type Deliver<'a> = dyn FnMut(NodeId, &[u8], &[u8]) + 'a;

/// Ordered messages between the nodes of a run.
///
/// No method blocks except [`Fabric::wait`]. Locks are held for short times inside the methods, so none may
/// be called from a signal handler that could have interrupted another call on the same thread.
pub trait Fabric: Send + Sync {
    /// This node.
    fn node(&self) -> NodeId;

    /// How many nodes the run has; they are numbered from 0.
    fn nodes(&self) -> usize;

    /// Sends one message. `bulk` is the bulk data in pieces, which arrive joined together; threads may be writing them, such as
    /// pages of the node.
    ///
    /// Never waits for the receiver: what its ring or socket cannot take is copied to an unbounded queue, which
    /// later calls of `send` and [`Fabric::poll`] drain in order.
    ///
    /// # Errors
    /// If head or bulk is too long, if `to` is this node or not a node of the run, or if `to` is lost.
    fn send(&self, to: NodeId, head: &[u8], bulk: &[RacingBytes<'_>]) -> Result<(), SendError>;

    /// As [`Fabric::send`], but the receiver need not be woken before [`Fabric::ring`]: whoever holds a lock that is needed when
    /// the message is handled, or answered, rings when it has given that back.
    ///
    /// # Errors
    /// As [`Fabric::send`].
    fn publish(&self, to: NodeId, head: &[u8], bulk: &[RacingBytes<'_>]) -> Result<(), SendError> {
        self.send(to, head, bulk)
    }

    /// Wakes a node, unless it is awake, to receive the messages of [`Fabric::publish`].
    fn ring(&self, _to: NodeId) {}

    /// As [`Fabric::send`], but does not wake the receiver's service thread if the transport permits that. The
    /// receiver gets the message at its next poll, at once if a thread is between [`Fabric::begin_waiting`] and
    /// [`Fabric::end_waiting`], or at [`Fabric::prompt`].
    ///
    /// # Errors
    /// As [`Fabric::send`].
    fn leave(&self, to: NodeId, head: &[u8]) -> Result<(), SendError> {
        self.send(to, head, &[])
    }

    /// Until [`Fabric::end_gathering`], what this thread sends need not leave at once: messages to one node can leave together.
    /// Returns what that takes.
    fn begin_gathering(&self) -> Gathering {
        Gathering::default()
    }

    /// Ends what [`Fabric::begin_gathering`] has begun: all that was sent leaves.
    fn end_gathering(&self, _gathering: Gathering) {}

    /// Wakes a node to receive the messages of [`Fabric::leave`].
    fn prompt(&self, _to: NodeId) {}

    /// Declares that this thread is about to sleep: until [`Fabric::end_waiting`], messages of [`Fabric::leave`] wake
    /// the node.
    fn begin_waiting(&self) {}

    /// Ends what [`Fabric::begin_waiting`] declared.
    fn end_waiting(&self) {}

    /// True if messages have certainly arrived; false does not exclude it.
    fn has_arrived(&self) -> bool {
        false
    }

    /// Hands the messages that have arrived to `deliver`, and returns how many there were.
    ///
    /// Bounded: a flood from one peer does not starve the others, so messages may be left when it returns;
    /// [`Fabric::wait`] then returns at once. If another thread is polling, returns 0. `deliver` may call
    /// `send`.
    ///
    /// Only the service thread, and threads between [`Fabric::begin_polling`] and [`Fabric::end_polling`], may
    /// poll.
    fn poll(&self, deliver: &mut Deliver<'_>) -> usize;

    /// Sleeps until there is work for [`Fabric::poll`] or [`Fabric::next_event`] and no thread polls, until
    /// [`Fabric::interrupt`], or until the timeout. May return early.
    ///
    /// For one thread only, the service thread.
    fn wait(&self, timeout: Option<Duration>);

    /// Makes the present call of [`Fabric::wait`], or if there is none the next one, return.
    fn interrupt(&self);

    /// Declares that this thread polls from now on, so senders need not wake the service thread.
    fn begin_polling(&self);

    /// Declares that this thread no longer polls. Messages that arrived since its last poll wake the service thread.
    fn end_polling(&self);

    /// True while a thread has declared that it polls.
    fn is_polled(&self) -> bool;

    /// Checks whether the computers of the peers still acknowledge; the peers on one that does not are lost. The
    /// service thread calls it a few times a second, right after it has sent heartbeats.
    fn look_after_peers(&self) {}

    /// Takes the oldest event.
    fn next_event(&self) -> Option<Event>;

    /// Bytes accepted by [`Fabric::send`] that the receivers' rings or sockets have not taken yet.
    fn unsent(&self) -> usize;

    /// Totals since the fabric was made.
    fn counters(&self) -> Counters;
}

/// A thread's gathering of messages.
#[derive(Debug, Default)]
pub struct Gathering {
    /// The fabric that the thread was gathering for before, as a number.
    outer: usize,
    /// It had gathered some by then.
    has_gathered: bool,
}

/// A thread's declaration that it polls; ends when dropped.
pub struct Polling<'a>(&'a dyn Fabric);

impl<'a> Polling<'a> {
    /// Begins polling, see [`Fabric::begin_polling`].
    #[must_use]
    pub fn begin(fabric: &'a dyn Fabric) -> Self {
        fabric.begin_polling();
        Self(fabric)
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.end_polling();
    }
}

/// Checks what [`Fabric::send`] promises to check before anything is sent; returns the bulk's total length.
fn check_message(
    (node, nodes): (NodeId, usize),
    to: NodeId,
    head: &[u8],
    bulk: &[RacingBytes<'_>],
) -> Result<usize, SendError> {
    if to == node || to.index() >= nodes {
        return Err(SendError::NoSuchPeer(to));
    }
    if head.len() > MAX_HEAD {
        return Err(SendError::HeadTooLong(head.len()));
    }
    let bulk_len = bulk.iter().map(|piece| piece.len()).sum();
    if bulk_len > MAX_BULK {
        return Err(SendError::BulkTooLong(bulk_len));
    }
    Ok(bulk_len)
}
