use super::env::EngineEnv;
use super::pending::{Pending, PendingWork};
use crate::slices::Slices;
use crate::sync::{
    BarrierEnv, BarrierMessage, KeeperEnv, KeeperMessage, LockEnv, LockGrant, LockMessage, ManagerOf, Object,
    ObjectKey, Reply, Request, SyncMessage, Ticket,
};
use crate::{Outcome, Protocol, SyncPoint, Waiter};
use gondwana_topology::NodeId;
use std::time::Duration;

/// The node as the machines of synchronisation see it.
pub(super) struct SyncEnv<'a, E> {
    pub me: NodeId,
    pub peer: Option<NodeId>,
    pub protocol: &'a mut dyn Protocol,
    pub manager: &'a ManagerOf,
    pub pending: &'a mut Pending,
    pub payload: &'a mut Vec<u8>,
    pub env: &'a mut E,
}

impl<E: EngineEnv> SyncEnv<'_, E> {
    /// Releases what this node wrote before `work` is done; `Wait` if answers must come first.
    fn release_before(&mut self, at: SyncPoint, work: PendingWork) -> Outcome {
        let continuation = self.pending.add(work);
        let outcome = self.protocol.release(at, continuation.waiter(), self.env);
        if outcome == Outcome::Done {
            self.pending.take(continuation);
        }
        outcome
    }

    /// Between two nodes what happens at a barrier follows from messages of the one to the other.
    fn at_barrier(&self, barrier: Object) -> SyncPoint {
        SyncPoint { object: Some(barrier), peer: self.peer, acquires_next: true }
    }

    /// Calls `send` with what the coherence protocol has a message carry by which `to` learns of a release.
    fn publish(&mut self, to: NodeId, send: impl FnOnce(&mut E, &[u8])) {
        self.protocol.publish(to, self.payload, self.env);
        send(self.env, self.payload);
        self.payload.clear();
    }

    /// Sends a message; of a release that is complete if it `tells` of one.
    fn send(
        &mut self,
        to: NodeId,
        message: SyncMessage,
        tells: bool,
        send: fn(&mut E, NodeId, SyncMessage, &[u8]),
    ) {
        if tells {
            self.protocol.publish(to, self.payload, self.env);
        }
        send(self.env, to, message, self.payload);
        self.payload.clear();
    }
}

impl<E: EngineEnv> LockEnv for SyncEnv<'_, E> {
    fn send(&mut self, to: NodeId, message: &LockMessage) {
        let tells = matches!(message, LockMessage::Token { .. });
        self.send(to, SyncMessage::Lock(*message), tells, E::send_sync);
    }

    fn pass(&mut self, object: Object, to: Option<NodeId>) -> Outcome {
        let at = SyncPoint { object: Some(object), peer: to, ..SyncPoint::default() };
        self.release_before(at, PendingWork::Token(object))
    }

    fn arrived(&mut self, object: Object, from: NodeId) {
        self.protocol
            .acquire(SyncPoint { object: Some(object), peer: Some(from), ..SyncPoint::default() }, self.env);
    }

    fn now(&self) -> Duration {
        self.env.now()
    }

    fn is_active(&self) -> bool {
        self.env.is_active()
    }

    fn is_computing(&self) -> bool {
        self.env.is_computing()
    }

    fn slices(&mut self) -> Option<&mut Slices> {
        self.protocol.slices()
    }

    fn can_be_common(&self) -> bool {
        self.env.can_mutexes_be_common()
    }

    fn make_common(&mut self, object: Object) -> bool {
        self.env.make_mutex_common(object)
    }

    fn is_common(&mut self, object: Object) -> bool {
        self.env.is_mutex_common(object)
    }

    fn resume(&mut self, waiter: Waiter, grant: LockGrant) {
        self.env.granted(waiter, grant);
    }
}

/// True if the receiver learns of releases from it.
fn tells(message: &BarrierMessage) -> bool {
    match message {
        BarrierMessage::Arrive { .. } | BarrierMessage::Release { .. } | BarrierMessage::Permit { .. } => {
            true
        }
        BarrierMessage::Decline { .. } | BarrierMessage::Hurry { .. } => false,
    }
}

impl<E: EngineEnv> BarrierEnv for SyncEnv<'_, E> {
    fn manager(&self, barrier: Object) -> NodeId {
        (self.manager)(barrier)
    }

    fn send(&mut self, to: NodeId, message: &BarrierMessage) {
        self.send(to, SyncMessage::Barrier(*message), tells(message), E::send_sync);
    }

    fn leave(&mut self, to: NodeId, message: &BarrierMessage) {
        self.send(to, SyncMessage::Barrier(*message), tells(message), E::leave_sync);
    }

    fn release(&mut self, barrier: Object) -> Outcome {
        self.release_before(self.at_barrier(barrier), PendingWork::Barrier(barrier))
    }

    fn acquire(&mut self, barrier: Object) {
        self.protocol.acquire(self.at_barrier(barrier), self.env);
    }

    fn resume(&mut self, waiter: Waiter, serial: bool) {
        self.env.passed(waiter, serial);
    }
}

impl<E: EngineEnv> KeeperEnv for SyncEnv<'_, E> {
    fn send(&mut self, to: NodeId, message: KeeperMessage) {
        if message.tells() {
            self.publish(to, |env, payload| env.send_keeper(to, message, payload));
        } else {
            self.env.send_keeper(to, message, &[]);
        }
    }

    fn submit(&mut self, manager: NodeId, ticket: Ticket, request: Request) {
        self.publish(manager, |env, payload| env.send_request(manager, ticket, request, payload));
    }

    fn answer(&mut self, Reply { to, ticket, answer }: Reply) {
        if to == self.me {
            self.env.answered(ticket, answer);
        } else {
            self.publish(to, |env, payload| env.send_answer(to, ticket, answer, payload));
        }
    }

    /// Its next user may be on any node.
    fn release(&mut self, key: ObjectKey) -> Outcome {
        let at = SyncPoint { object: Some(key.object), peer: self.peer, ..SyncPoint::default() };
        self.release_before(at, PendingWork::Kept(key))
    }

    fn arrived(&mut self, key: ObjectKey) {
        self.protocol.acquire(SyncPoint { object: Some(key.object), ..SyncPoint::default() }, self.env);
    }
}
