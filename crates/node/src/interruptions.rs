//! Calls that are made for threads of other nodes and that may wait: which thread makes each, so that it can be interrupted.

use gondwana_coherence::sync::Ticket;
use gondwana_locks::lock;
use gondwana_topology::NodeId;
use std::collections::HashMap;
use std::sync::Mutex;

/// Who asked for a call.
type Asker = (NodeId, Ticket);

/// The calls under way, with the kernel's number of the thread that makes each.
#[derive(Default)]
pub(crate) struct Interruptions(Mutex<HashMap<Asker, UnderWay>>);

struct UnderWay {
    kernel: i32,
    asked: bool,
}

/// A call under way, until this is dropped.
pub(crate) struct Interruptible<'a> {
    interruptions: &'a Interruptions,
    asker: Asker,
}

impl Drop for Interruptible<'_> {
    fn drop(&mut self) {
        lock(&self.interruptions.0).remove(&self.asker);
    }
}

impl Interruptible<'_> {
    /// True if the thread that waits for this call wants it to end.
    pub(crate) fn is_asked(&self) -> bool {
        lock(&self.interruptions.0).get(&self.asker).is_some_and(|call| call.asked)
    }
}

impl Interruptions {
    /// The calling thread makes a call for another node's.
    pub(crate) fn begin(&self, from: NodeId, ticket: Ticket) -> Interruptible<'_> {
        let asker = (from, ticket);
        lock(&self.0).insert(asker, UnderWay { kernel: gondwana_sys::thread(), asked: false });
        Interruptible { interruptions: self, asker }
    }

    /// Has `interrupt` interrupt the thread that makes a call, if it is under way. The thread goes on to no other call meanwhile.
    pub(crate) fn interrupt(&self, from: NodeId, ticket: Ticket, interrupt: impl FnOnce(i32)) {
        if let Some(call) = lock(&self.0).get_mut(&(from, ticket)) {
            call.asked = true;
            interrupt(call.kernel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_under_way_is_interrupted() {
        let interruptions = Interruptions::default();
        let never = |_| panic!("the call is not under way");
        interruptions.interrupt(NodeId(1), Ticket(7), never);
        let call = interruptions.begin(NodeId(1), Ticket(7));
        interruptions.interrupt(NodeId(2), Ticket(7), never);
        assert!(!call.is_asked());
        let mut interrupted = 0;
        interruptions.interrupt(NodeId(1), Ticket(7), |kernel| interrupted = kernel);
        assert_eq!((interrupted, call.is_asked()), (gondwana_sys::thread(), true));
        drop(call);
        interruptions.interrupt(NodeId(1), Ticket(7), never);
    }
}
