use super::pending::Continuation;
use crate::sync::{Answer, KeeperMessage, LockGrant, Object, Request, SyncMessage, Ticket};
use crate::{Env, Waiter};
use gondwana_topology::NodeId;

/// The node as its [`Engine`](super::Engine) sees it: beside its memory the transport of synchronisation, and the threads
/// that wait for it.
///
/// All messages from one node to another, those of [`Env`] too, arrive in the order sent; `to` is never this node.
pub trait EngineEnv: Env {
    /// A thread of this node runs, and may use a mutex before long.
    fn is_active(&self) -> bool;
    /// See [`LockEnv::can_be_common`](crate::sync::LockEnv::can_be_common).
    fn can_mutexes_be_common(&self) -> bool {
        false
    }
    /// See [`LockEnv::make_common`](crate::sync::LockEnv::make_common).
    fn make_mutex_common(&mut self, _object: Object) -> bool {
        false
    }
    /// See [`LockEnv::is_common`](crate::sync::LockEnv::is_common).
    fn is_mutex_common(&mut self, _object: Object) -> bool {
        false
    }
    /// One of the engine's own waiters for which [`Env::resume`] was called, each once.
    fn next_continuation(&mut self) -> Option<Continuation>;
    /// Sends a message about a mutex or a barrier.
    fn send_sync(&mut self, to: NodeId, message: SyncMessage, payload: &[u8]);
    /// As [`EngineEnv::send_sync`], if the node need not hear of it before one of its threads is at a barrier, or, if it is about
    /// the thread that is arriving here, before that one has waited for a while.
    fn leave_sync(&mut self, to: NodeId, message: SyncMessage, payload: &[u8]) {
        self.send_sync(to, message, payload);
    }
    /// Sends a request to the manager of an object.
    fn send_request(&mut self, to: NodeId, ticket: Ticket, request: Request, payload: &[u8]);
    /// Answers a request.
    fn send_answer(&mut self, to: NodeId, ticket: Ticket, answer: Answer, payload: &[u8]);
    /// Sends a message about an object that does not rest at its manager.
    fn send_keeper(&mut self, to: NodeId, message: KeeperMessage, payload: &[u8]);
    /// A thread of this node has its answer.
    fn answered(&mut self, ticket: Ticket, answer: Answer);
    /// A thread of this node that waited for a mutex is decided about.
    fn granted(&mut self, waiter: Waiter, grant: LockGrant);
    /// A thread of this node passes a barrier, as the serial one or not.
    fn passed(&mut self, waiter: Waiter, serial: bool);
}
