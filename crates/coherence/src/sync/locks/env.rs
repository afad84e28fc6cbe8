//! What the machine of lock tokens needs of its node.

use super::{LockMessage, Object};
use crate::slices::Slices;
use crate::{Outcome, Waiter};
use gondwana_topology::NodeId;
use std::time::Duration;

/// How a waiter's attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockGrant {
    /// Its thread holds the mutex.
    Acquired,
    /// Its trylock failed: `EBUSY`.
    Busy,
    /// The mutex is common: the thread must try there. Whoever has had the mutex before has released all that it wrote.
    Common,
}

/// The node as the machine of lock tokens sees it.
pub trait LockEnv {
    /// Sends a message; `to` is never this node. Messages between two nodes arrive in the order sent.
    fn send(&mut self, to: NodeId, message: &LockMessage);
    /// The token is about to leave for `to`, which alone learns of it; or the mutex is about to become common, which any node can
    /// learn (`None`). What threads of this node wrote must be released first. `Done` if it is already, otherwise the node calls
    /// [`Locks::flushed`](super::Locks::flushed) when it is.
    fn pass(&mut self, object: Object, to: Option<NodeId>) -> Outcome;
    /// The token arrived from another node to be used here: the node acquires.
    fn arrived(&mut self, object: Object, from: NodeId);
    /// The time since some moment.
    fn now(&self) -> Duration;
    /// A thread of this node runs, and may use a mutex before long.
    fn is_active(&self) -> bool;
    /// As [`Env::is_computing`](crate::Env::is_computing).
    fn is_computing(&self) -> bool {
        self.is_active()
    }
    /// The slices in which this node keeps pages; tokens stay in the same ones.
    fn slices(&mut self) -> Option<&mut Slices> {
        None
    }
    /// True if mutexes may become common.
    fn can_be_common(&self) -> bool {
        false
    }
    /// Has the nodes lock and unlock a mutex, which nobody holds, in memory that they have in common, from now on; true if they can. The
    /// hardware keeps that coherent. Whoever unlocks it there must have released before.
    fn make_common(&mut self, _object: Object) -> bool {
        false
    }
    /// True if a node has done that.
    fn is_common(&mut self, _object: Object) -> bool {
        false
    }
    /// The operation begun with this waiter is decided.
    fn resume(&mut self, waiter: Waiter, grant: LockGrant);
}
