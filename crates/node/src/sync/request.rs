//! Questions to other nodes, and waiting for their answers.

use crate::core::Core;
use crate::numbers::error_number;
use crate::wait_slots::{WaitSlot, event};
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::sync::{Object, ObjectKey, Request, Ticket};
use gondwana_control::Awaited;
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::time::{Duration, Instant};

/// How soon the interruption of a call on another node is repeated.
const REPEAT: Duration = Duration::from_millis(5);

/// Where a wait ends that may be given up.
pub(super) enum Ended {
    Answered(Result<i64, i32>),
    TimedOut,
}

impl Node {
    /// Sends a question to another node and waits for its answer; the error is an error number.
    pub(crate) fn ask_for(
        &'static self,
        to: NodeId,
        wire: impl FnOnce(Ticket) -> Wire + 'static,
    ) -> Result<i64, i32> {
        self.ask_with(to, vec![], wire)
    }

    /// [`Node::ask_for`] with bulk data beside the question.
    pub(crate) fn ask_with(
        &'static self,
        to: NodeId,
        bulk: Vec<u8>,
        wire: impl FnOnce(Ticket) -> Wire + 'static,
    ) -> Result<i64, i32> {
        self.ask_by(move |core, ticket| core.env.post(to, &wire(ticket), &bulk))
    }

    /// [`Node::ask_for`] with a question from which the other node learns of a release.
    pub(crate) fn ask_publishing(
        &'static self,
        to: NodeId,
        wire: impl FnOnce(Ticket) -> Wire + 'static,
    ) -> Result<i64, i32> {
        self.ask_by(move |core, ticket| core.publish(to, &wire(ticket)))
    }

    /// Asks for an access to another node's memory, with bulk data beside the question. An error is that the run ends.
    pub(crate) fn ask_for_access(
        &'static self,
        to: NodeId,
        bulk: Vec<u8>,
        wire: impl FnOnce(Ticket) -> Wire + 'static,
    ) -> i64 {
        let ask = move || {
            self.ask_at(Thread::accessing(self), move |core, ticket| core.env.post(to, &wire(ticket), &bulk))
        };
        self.privately(ask).unwrap_or(0)
    }

    /// [`Node::ask_for_access`] where the answer is `Bytes`.
    pub(crate) fn ask_for_bytes(
        &'static self,
        to: NodeId,
        wire: impl FnOnce(Ticket) -> Wire + 'static,
    ) -> Option<Vec<u8>> {
        self.ask_for_access(to, vec![], wire);
        self.answer_bytes.take(u64::from(Thread::accessing(self).0))
    }

    fn ask_by(&'static self, send: impl FnOnce(&mut Core, Ticket) + 'static) -> Result<i64, i32> {
        self.privately(move || self.ask_at(Thread::current(self).slot, send))
    }

    /// Asks and waits for the answer at a slot.
    fn ask_at(&'static self, slot: WaitSlot, send: impl FnOnce(&mut Core, Ticket)) -> Result<i64, i32> {
        self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
        send(&mut self.core(), Ticket(u64::from(slot.0)));
        let events = self.wait_shortly(slot, event::ANSWERED, None);
        self.answer_of(slot, events)
    }

    /// [`Node::ask_for`] where no error is possible.
    pub(crate) fn ask(&'static self, to: NodeId, wire: impl FnOnce(Ticket) -> Wire + 'static) -> i64 {
        self.ask_for(to, wire).unwrap_or(0)
    }

    fn answer(&'static self, slot: WaitSlot) -> Result<i64, i32> {
        let events = self.wait(slot, event::ANSWERED, None);
        self.answer_of(slot, events)
    }

    fn answer_of(&'static self, slot: WaitSlot, events: u32) -> Result<i64, i32> {
        let result = self.waiting.slots.result(slot);
        if events & event::DONE != 0 { Ok(result) } else { Err(error_number(result)) }
    }

    /// The calling thread's name for its next request: another one than before, so that what gives up a request that has ended
    /// meanwhile does not end another one.
    pub(super) fn new_ticket(&'static self) -> Ticket {
        let thread = Thread::current(self);
        let number = thread.requests.get().wrapping_add(1) & (u32::MAX >> 1);
        thread.requests.set(number);
        Ticket(u64::from(number) << 32 | u64::from(thread.slot.0))
    }

