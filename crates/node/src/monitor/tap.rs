//! Sees what crosses between this node and others: the messages, as a card on an interconnect would, and the incidents
//! that no message shows.
//!
//! Everything here is called under the node's lock, and only if the run is monitored.

use super::attribution::Written;
use super::foreseen::Foreseen;
use crate::slots::Slot;
use gondwana_coherence::{Access, CsmMessage, Grant, Incident, Message, Page, ScMessage};
use gondwana_memory::{Geometry, PAGE_SIZE};
use gondwana_monitor::{Board, Direction, Journal, Kind, Misses, Transaction, Units};
use gondwana_topology::NodeId;
use std::sync::Arc;

/// log2 of the unit that transactions with an exact address are recorded for, in bytes.
const FINEST: u8 = 2;

/// log2 of the bytes of a page.
const PAGE: u8 = PAGE_SIZE.trailing_zeros() as u8;

/// What a thread did that a page was missing for.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// The address.
    pub address: usize,
    /// The instruction that touched it; 0 if nobody knows.
    pub code: usize,
    /// The instruction that will write what this one reads, if that is asked for to be written.
    pub writer: Option<usize>,
}

/// A thread whose fault is being resolved.
#[derive(Clone, Copy)]
struct Waiting {
    slot: Slot,
    thread: Option<u32>,
    page: Page,
    write: bool,
    touch: Touch,
}

/// What is known of the cause of a transaction.
#[derive(Clone, Copy, Default)]
struct Cause {
    thread: Option<u32>,
    code: u64,
}

/// The observer of one node.
pub struct Tap {
    me: NodeId,
    geometry: Geometry,
    /// What the recording gets: each transaction on the node that has caused it or, of notices, invalidations and
    /// recalls, on the one that suffers it. `None` if nothing is recorded.
    pub journal: Option<Journal>,
    /// How closely the recording looks at which addresses; `None`: as closely as possible at all.
    pub units: Option<Units>,
    /// The board that counts, if filters are set.
    pub board: Option<Arc<Board>>,
    misses: Misses,
    /// Gathers which bytes this node writes, for a recording.
    written: Option<Arc<Written>>,
    waiting: Vec<Waiting>,
    foreseen: Foreseen,
    /// The thread that got a lock with the message that is being handled.
    granted: Option<u32>,
    /// Whether the fetch that is being served is for a write.
    serves_write: bool,
}

impl Tap {
    /// Observes node `me`.
    pub fn new(me: NodeId, geometry: Geometry) -> Self {
        let misses = Misses::new(geometry.pages());
        Self {
            me,
            geometry,
            journal: None,
            units: None,
            board: None,
            misses,
            written: None,
            waiting: Vec::with_capacity(64),
            foreseen: Foreseen::default(),
            granted: None,
            serves_write: false,
        }
    }

    /// As [`Tap::new`], for a recording that looks at everything closely or, with `auto`, at what is hot.
    pub fn recording(me: NodeId, geometry: Geometry, auto: bool, written: Arc<Written>) -> Self {
        let (journal, units) = (Some(Journal::default()), auto.then(Units::default));
        Self { journal, units, written: Some(written), ..Self::new(me, geometry) }
    }

    /// A transaction that is this node's to record.
    fn note(&mut self, transaction: Transaction, exact: bool) {
        if let Some(journal) = &mut self.journal {
            let finest = if exact { FINEST } else { PAGE };
            let unit =
                self.units.as_ref().map_or(finest, |units| units.unit_of(transaction.address).max(finest));
            journal.note(&transaction, unit);
        }
        self.count(&transaction);
    }

    fn count(&self, transaction: &Transaction) {
        if let Some(board) = &self.board {
            board.count(transaction);
        }
    }

    /// Transactions about pages that are another node's to record: here they are only counted.
    fn see(&self, kind: Kind, direction: Direction, pages: impl Iterator<Item = (Page, u32)>, peer: NodeId) {
        if self.board.is_some() {
            for (page, bytes) in pages.filter(|(page, _)| self.holds(*page, 1)) {
                let address = self.address_of(page);
                self.count(&Transaction {
                    kind,
                    direction,
                    address,
                    bytes,
                    peer: peer.0,
                    thread: None,
                    code: 0,
                });
            }
        }
    }

    /// The first address of a page.
    fn address_of(&self, page: Page) -> u64 {
        self.geometry.address_of(page.0) as u64
    }

    /// Messages are checked by those that they are for, later.
    fn holds(&self, first: Page, count: u32) -> bool {
        first.0.checked_add(count).is_some_and(|end| end <= self.geometry.pages())
    }

