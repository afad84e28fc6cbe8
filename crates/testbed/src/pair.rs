//! Two `csm` machines that can reach each other's memory.

use crate::effects::Effects;
use crate::memory::{Memory, SimEnv, encoded};
use gondwana_coherence::{
    Access, Csm, CsmMessage, CsmOptions, Encoded, Layout, Managers, Outcome, Page, Protocol, Region, State,
    SyncPoint, Waiter,
};
use gondwana_topology::{Id, NodeId};
use std::collections::VecDeque;

/// Pages of the pair.
pub const PAGES: u32 = 8;
/// Bytes of a page.
pub const SIZE: usize = PAGE_SIZE as usize;
/// The same, as layouts have it.
const PAGE_SIZE: u32 = 4;
/// The node that manages all pages.
pub const HOME: usize = 0;
/// The other node.
pub const READER: usize = 1;

/// The home manages all pages.
pub struct Pair {
    /// One for each node.
    pub machines: [Csm; 2],
    /// One for each node.
    pub memories: [Memory; 2],
}

impl Pair {
    /// A pair with default options, or without one-sided reads.
    pub fn new(one_sided: bool) -> Self {
        Self::with(CsmOptions { one_sided, ..CsmOptions::default() })
    }

    /// A pair with these options.
    pub fn with(options: CsmOptions) -> Self {
        let machine = |me| {
            let managers = Managers::Node(NodeId::from_index(HOME));
            let layout = Layout::new(
                2,
                NodeId(me),
                PAGE_SIZE,
                vec![Region { first: Page(0), count: PAGES, managers }],
            );
            Csm::new(layout, options)
        };
        let memory = || Memory::new(PAGES as usize, SIZE);
        Self { machines: [machine(0), machine(1)], memories: [memory(), memory()] }
    }

    /// Calls one machine; returns what it did beyond its memory.
    pub fn call<R>(&mut self, node: usize, act: impl FnOnce(&mut Csm, &mut SimEnv<'_>) -> R) -> (R, Effects) {
        let mut effects = Effects::default();
        let [first, second] = &mut self.memories;
        let (own, other) = if node == 0 { (first, second) } else { (second, first) };
        let peers = vec![(NodeId::from_index(1 - node), other)];
        let mut env = SimEnv::new(NodeId::from_index(node), own, &mut effects).beside(peers);
        let result = act(&mut self.machines[node], &mut env);
        (result, effects)
    }

    /// A thread of a node faults; the messages that the node sends.
    pub fn fault(
        &mut self,
        node: usize,
        page: u32,
        access: Access,
        ahead: u32,
    ) -> (Outcome, Vec<CsmMessage>) {
        let (outcome, effects) =
            self.call(node, |machine, env| machine.fault(Page(page), access, ahead, Waiter(1), env));
        (outcome, messages(effects))
    }

    /// The home's threads write some pages, which nobody else has.
    pub fn touch(&mut self, count: u32) {
        assert_eq!(self.fault(HOME, 0, Access::Write, count - 1), (Outcome::Done, vec![]));
        for (page, value) in (0..count as usize).zip(10..) {
            self.memories[HOME].write(page * SIZE, value);
        }
    }

    /// The reader asks for the first pages by a message; gives what the home answers.
    pub fn asks_home(&mut self, count: u32, write: bool) -> Vec<CsmMessage> {
        let requester = NodeId::from_index(READER);
        let fetch = CsmMessage::Fetch { first: Page(0), count, write, requester, completed: 0 };
        let (result, effects) =
            self.call(HOME, |machine, env| machine.message(requester, &encoded(&fetch), &[], env));
        assert_eq!(result, Ok(()));
        messages(effects)
    }

    /// Makes the home look who has come for a page.
    pub fn asks_home_about(&mut self, page: u32) {
        self.call(HOME, |machine, env| machine.withdraw_page(Page(page), env));
        self.call(HOME, |machine, env| machine.expose_withdrawn(env));
    }

    /// A node releases what it wrote; the other one then acquires.
    pub fn synchronise(&mut self, node: usize) {
        self.release(node);
        self.acquire(1 - node);
    }

    /// A node releases what it wrote, and all messages that this takes arrive.
    pub fn release(&mut self, node: usize) {
        let (_, effects) =
            self.call(node, |machine, env| machine.release(SyncPoint::default(), Waiter(2), env));
        let mut sent: VecDeque<_> = effects.sent.into();
        while let Some((to, message, bulk)) = sent.pop_front() {
            let from = NodeId(1 - to.0);
            let (result, effects) =
                self.call(to.index(), |machine, env| machine.message(from, &message, &bulk, env));
            result.unwrap();
            sent.extend(effects.sent);
        }
    }

    /// A node acquires.
    pub fn acquire(&mut self, node: usize) {
        self.call(node, |machine, env| machine.acquire(SyncPoint::default(), env));
    }

    /// A thread of a node writes a byte of the first page; returns how many faults that takes.
    pub fn write(&mut self, node: usize, address: usize, value: u8) -> usize {
        let faults = self.touch_first_page(node, Access::Write);
        self.memories[node].write(address, value);
        faults
    }

    /// A thread of a node reads a byte of the first page.
    pub fn read(&mut self, node: usize, address: usize) -> u8 {
        self.touch_first_page(node, Access::Read);
        self.memories[node].read(address)
    }

    /// Takes faults until an access is allowed, none of which may need a message; returns how many.
    fn touch_first_page(&mut self, node: usize, access: Access) -> usize {
        let mut faults = 0;
        while self.access(node, 0) < access {
            assert_eq!(self.fault(node, 0, access, 0), (Outcome::Done, vec![]));
            faults += 1;
        }
        faults
    }

    /// What a node is to a page.
    pub fn state(&self, node: usize, page: u32) -> State {
        self.machines[node].page(Page(page)).state
    }

    /// What the program of a node may do with a page.
    pub fn access(&self, node: usize, page: usize) -> Access {
        self.memories[node].access[page]
    }
}

/// The messages sent, decoded.
pub fn messages(effects: Effects) -> Vec<CsmMessage> {
    let sent = effects.sent.into_iter().map(|(_, message, _)| message);
    sent.map(|message| CsmMessage::decode(&message).expect("a message of the protocol")).collect()
}
