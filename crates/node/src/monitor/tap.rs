//! Sees what crosses between this node and others: the messages, as a card on an interconnect would, and the incidents
//! that no message shows.
//!
//! Everything here is called under the node's lock, and only if the run is monitored.

mod noting;

use super::attribution::Written;
use super::predicted_writes::PredictedWrites;
use crate::wait_slots::WaitSlot;
use gondwana_coherence::{Access, CsmMessage, DiffEntry, Grant, Incident, Message, Page, ScMessage};
use gondwana_memory::{Geometry, PAGE_SIZE};
use gondwana_monitor::{AggregationTable, CounterBank, Direction, Kind, Misses, Transaction, Units};
use gondwana_topology::NodeId;
use std::ops::Range;
use std::sync::Arc;

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
    slot: WaitSlot,
    thread: Option<u32>,
    page: Page,
    write: bool,
    touch: Touch,
}

/// True if a page is the one behind another.
fn follows(one: Page, next: Page) -> bool {
    one.0.checked_add(1) == Some(next.0)
}

/// The observer of one node.
pub struct Tap {
    me: NodeId,
    geometry: Geometry,
    /// What the recording gets: each transaction on the node that has caused it or, of notices, invalidations and
    /// recalls, on the one that suffers it. `None` if nothing is recorded.
    pub table: Option<AggregationTable>,
    /// How closely the recording looks at which addresses; `None`: as closely as possible at all.
    pub units: Option<Units>,
    /// The bank that counts, if filters are set.
    pub bank: Option<Arc<CounterBank>>,
    misses: Misses,
    /// Gathers which bytes this node writes, for a recording.
    written: Option<Arc<Written>>,
    waiting: Vec<Waiting>,
    predicted: PredictedWrites,
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
            table: None,
            units: None,
            bank: None,
            misses,
            written: None,
            waiting: Vec::with_capacity(64),
            predicted: PredictedWrites::default(),
            granted: None,
            serves_write: false,
        }
    }

    /// As [`Tap::new`], for a recording that looks at everything closely or, with `auto`, at what is hot.
    pub fn recording(me: NodeId, geometry: Geometry, auto: bool, written: Arc<Written>) -> Self {
        let (table, units) = (Some(AggregationTable::default()), auto.then(Units::default));
        Self { table, units, written: Some(written), ..Self::new(me, geometry) }
    }

    /// A fault of a thread: until [`Tap::resumed`], what comes of this page comes for it.
    pub fn touches(&mut self, slot: WaitSlot, thread: Option<u32>, page: Page, access: Access, touch: Touch) {
        self.predicted.begin(touch.writer);
        let write = access == Access::Write && touch.writer.is_none();
        self.waiting.push(Waiting { slot, thread, page, write, touch });
    }

    /// What the fault needs has been asked for.
    pub fn asked(&mut self) {
        self.predicted.end();
    }

    /// This node has made a diff of a page.
    pub fn wrote(&self, page: Page, diff: &[u8]) {
        if let Some(written) = &self.written {
            written.note(page.0, diff);
        }
    }

    /// The thread goes on.
    pub fn resumed(&mut self, slot: WaitSlot) {
        self.waiting.retain(|waiting| waiting.slot != slot);
    }

    /// A message of the coherence protocol leaves. `thread` sends it, or nobody in particular.
    pub fn sends(&mut self, to: NodeId, message: &Message, thread: Option<u32>) {
        match message {
            Message::Csm(CsmMessage::Diffs { origin, entries, .. }) if *origin == self.me => {
                let alike = |one: &DiffEntry, next: &DiffEntry| {
                    follows(one.page, next.page) && one.length == next.length
                };
                for run in entries.chunk_by(alike).filter(|run| run[0].length > 0) {
                    let diff = Transaction {
                        kind: Kind::Diff,
                        direction: Direction::Out,
                        address: 0,
                        bytes: run[0].length,
                        peer: to.0,
                        thread,
                        code: 0,
                    };
                    let first = run[0].page.0;
                    self.note_pages(first..first + run.len() as u32, &diff);
                }
            }
            Message::Csm(CsmMessage::Fetch { first, requester, .. })
            | Message::Sc(
                ScMessage::Request { first, requester, .. }
                | ScMessage::Forward { page: first, requester, .. },
            ) if *requester == self.me => {
                self.predicted.ask(*first);
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
                let writer = self.predicted.answered(first);
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
                let writer = self.predicted.answered(first);
                if untouched || bulk > 0 {
                    self.arrived(from, first, served, bulk, writer);
                }
            }
            _ => {}
        }
    }

    /// This node has come for pages itself, to the memory of their home.
    pub fn fetches(&mut self, home: NodeId, first: Page, count: u32) {
        self.arrived(home, first, count, count as usize * PAGE_SIZE, self.predicted.writer());
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
        let (mut next, end) = (first.0, first.0 + served);
        let mut came = Transaction {
            kind: Kind::Ahead,
            direction: Direction::Out,
            address: 0,
            bytes,
            peer: from.0,
            thread: None,
            code: 0,
        };
        while next < end {
            let waited = self.next_waiting(next..end, |_| true);
            let ahead = next..waited.map_or(end, |waiting| waiting.page.0);
            self.misses.came(ahead.clone());
            self.note_pages(ahead.clone(), &came);
            self.note_predicted(ahead.clone(), &came, writer);
            next = ahead.end;
            if let Some(Waiting { thread, page, write, touch, .. }) = waited {
                let kind = self.misses.fetched(page.0, write);
                // What comes behind it comes along with it.
                (came.thread, came.code) = (thread, touch.code as u64);
                self.note(&Transaction { kind, address: touch.address as u64, ..came });
                self.note_predicted(next..next + 1, &came, writer.filter(|_| !write));
                next += 1;
            }
        }
    }

    /// The thread that waits for the first of these pages that such a thread waits for; of several, the one that has waited longest.
    fn next_waiting(&self, pages: Range<u32>, is_meant: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let waiting = self.waiting.iter().filter(|it| pages.contains(&it.page.0) && is_meant(it));
        waiting.min_by_key(|waiting| waiting.page.0).copied()
    }

    /// Writes that will not show by themselves of pages that have come for reading, if it is known which instruction will write
    /// them.
    fn note_predicted(&mut self, pages: Range<u32>, came: &Transaction, writer: Option<u64>) {
        if let Some(code) = writer {
            self.note_pages(pages, &Transaction { kind: Kind::Upgrade, bytes: 0, code, ..*came });
        }
    }

    /// Pages that another node has made this one the home of.
    fn placed(&mut self, from: NodeId, first: Page, count: u32, bulk: usize) {
        if !self.holds(first, count) {
            return;
        }
        let bytes = (bulk / count.max(1) as usize) as u32;
        let pages = first.0..first.0 + count;
        self.misses.came(pages.clone());
        self.suffers(Kind::Ahead, pages, bytes, from);
    }

    fn noticed(&mut self, writer: NodeId, pages: &[Page]) {
        for run in pages.chunk_by(|&one, &next| follows(one, next)) {
            // Only those that there are.
            let end = run[0].0.saturating_add(run.len() as u32).min(self.geometry.pages());
            let pages = run[0].0..end;
            pages.clone().for_each(|page| self.misses.noticed(page, writer.0));
            self.suffers(Kind::Notice, pages, 0, writer);
        }
    }

    /// Something that another node has caused, of pages whose numbers follow each other.
    fn suffers(&mut self, kind: Kind, pages: Range<u32>, bytes: u32, by: NodeId) {
        let suffered = Transaction {
            kind,
            direction: Direction::In,
            address: 0,
            bytes,
            peer: by.0,
            thread: None,
            code: 0,
        };
        self.note_pages(pages, &suffered);
    }

    /// Something that no message shows has happened to pages.
    pub fn observes(&mut self, incident: Incident, first: Page, count: u32, peer: NodeId) {
        let pages = first.0..first.0 + count;
        match incident {
            Incident::Upgraded => self.upgraded(pages, peer),
            Incident::Invalidated => self.invalidated(pages, peer),
            Incident::Overtaken => pages.for_each(|page| self.misses.left(page, true)),
            Incident::Shared => self.suffers(Kind::Recall, pages, 0, peer),
            Incident::Left { exclusive, written } => {
                pages.clone().for_each(|page| self.misses.left(page, written));
                if exclusive && written {
                    self.suffers(Kind::Recall, pages, 0, peer);
                }
            }
        }
    }

    /// Copies are given up. Those that the same node has written are a run.
    fn invalidated(&mut self, pages: Range<u32>, peer: NodeId) {
        let mut next = pages.start;
        while next < pages.end {
            let (first, writer) = (next, self.misses.writer(next));
            while next < pages.end && self.misses.writer(next) == writer {
                self.misses.left(next, true);
                next += 1;
            }
            self.suffers(Kind::Invalidation, first..next, 0, writer.map_or(peer, NodeId));
        }
    }

    fn upgraded(&mut self, pages: Range<u32>, home: NodeId) {
        let mut upgrade = Transaction {
            kind: Kind::Upgrade,
            direction: Direction::Out,
            address: 0,
            bytes: 0,
            peer: home.0,
            thread: None,
            code: 0,
        };
        let mut next = pages.start;
        while next < pages.end {
            let waited = self.next_waiting(next..pages.end, |waiting| waiting.write);
            let others = next..waited.map_or(pages.end, |waiting| waiting.page.0);
            next = others.end;
            self.note_pages(others, &upgrade);
            if let Some(Waiting { thread, touch, .. }) = waited {
                // Those behind it will be written by the same.
                (upgrade.thread, upgrade.code) = (thread, touch.code as u64);
                self.note(&Transaction { address: touch.address as u64, ..upgrade });
                next += 1;
            }
        }
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
        self.note(&transaction);
    }
}
