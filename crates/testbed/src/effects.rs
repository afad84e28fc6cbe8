//! What a machine or an engine does during one call, beyond the memory.

use gondwana_coherence::sync::{Answer, Ticket};
use gondwana_coherence::{Continuation, Event, Page, Waiter};
use gondwana_topology::NodeId;

/// What a machine did during one call.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages sent: receiver, message, bulk.
    pub sent: Vec<(NodeId, Vec<u8>, Vec<u8>)>,
    /// Waiters resumed, in order.
    pub resumed: Vec<Waiter>,
    /// Waiters of an engine that were resumed; it takes them itself.
    pub(crate) continuations: Vec<Continuation>,
    /// Threads that an engine lets go on, with what they are told.
    pub(crate) told: Vec<Told>,
    /// What a monitor is told, in order.
    pub observed: Vec<Observed>,
}

/// What a machine tells a monitor: see [`Env::observe`](gondwana_coherence::Env::observe).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Observed {
    /// What happens.
    pub event: Event,
    /// The first page.
    pub first: Page,
    /// How many pages there are.
    pub count: u32,
    /// The other node.
    pub peer: NodeId,
}

/// What an engine tells a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// It holds the mutex.
    Granted(Waiter),
    /// It goes on from the barrier.
    Passed(Waiter),
    /// The manager of an object has answered.
    Answered(Ticket, Answer),
}