    /// A fault of a thread: until [`Tap::resumed`], what comes of this page comes for it.
    pub fn touches(&mut self, slot: Slot, thread: Option<u32>, page: Page, access: Access, touch: Touch) {
        self.foreseen.begin(touch.writer);
        let write = access == Access::Write && touch.writer.is_none();
        self.waiting.push(Waiting { slot, thread, page, write, touch });
    }

    /// What the fault needs has been asked for.
    pub fn asked(&mut self) {
        self.foreseen.end();
    }

    /// This node has made a diff of a page.
    pub fn wrote(&self, page: Page, diff: &[u8]) {
        if let Some(written) = &self.written {
            written.note(page.0, diff);
        }
    }

    /// The thread goes on.
    pub fn resumed(&mut self, slot: Slot) {
        self.waiting.retain(|waiting| waiting.slot != slot);
    }

    /// A message of the coherence protocol leaves. `thread` sends it, or nobody in particular.
    pub fn sends(&mut self, to: NodeId, message: &Message, thread: Option<u32>) {
        match message {
            Message::Csm(CsmMessage::Diffs { origin, entries, .. }) if *origin == self.me => {
                for entry in entries.iter().filter(|entry| entry.length > 0) {
                    let transaction = Transaction {
                        kind: Kind::Diff,
                        direction: Direction::Out,
                        address: self.address_of(entry.page),
                        bytes: entry.length,
                        peer: to.0,
                        thread,
                        code: 0,
                    };
                    self.note(transaction, false);
                }
            }
            Message::Csm(CsmMessage::Fetch { first, requester, .. })
            | Message::Sc(
                ScMessage::Request { first, requester, .. }
                | ScMessage::Forward { page: first, requester, .. },
            ) if *requester == self.me => {
                self.foreseen.ask(*first);
            }
            Message::Csm(CsmMessage::Notices { pages, .. }) => {
                self.see(Kind::Notice, Direction::Out, pages.iter().map(|&page| (page, 0)), to);
            }
            Message::Sc(ScMessage::Invalidate { page, .. }) => {
                self.see(Kind::Invalidation, Direction::Out, std::iter::once((*page, 0)), to);
            }
            Message::Csm(CsmMessage::Pages { first, served, grant, .. }) if *grant != Grant::Crossed => {
                self.serves(to, *first, *served, self.serves_write);
            }
            Message::Sc(ScMessage::Pages { first, served, write, .. }) => {
                self.serves(to, *first, *served, *write);
            }
            _ => {}
        }
    }

    /// Pages leave for a node that has asked for them.
    fn serves(&self, to: NodeId, first: Page, served: u32, write: bool) {
        let pages = (first.0..first.0 + served).map(|page| (Page(page), PAGE_SIZE as u32));
        self.see(if write { Kind::Write } else { Kind::Read }, Direction::In, pages, to);
    }

    /// A message of the coherence protocol has arrived, with as many bytes beside it, and is about to be handled.
    pub fn receives(&mut self, from: NodeId, message: &Message, bulk: usize) {
        match *message {
            Message::Csm(CsmMessage::Pages { first, served, ref grant, .. }) => {
                let writer = self.foreseen.answered(first);
                if *grant != Grant::Crossed {
                    self.arrived(from, first, served, bulk, writer);
                }
            }
            Message::Csm(CsmMessage::Placed { first, count }) => self.placed(from, first, count, bulk),
            Message::Csm(CsmMessage::Notices { origin, ref pages, .. }) => self.noticed(origin, pages),
            Message::Csm(CsmMessage::Fetch { write, .. }) => self.serves_write = write,
            Message::Csm(CsmMessage::Diffs { origin, ref entries, .. }) => {
                let diffs = entries.iter().filter(|entry| entry.length > 0);
                self.see(Kind::Diff, Direction::In, diffs.map(|entry| (entry.page, entry.length)), origin);
            }
            // Without contents the node has them already: an upgrade, of which the protocol tells.
            Message::Sc(ScMessage::Pages { first, served, untouched, .. }) => {
                let writer = self.foreseen.answered(first);
                if untouched || bulk > 0 {
                    self.arrived(from, first, served, bulk, writer);
                }
            }
            _ => {}
        }
    }

    /// This node has come for pages itself, to the memory of their home.
    pub fn fetches(&mut self, home: NodeId, first: Page, count: u32) {
        self.arrived(home, first, count, count as usize * PAGE_SIZE, self.foreseen.writer());
    }

    /// Other nodes have been found to have come for a page of this one.
    pub fn visited(&self, page: Page, by: NodeId) {
        self.serves(by, page, 1, false);
    }

