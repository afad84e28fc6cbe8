//! A `csm` machine alone, and the messages that its peers send.

use crate::effects::Effects;
use crate::memory::{Memory, SimEnv, encoded};
use gondwana_coherence::{
    Access, Csm, CsmMessage, CsmOptions, DiffEntry, Encoded, Grant, Layout, Managers, Outcome, Page,
    Protocol, Region, State, SyncPoint, Violation, Waiter,
};
use gondwana_topology::NodeId;

/// Pages of the span.
pub const PAGES: u32 = 8;
/// Bytes of a page.
pub const SIZE: usize = PAGE_SIZE as usize;
/// The same, as layouts have it.
const PAGE_SIZE: u32 = 4;
/// The node of the machine.
pub const ME: NodeId = NodeId(0);
/// Another node.
pub const A: NodeId = NodeId(1);
/// The third node.
pub const B: NodeId = NodeId(2);
/// What waits at faults and releases.
pub const WAITER: Waiter = Waiter(7);

/// Node 0 of three; it manages pages 0 to 3, node 1 the others.
pub struct Rig {
    /// The machine.
    pub machine: Csm,
    /// Its memory.
    pub memory: Memory,
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}

impl Rig {
    /// A machine with default options.
    pub fn new() -> Self {
        Self::with(CsmOptions::default())
    }

    /// A machine with these options.
    pub fn with(options: CsmOptions) -> Self {
        let half = |first, node| Region { first: Page(first), count: 4, managers: Managers::Node(node) };
        let layout = Layout::new(3, ME, PAGE_SIZE, vec![half(0, ME), half(4, A)]);
        Self { machine: Csm::new(layout, options), memory: Memory::new(PAGES as usize, SIZE) }
    }

    /// Calls the machine; returns what it did beyond its memory.
    pub fn call<R>(&mut self, act: impl FnOnce(&mut Csm, &mut SimEnv<'_>) -> R) -> (R, Effects) {
        let mut effects = Effects::default();
        let mut env = SimEnv::new(ME, &mut self.memory, &mut effects);
        let result = act(&mut self.machine, &mut env);
        (result, effects)
    }

    /// A thread faults.
    pub fn fault(&mut self, page: u32, access: Access, ahead: u32) -> (Outcome, Effects) {
        self.call(|machine, env| machine.fault(Page(page), access, ahead, WAITER, env))
    }

    /// The node releases.
    pub fn release(&mut self) -> (Outcome, Effects) {
        self.call(|machine, env| machine.release(SyncPoint::default(), WAITER, env))
    }

    /// The node acquires.
    pub fn acquire(&mut self) {
        self.call(|machine, env| machine.acquire(SyncPoint::default(), env));
    }

    /// A message arrives, which must be permitted.
    pub fn take(&mut self, from: NodeId, message: CsmMessage, bulk: &[u8]) -> Effects {
        let (result, effects) = self.try_take(from, message, bulk);
        result.expect("the message is right");
        effects
    }

    /// A message arrives, which may be refused.
    pub fn try_take(
        &mut self,
        from: NodeId,
        message: CsmMessage,
        bulk: &[u8],
    ) -> (Result<(), Violation>, Effects) {
        self.call(|machine, env| machine.message(from, &encoded(&message), bulk, env))
    }

    /// What the node is to a page.
    pub fn state(&self, page: u32) -> State {
        self.machine.page(Page(page)).state
    }

    /// What the program may do with a page.
    pub fn access(&self, page: u32) -> Access {
        self.memory.access[page as usize]
    }

    /// Brings copies of `count` pages from node 1.
    pub fn fetch(&mut self, first: u32, count: u32, access: Access) {
        assert_eq!(self.fault(first, access, count - 1).0, Outcome::Wait);
        let effects = self.take(A, pages(first, count, Grant::Copy), &vec![0; count as usize * SIZE]);
        assert_eq!(effects.resumed, [WAITER]);
    }
}

/// A request for pages.
pub fn fetch(first: u32, count: u32, write: bool, requester: NodeId) -> CsmMessage {
    CsmMessage::Fetch { first: Page(first), count, write, requester, completed: 0 }
}

/// An answer with pages.
pub fn pages(first: u32, count: u32, grant: Grant) -> CsmMessage {
    CsmMessage::Pages { first: Page(first), asked: count, served: count, grant }
}

/// A write notice of flush 1.
pub fn notices(origin: NodeId, page: u32) -> CsmMessage {
    CsmMessage::Notices { flush: 1, origin, pages: vec![Page(page)], updates: vec![] }
}

/// A diff of one page in flush 1.
pub fn diffs(origin: NodeId, page: u32, valid: bool) -> CsmMessage {
    let entries = vec![DiffEntry { page: Page(page), length: 3, valid }];
    CsmMessage::Diffs { flush: 1, origin, completed: 0, entries }
}

/// The only message of a call: receiver, message, bulk.
pub fn only(effects: Effects) -> (NodeId, CsmMessage, Vec<u8>) {
    let [(to, message, bulk)] = &effects.sent[..] else {
        panic!("one message was expected, not {:?}", effects.sent)
    };
    (*to, decoded(message), bulk.clone())
}

/// A message, decoded.
pub fn decoded(message: &[u8]) -> CsmMessage {
    CsmMessage::decode(message).expect("machines send messages of their protocol")
}
