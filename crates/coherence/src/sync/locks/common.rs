//! Common mutexes: all nodes lock and unlock them in memory that the hardware keeps coherent.

use super::{LockEnv, LockGrant, Locks};
use crate::sync::entry::Word;
use crate::sync::{LockMessage, Object};
use gondwana_topology::NodeId;

/// When its token has left a node so often, a mutex becomes common where that is possible: who locks and unlocks it is told by
/// no message, however often it changes hands. Nodes but for the manager, where it has rested before anybody used it, count one more. With 0
/// it is common as soon as it is used.
pub(super) const COMMON_AFTER: u32 = 2;

/// A node that has asked for the token learns that the mutex is common.
pub(super) fn send_common(object: Object, to: NodeId, env: &mut dyn LockEnv) {
    env.send(to, &LockMessage::Token { object, kept: false, common: true });
}

impl Locks {
    /// A thread of this node, or another node, wants a mutex that nobody here has used yet: it is common, or its token rests at the manager.
    /// All nodes decide alike, as no common mutex ever loses its place to another.
    pub(super) fn settle(&mut self, object: Object, env: &mut dyn LockEnv) {
        if self.table.entry(object).word() != Word::New {
            return;
        }
        let is_common = self.common_after == 0 && (env.is_common(object) || self.make_common(object, env));
        self.table.entry(object).set(if is_common {
            Word::Common
        } else if (self.manager)(object) == self.me {
            Word::Free
        } else {
            Word::Absent
        });
    }

    /// Makes the mutex common if that is possible.
    pub(super) fn make_common(&mut self, object: Object, env: &mut dyn LockEnv) -> bool {
        let made = env.make_common(object);
        self.counters.common += u64::from(made);
        made
    }

    /// The token that was asked for does not come: the mutex is common.
    pub(super) fn learn_common(&mut self, object: Object, from: NodeId, env: &mut dyn LockEnv) -> bool {
        let Some(queue) = self.queues.get_mut(object) else { return false };
        if !std::mem::take(&mut queue.requested) {
            return false;
        }
        let next = queue.next.take();
        env.arrived(object, from);
        if let Some(next) = next {
            send_common(object, next.node, env);
        }
        self.becomes_common(object, env);
        true
    }

    /// Threads of this node that wait for the mutex, or try it, do so where it is common.
    pub(super) fn becomes_common(&mut self, object: Object, env: &mut dyn LockEnv) {
        self.table.entry(object).set(Word::Common);
        let waiting = self.queues.get_mut(object).map(|queue| std::mem::take(&mut queue.waiting));
        for waiting in waiting.into_iter().flatten() {
            env.resume(waiting.waiter, LockGrant::Common);
        }
        self.queues.forget(object);
    }
}
