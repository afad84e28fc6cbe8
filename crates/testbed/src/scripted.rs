//! Machines of any protocol that do what a test says. Their messages arrive when it says so, in the order in which all of them
//! were sent.

use crate::effects::{Effects, Observed};
use crate::memory::{Memory, SimEnv};
use gondwana_coherence::{
    Access, Event, Layout, Managers, Outcome, Page, Protocol, Region, SyncPoint, Violation, Waiter,
};
use gondwana_topology::{Id, NodeId};
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes of a page.
pub const SIZE: usize = PAGE_SIZE as usize;
/// The same, as layouts have it.
const PAGE_SIZE: u32 = 4;

/// What a node has told a monitor: the node, the event, the first page, the count of pages, the peer.
pub type Seen = (u16, Event, u32, u32, u16);

/// A message under way.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The message.
    pub message: Vec<u8>,
    /// What comes beside it.
    pub bulk: Vec<u8>,
}

/// Some nodes, of which node 0 manages all pages.
pub struct Scripted {
    machines: Vec<Box<dyn Protocol>>,
    /// One for each node.
    pub memories: Vec<Memory>,
    /// Messages that have not arrived, the oldest first.
    pub under_way: VecDeque<Letter>,
    /// Who has been resumed.
    pub resumed: Vec<Waiter>,
    /// The time of the next call.
    pub now: Duration,
    /// By how much the clock goes on with each look at it.
    pub tick: Duration,
    seen: Vec<Seen>,
}

impl Scripted {
    /// So many nodes with so many pages, all of them observed, each with the machine that `start` makes for it.
    pub fn new(nodes: u16, pages: u32, start: impl Fn(Layout) -> Box<dyn Protocol>) -> Self {
        let machine = |me| {
            let managers = Managers::Node(NodeId(0));
            start(Layout::new(
                nodes,
                NodeId(me),
                PAGE_SIZE,
                vec![Region { first: Page(0), count: pages, managers }],
            ))
        };
        let mut memories = vec![Memory::new(pages as usize, SIZE); usize::from(nodes)];
        memories.iter_mut().for_each(|memory| memory.observed = true);
        Self {
            machines: (0..nodes).map(machine).collect(),
            memories,
            under_way: VecDeque::new(),
            resumed: Vec::new(),
            now: Duration::ZERO,
            tick: Duration::ZERO,
            seen: Vec::new(),
        }
    }

    /// Calls the machine of a node, which can reach the memory of the others.
    pub fn call<R>(&mut self, node: usize, act: impl FnOnce(&mut dyn Protocol, &mut SimEnv<'_>) -> R) -> R {
        let mut effects = Effects::default();
        let (mut own, mut peers) = (None, Vec::new());
        for (number, memory) in self.memories.iter_mut().enumerate() {
            match number == node {
                true => own = Some(memory),
                false => peers.push((NodeId::from_index(number), memory)),
            }
        }
        let own = own.expect("there is such a node");
        let me = NodeId::from_index(node);
        let mut env = SimEnv::new(me, own, &mut effects).beside(peers);
        env.now.set(self.now);
        env.tick = self.tick;
        let result = act(&mut *self.machines[node], &mut env);
        self.now = env.now.get();
        let letter =
            |(to, message, bulk): (NodeId, _, _)| Letter { from: node, to: to.index(), message, bulk };
        self.under_way.extend(effects.sent.into_iter().map(letter));
        self.resumed.append(&mut effects.resumed);
        let seen = |Observed { event, first, count, peer }| (me.0, event, first.0, count, peer.0);
        self.seen.extend(effects.observed.into_iter().map(seen));
        result
    }

    /// What nodes have told a monitor since the last call.
    pub fn take_seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// The oldest message arrives. False if there is none.
    ///
    /// # Panics
    /// If it is refused.
    pub fn deliver(&mut self) -> bool {
        let Some(Letter { from, to, message, bulk }) = self.under_way.pop_front() else { return false };
        let from = NodeId::from_index(from);
        let result: Result<(), Violation> =
            self.call(to, |machine, env| machine.message(from, &message, &bulk, env));
        result.expect("machines send what machines take");
        true
    }

    /// All messages arrive, and those that they cause. Nodes let go of pages that they keep for their threads.
    pub fn finish(&mut self) {
        loop {
            while self.deliver() {}
            for node in 0..self.machines.len() {
                self.call(node, |machine, env| machine.settle(env)).expect("what was put off was right");
            }
            if self.under_way.is_empty() {
                return;
            }
        }
    }

    /// A thread of a node faults, and nothing arrives yet.
    pub fn fault(&mut self, node: usize, page: u32, access: Access, ahead: u32) -> Outcome {
        self.call(node, |machine, env| machine.fault(Page(page), access, ahead, Waiter(node as u64), env))
    }

    /// A thread of a node accesses a page, with so many faults as that takes, and then those behind it up to `count` in all.
    ///
    /// # Panics
    /// If faults bring the thread no access.
    pub fn touch(&mut self, node: usize, first: u32, count: u32, access: Access) {
        for page in first..first + count {
            for _ in 0..3 {
                if self.memories[node].access[page as usize] < access {
                    let _ = self.fault(node, page, access, first + count - page - 1);
                    self.finish();
                }
            }
            assert!(self.memories[node].access[page as usize] >= access, "page {page} does not come");
        }
    }

    /// A thread of a node reads pages.
    pub fn read(&mut self, node: usize, first: u32, count: u32) {
        self.touch(node, first, count, Access::Read);
    }

    /// A thread of a node adds 1 to the byte of each page that has the node's number.
    pub fn write(&mut self, node: usize, first: u32, count: u32) {
        self.touch(node, first, count, Access::Write);
        for page in first..first + count {
            let address = page as usize * SIZE + node;
            let old = self.memories[node].read(address);
            self.memories[node].write(address, old.wrapping_add(1));
        }
    }

    /// A node releases what it has written.
    pub fn release(&mut self, node: usize) {
        self.release_at(node, SyncPoint::default());
    }

    /// A node releases what it has written, at a barrier.
    pub fn arrive(&mut self, node: usize) {
        self.release_at(node, SyncPoint { acquires_next: true, ..SyncPoint::default() });
    }

    fn release_at(&mut self, node: usize, at: SyncPoint) {
        let waiter = Waiter(node as u64);
        let _ = self.call(node, |machine, env| machine.release(at, waiter, env));
        self.finish();
    }

    /// A node acquires.
    pub fn acquire(&mut self, node: usize) {
        self.call(node, |machine, env| machine.acquire(SyncPoint::default(), env));
    }

    /// A policy decides that pages that nobody is using are to have their home on another node.
    pub fn place(&mut self, node: usize, first: u32, count: u32, home: u16) {
        let home = Some(NodeId(home));
        self.call(node, |machine, env| machine.place(Page(first), count, home, false, env));
    }
}