    /// Pages that were asked for. What is read may be there to be written as well: then that will not show by itself.
    fn arrived(&mut self, from: NodeId, first: Page, served: u32, bulk: usize, writer: Option<u64>) {
        if !self.holds(first, served) {
            return;
        }
        let bytes = (bulk / served.max(1) as usize) as u32;
        let mut cause = Cause::default();
        for page in (first.0..first.0 + served).map(Page) {
            let waiting = self.waiting.iter().find(|waiting| waiting.page == page).copied();
            let kind = self.misses.fetched(page.0, waiting.is_some_and(|waiting| waiting.write));
            let mut transaction = Transaction {
                kind: Kind::Ahead,
                direction: Direction::Out,
                address: self.address_of(page),
                bytes,
                peer: from.0,
                thread: cause.thread,
                code: cause.code,
            };
            if let Some(Waiting { thread, touch, .. }) = waiting {
                cause = Cause { thread, code: touch.code as u64 };
                transaction.kind = kind;
                transaction.address = touch.address as u64;
                transaction.thread = thread;
                transaction.code = cause.code;
            }
            self.note(transaction, waiting.is_some());
            if let Some(code) = writer.filter(|_| waiting.is_none_or(|waiting| !waiting.write)) {
                let (address, kind, bytes) = (self.address_of(page), Kind::Upgrade, 0);
                self.note(Transaction { kind, address, bytes, code, ..transaction }, false);
            }
        }
    }

    /// Pages that another node has made this one the home of.
    fn placed(&mut self, from: NodeId, first: Page, count: u32, bulk: usize) {
        if !self.holds(first, count) {
            return;
        }
        let bytes = (bulk / count.max(1) as usize) as u32;
        for page in (first.0..first.0 + count).map(Page) {
            self.misses.fetched(page.0, false);
            self.suffers(Kind::Ahead, page, bytes, from);
        }
    }

    fn noticed(&mut self, writer: NodeId, pages: &[Page]) {
        for &page in pages {
            if self.holds(page, 1) {
                self.misses.noticed(page.0, writer.0);
                self.suffers(Kind::Notice, page, 0, writer);
            }
        }
    }

    /// Something that another node has caused.
    fn suffers(&mut self, kind: Kind, page: Page, bytes: u32, by: NodeId) {
        let transaction = Transaction {
            kind,
            direction: Direction::In,
            address: self.address_of(page),
            bytes,
            peer: by.0,
            thread: None,
            code: 0,
        };
        self.note(transaction, false);
    }

    /// Something that no message shows has happened to a page.
    pub fn observes(&mut self, incident: Incident, page: Page, peer: NodeId) {
        match incident {
            Incident::Upgraded => self.upgraded(page, peer),
            Incident::Invalidated => {
                let writer = self.misses.writer(page.0).map_or(peer, NodeId);
                self.misses.left(page.0, true);
                self.suffers(Kind::Invalidation, page, 0, writer);
            }
            Incident::Overtaken => self.misses.left(page.0, true),
            Incident::Shared => self.suffers(Kind::Recall, page, 0, peer),
            Incident::Left { exclusive, written } => {
                self.misses.left(page.0, written);
                if exclusive && written {
                    self.suffers(Kind::Recall, page, 0, peer);
                }
            }
        }
    }

    fn upgraded(&mut self, page: Page, home: NodeId) {
        let writer = self.waiting.iter().find(|waiting| waiting.page == page && waiting.write).copied();
        let transaction = Transaction {
            kind: Kind::Upgrade,
            direction: Direction::Out,
            address: writer.map_or_else(|| self.address_of(page), |writer| writer.touch.address as u64),
            bytes: 0,
            peer: home.0,
            thread: writer.and_then(|writer| writer.thread),
            code: writer.map_or(0, |writer| writer.touch.code as u64),
        };
        self.note(transaction, writer.is_some());
    }

    /// A message about locks is about to be handled.
    pub fn begins_lock(&mut self) {
        self.granted = None;
    }

    /// A thread has got a lock.
    pub fn grants_lock(&mut self, thread: Option<u32>) {
        self.granted = self.granted.or(thread);
    }

    /// The lock at an address leaves for another node.
    pub fn passes_lock(&self, to: NodeId, address: u64) {
        self.count(&Transaction {
            kind: Kind::LockHandOff,
            direction: Direction::In,
            address,
            bytes: 0,
            peer: to.0,
            thread: None,
            code: 0,
        });
    }

    /// The lock at an address has come from another node; it went to the thread that has just got one, if any.
    pub fn takes_lock(&mut self, from: NodeId, address: u64) {
        let transaction = Transaction {
            kind: Kind::LockHandOff,
            direction: Direction::Out,
            address,
            bytes: 0,
            peer: from.0,
            thread: self.granted.take(),
            code: 0,
        };
        self.note(transaction, true);
    }
}
