//! What the runtime library of the program's language says to itself on other nodes.

use crate::Node;
use crate::deferred::DeferredTask;
use crate::wire::Wire;
use gondwana_topology::NodeId;

impl Node {
    /// Says something to another node, whose threads see what this node has written before. It may have to wait for other nodes.
    pub fn tell(&'static self, to: NodeId, words: Vec<u64>) {
        self.release(None);
        self.privately(move || self.core().publish(to, &Wire::Tell { releases: true, words, ticket: None }));
    }

    /// The same, and waits until the other node has been told.
    pub fn tell_and_wait(&'static self, to: NodeId, words: Vec<u64>) {
        self.release(None);
        // No error is possible.
        let _ =
            self.ask_publishing(to, move |ticket| Wire::Tell { releases: true, words, ticket: Some(ticket) });
    }

    /// The same, but for what this node has written. It does not wait.
    pub fn tell_only(&'static self, to: NodeId, words: Vec<u64>) {
        self.privately(move || {
            self.core().env.post(to, &Wire::Tell { releases: false, words, ticket: None }, &[])
        });
    }

    /// Has the service thread do what a thread that receives messages must not.
    pub fn later(&'static self, words: Vec<u64>) {
        self.defer(DeferredTask::Later(words));
    }
}
