//! What the protocol machines act on: this node's pages, the fabric and the waiting threads.

use crate::Thread;
use crate::monitor::Tap;
use crate::slots::{Slots, event};
use crate::stats::MessageCounts;
use crate::wire::{Wire, kind_of};
use gondwana_coherence::{Access, Env, Incident, Message, Page, Waiter};
use gondwana_fabric::{Fabric, SendError};
use gondwana_memory::{PAGE_SIZE, PageBytes, Pages};
use gondwana_topology::NodeId;
use serde::Serialize;
use std::sync::Arc;

/// What waits for an operation of the coherence protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// A thread, in its slot.
    Thread(crate::slots::Slot),
    /// Work of the node itself, by its number.
    Work(u32),
}

const WORK: u64 = 1 << 63;

impl From<Continuation> for Waiter {
    fn from(continuation: Continuation) -> Self {
        match continuation {
            Continuation::Thread(slot) => Self(u64::from(slot.0)),
            Continuation::Work(number) => Self(WORK | u64::from(number)),
        }
    }
}

impl From<Waiter> for Continuation {
    fn from(waiter: Waiter) -> Self {
        let number = (waiter.0 & !WORK) as u32;
        if waiter.0 & WORK == 0 { Self::Thread(crate::slots::Slot(number)) } else { Self::Work(number) }
    }
}

/// The node's side of the machines.
pub struct Ports {
    pub pages: Pages,
    pub fabric: Arc<dyn Fabric>,
    pub slots: Arc<Slots>,
    /// Work of the node itself that may go on.
    pub ready: Vec<u32>,
    pub messages: MessageCounts,
    /// Who observes the node, if it is monitored.
    pub tap: Option<Box<Tap>>,
    head: Vec<u8>,
}

impl Ports {
    pub fn new(pages: Pages, fabric: Arc<dyn Fabric>, slots: Arc<Slots>) -> Self {
        let messages = MessageCounts::default();
        Self { pages, fabric, slots, ready: vec![], messages, tap: None, head: vec![] }
    }

    /// Sends anything to another node. A peer that is lost is noticed by the service thread, which ends the run.
    pub fn post(&mut self, to: NodeId, wire: &Wire, bulk: &[u8]) {
        let head = self.encode(wire);
        self.messages.count(wire.kind(), head.len() + bulk.len());
        self.transmit(to, head, &[bulk]);
    }

    fn encode(&mut self, wire: &impl Serialize) -> Vec<u8> {
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        postcard::to_extend(wire, head).expect("messages can be encoded")
    }

    fn transmit(&mut self, to: NodeId, head: Vec<u8>, bulk: &[&[u8]]) {
        accept(to, self.fabric.send(to, &head, bulk));
        self.head = head;
    }
}

/// A peer that is lost is no error here: the service thread tells the launcher, which ends the run.
fn accept(to: NodeId, sent: Result<(), SendError>) {
    match sent {
        Ok(()) | Err(SendError::Lost(_)) => {}
        Err(error) => crate::fatal(&format!("node {to}: {error}")),
    }
}

/// [`Wire::Coherence`] without owning the message: encoded alike.
#[derive(Serialize)]
enum Coherent<'a> {
    Coherence(&'a Message),
}

fn convert(access: Access) -> gondwana_memory::Access {
    match access {
        Access::None => gondwana_memory::Access::None,
        Access::Read => gondwana_memory::Access::Read,
        Access::Write => gondwana_memory::Access::Write,
    }
}

impl Env for Ports {
    fn protect(&mut self, first: Page, count: u32, access: Access) {
        if let Err(error) = self.pages.protect(first.0, count, convert(access)) {
            crate::fatal(&format!("pages {} to {}: {error}", first.0, first.0 + count - 1));
        }
    }

    fn make_twin(&mut self, page: Page) {
        self.pages.make_twin(page.0);
    }

    fn drop_twin(&mut self, page: Page) {
        self.pages.drop_twin(page.0);
    }

    fn diff(&mut self, page: Page, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        let bytes = self.pages.diff(page.0, out);
        if let Some(tap) = self.tap.as_ref().filter(|_| bytes > 0) {
            tap.wrote(page, &out[begin..]);
        }
        bytes
    }

    fn patch(&mut self, page: Page, diff: &[u8]) {
        if let Err(error) = self.pages.patch(page.0, diff) {
            crate::fatal(&format!("a diff of page {} is malformed: {error}", page.0));
        }
    }

    fn merge(&mut self, page: Page, incoming: &[u8]) {
        let incoming: &PageBytes = incoming.try_into().expect("one page");
        self.pages.merge(page.0, incoming);
    }

    fn install(&mut self, first: Page, incoming: &[u8]) {
        self.pages.install(first.0, incoming);
    }

    fn clear(&mut self, first: Page, count: u32) {
        self.pages.clear(first.0, count);
    }

    fn send(&mut self, to: NodeId, message: &Message, bulk: &[u8]) {
        if let Some(tap) = &mut self.tap {
            tap.sends(to, message, Thread::acting_number());
        }
        let head = self.encode(&Coherent::Coherence(message));
        self.messages.count(kind_of(message), head.len() + bulk.len());
        self.transmit(to, head, &[bulk]);
    }

    fn send_pages(&mut self, to: NodeId, message: &Message, first: Page, count: u32) {
        if let Some(tap) = &mut self.tap {
            tap.sends(to, message, None);
        }
        let head = self.encode(&Coherent::Coherence(message));
        self.messages.count(kind_of(message), head.len() + count as usize * PAGE_SIZE);
        accept(to, self.fabric.send(to, &head, &[self.pages.contents(first.0, count)]));
        self.head = head;
    }

    fn resume(&mut self, waiter: Waiter) {
        match waiter.into() {
            Continuation::Thread(slot) => {
                if let Some(tap) = &mut self.tap {
                    tap.resumed(slot);
                }
                self.slots.announce(slot, event::COHERENT, 0);
            }
            Continuation::Work(number) => self.ready.push(number),
        }
    }

    fn observe(&mut self, incident: Incident, first: Page, count: u32, peer: NodeId) {
        if let Some(tap) = &mut self.tap {
            (first.0..first.0 + count).for_each(|page| tap.observes(incident, Page(page), peer));
        }
    }
}