    /// Sends a request to the node that serves it, perhaps this one.
    pub(super) fn submit(&'static self, server: NodeId, ticket: Ticket, request: Request) {
        self.core().submit(server, ticket, request);
    }

    pub(crate) fn request_of(&'static self, server: NodeId, request: Request) -> Result<i64, i32> {
        self.privately(move || {
            let slot = Thread::current(self).slot;
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            self.submit(server, self.new_ticket(), request);
            self.answer(slot)
        })
    }

    /// A request about an object, to its manager.
    pub(super) fn request(&'static self, object: usize, request: Request) -> Result<i64, i32> {
        self.request_of(self.manager(object), request)
    }

    /// Asks another node to make a call, with what travels beside the question, and waits until the answer is there, under the name
    /// that is given back. When the calling thread is interrupted, the other node is to end the call.
    pub(crate) fn ask_interruptibly(
        &'static self,
        to: NodeId,
        bulk: &[u8],
        wire: impl FnOnce(Ticket) -> Wire,
    ) -> Ticket {
        let slot = Thread::current(self).slot;
        self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
        let ticket = self.new_ticket();
        self.core().env.post(to, &wire(ticket), bulk);
        let mut events =
            self.wait_shortly(slot, event::ANSWERED | event::INTERRUPTED, None) & event::ANSWERED;
        while events == 0 {
            // Again as long as needed: the interruption may come right before the call waits.
            self.core().env.post(to, &Wire::Interrupt { ticket }, &[]);
            events = self.wait(slot, event::ANSWERED, Some(Instant::now() + REPEAT));
        }
        ticket
    }

    /// Interrupts the thread that waits at a slot, or the next wait there that can be interrupted.
    pub fn interrupt(&self, slot: WaitSlot) {
        self.waiting.slots.announce(slot, event::INTERRUPTED, 0);
    }

    /// The calling thread has not been interrupted.
    pub fn forget_interruption(&self, slot: WaitSlot) {
        self.waiting.slots.arm(slot, event::INTERRUPTED);
    }

    /// Waits for the answer to a request that `cancel` takes back when the time is over or the thread is interrupted.
    pub(super) fn await_or_cancel(
        &'static self,
        (slot, ticket): (WaitSlot, Ticket),
        server: NodeId,
        until: Option<Instant>,
        cancel: Request,
    ) -> Ended {
        let mut events = self.wait(slot, event::ANSWERED | event::INTERRUPTED, until) & event::ANSWERED;
        if events == 0 {
            self.submit(server, ticket, cancel);
            events = self.wait(slot, event::ANSWERED, None);
            if events & event::CANCELLED != 0 {
                return Ended::TimedOut;
            }
        }
        Ended::Answered(self.answer_of(slot, events))
    }

    /// A request by which others may learn of what this node wrote: that is released first, unless the object rests here.
    pub(super) fn request_released(&'static self, object: Object, request: Request) -> Result<i64, i32> {
        self.privately(move || {
            let slot = Thread::current(self).slot;
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            let ticket = self.new_ticket();
            if !self.core().submit_here(ticket, &request) {
                self.release(Some(object));
                self.submit(self.manager(to_usize(object.0)), ticket, request);
            }
            self.answer(slot)
        })
    }

    pub(super) fn request_until(
        &'static self,
        key: ObjectKey,
        request: Request,
        awaited: Awaited,
        until: Option<Instant>,
    ) -> Result<i64, i32> {
        self.privately(move || {
            let server = self.manager(to_usize(key.object.0));
            let slot = Thread::current(self).slot;
            let _noted = self.note_wait(slot, awaited, key.object.0, until);
            self.waiting.slots.arm(slot, event::QUEUED | event::ANSWERED);
            let ticket = self.new_ticket();
            self.submit(server, ticket, request);
            match self.await_or_cancel((slot, ticket), server, until, Request::Cancel { key }) {
                Ended::Answered(answer) => answer,
                Ended::TimedOut => Err(libc::ETIMEDOUT),
            }
        })
    }
}
