//! The manager of `once` controls, keys, work-sharing constructs and threads: it answers the requests of all nodes about what is in
//! its charge, at once or when another request lets it.

use super::key::Keys;
use super::once::Once;
use super::request::{Caller, Reply, Request, Ticket};
use super::thread::Threads;
use super::work_sharing::WorkSharing;
use super::{Object, SyncError};
use gondwana_topology::NodeId;
use std::collections::HashMap;

/// What one node manages for all, and its threads.
#[derive(Debug, Default)]
pub struct Server {
    onces: HashMap<Object, Once>,
    work_sharing: WorkSharing,
    threads: Threads,
    keys: Keys,
}

impl Server {
    /// A server that knows nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A thread of node `from` (perhaps this one) asks. Appends to `out` the answers that are due, to this and to
    /// earlier requests, in the order in which they must be sent. Every ticket gets exactly one final answer.
    pub fn request(&mut self, from: NodeId, ticket: Ticket, request: Request, out: &mut Vec<Reply>) {
        let caller = Caller { node: from, ticket };
        if let Some(result) = self.perform(caller, request, out) {
            out.push(caller.finish(result));
        }
    }

    /// `None`: the caller has its answer already, or gets it later.
    fn perform(
        &mut self,
        caller: Caller,
        request: Request,
        out: &mut Vec<Reply>,
    ) -> Option<Result<i64, SyncError>> {
        match request {
            Request::OnceEnter { once, stale } => {
                self.onces.entry(once).or_default().enter(caller, stale, out);
                None
            }
            Request::OnceDone { once } => Some(self.once(once).and_then(|state| state.done(out))),
            Request::OnceFailed { once } => Some(self.once(once).and_then(|state| state.failed(out))),
            Request::CancelJoin { thread } => {
                self.threads.cancel(caller, thread, out);
                None
            }
            Request::ThreadStart { thread, detached } => Some(self.threads.start(thread, detached)),
            Request::ThreadExit { thread, value } => Some(self.threads.exit(thread, value, out)),
            Request::Join { thread, by, attempt } => self.threads.join(caller, thread, by, attempt),
            Request::Detach { thread } => Some(self.threads.detach(thread)),
            Request::KeyCreate { destructor } => Some(self.keys.create(destructor)),
            Request::KeyDelete { key } => Some(self.keys.delete(key)),
            Request::KeyDestructor { key } => Some(self.keys.destructor(key)),
            Request::Claim { construct, settled, claim } => {
                Some(Ok(self.work_sharing.claim(caller.node, construct, settled, claim)))
            }
            Request::AwaitTurn { construct, turn } => {
                self.work_sharing.await_turn(construct, turn, caller, out);
                None
            }
            Request::PassTurn { construct, settled, turns } => {
                self.work_sharing.pass_turn(construct, settled, turns, out);
                Some(Ok(0))
            }
            // Those about other objects never come here.
            _ => Some(Err(SyncError::Invalid)),
        }
    }

    fn once(&mut self, once: Object) -> Result<&mut Once, SyncError> {
        self.onces.get_mut(&once).ok_or(SyncError::Invalid)
    }
}
