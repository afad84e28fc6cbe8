//! Sees what crosses between this node and others, in the events that the coherence protocol reports, as a card on an
//! interconnect would.
//!
//! Everything here is called under the node's lock, and only if the run is monitored.

mod noting;

use super::attribution::Written;
use super::predicted_writes::PredictedWrites;
use crate::wait_slots::WaitSlot;
use gondwana_coherence::{Access, Event, Page};
use gondwana_memory::Geometry;
use gondwana_monitor::{AggregationTable, CounterBank, Direction, Kind, Misses, Transaction, Units};
use gondwana_page::PAGE_BITS;
use gondwana_topology::NodeId;
use std::ops::Range;
use std::sync::Arc;

/// Bytes in a page, as transactions count them.
const PAGE_BYTES: u32 = 1 << PAGE_BITS;

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

/// The observer of one node.
pub struct EventSink {
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
}

impl EventSink {
    /// Observes a node with these pages.
    pub fn new(geometry: Geometry) -> Self {
        let misses = Misses::new(geometry.pages());
        Self {
            geometry,
            table: None,
            units: None,
            bank: None,
            misses,
            written: None,
            waiting: Vec::with_capacity(64),
            predicted: PredictedWrites::default(),
            granted: None,
        }
    }

    /// As [`EventSink::new`], for a recording that looks at everything closely or, with `auto`, at what is hot.
    pub fn recording(geometry: Geometry, auto: bool, written: Arc<Written>) -> Self {
        let (table, units) = (Some(AggregationTable::default()), auto.then(Units::default));
        Self { table, units, written: Some(written), ..Self::new(geometry) }
    }

    /// A fault of a thread: until [`EventSink::resumed`], what comes of this page comes for it.
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

    /// Pages leave for a node that has asked for them.
    fn serves(&self, to: NodeId, pages: Range<u32>, write: bool) {
        let kind = if write { Kind::Write } else { Kind::Read };
        self.see(kind, Direction::In, pages, PAGE_BYTES, to);
    }

    /// This node has come for pages itself, to the memory of their home.
    pub fn fetches(&mut self, home: NodeId, first: Page, count: u32) {
        let bytes = u64::from(count) * u64::from(PAGE_BYTES);
        self.arrived(home, first, count, bytes, self.predicted.writer());
    }

    /// Other nodes have been found to have come for a page of this one.
    pub fn copied(&self, page: Page, by: NodeId) {
        self.serves(by, page.0..page.0 + 1, false);
    }

    /// Pages that were asked for. What is read may be there to be written as well: then that will not show by itself.
    fn arrived(&mut self, from: NodeId, first: Page, served: u32, bytes: u64, writer: Option<u64>) {
        if !self.holds(first, served) {
            return;
        }
        let bytes = per_page(bytes, served);
        let (mut next, end) = (first.0, first.0 + served);
        let mut came = Transaction {
            kind: Kind::Prefetched,
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
                // Another thread may have asked, which was to write another page.
                let writer = writer.and(touch.writer).map(|code| code as u64);
                self.note_predicted(next..next + 1, &came, writer);
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
    fn given(&mut self, from: NodeId, pages: Range<u32>, bytes: u64) {
        let bytes = per_page(bytes, pages.end.saturating_sub(pages.start));
        self.misses.came(pages.clone());
        self.suffers(Kind::Prefetched, pages, bytes, from);
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

    /// Something happens to pages. `acting` gives the thread that does it, if one does.
    pub fn observes(
        &mut self,
        event: Event,
        first: Page,
        count: u32,
        peer: NodeId,
        acting: impl FnOnce() -> Option<u32>,
    ) {
        if !self.holds(first, count) {
            return;
        }
        let pages = first.0..first.0 + count;
        match event {
            Event::Asked => self.predicted.ask(first),
            Event::Answered => drop(self.predicted.answered(first)),
            Event::Arrived { bytes } => {
                let writer = self.predicted.answered(first);
                self.arrived(peer, first, count, bytes, writer);
            }
            Event::Given { bytes } => self.given(peer, pages, bytes),
            Event::Served { write } => self.serves(peer, pages, write),
            Event::DiffSent { bytes } => self.sends_diffs(pages, bytes, peer, acting()),
            Event::DiffReceived { bytes } => self.see(Kind::Diff, Direction::In, pages, bytes, peer),
            Event::NoticeSent => self.see(Kind::Notice, Direction::Out, pages, 0, peer),
            Event::NoticeReceived => {
                pages.clone().for_each(|page| self.misses.noticed(page, peer.0));
                self.suffers(Kind::Notice, pages, 0, peer);
            }
            Event::UpdateSent { bytes } => self.sends_diffs(pages, bytes, peer, acting()),
            Event::UpdateReceived { bytes } => self.see(Kind::Diff, Direction::In, pages, bytes, peer),
            Event::InvalidationSent => self.see(Kind::Invalidation, Direction::Out, pages, 0, peer),
            Event::Upgraded => self.upgraded(pages, peer),
            Event::Invalidated => self.invalidated(pages, peer),
            Event::Overtaken => pages.for_each(|page| self.misses.left(page, true)),
            Event::Shared => self.suffers(Kind::Recall, pages, 0, peer),
            Event::Left { exclusive, written } => {
                pages.clone().for_each(|page| self.misses.left(page, written));
                if exclusive && written {
                    self.suffers(Kind::Recall, pages, 0, peer);
                }
            }
        }
    }

    /// Diffs of equal length leave.
    fn sends_diffs(&mut self, pages: Range<u32>, bytes: u32, to: NodeId, thread: Option<u32>) {
        let diff = Transaction {
            kind: Kind::Diff,
            direction: Direction::Out,
            address: 0,
            bytes,
            peer: to.0,
            thread,
            code: 0,
        };
        self.note_pages(pages, &diff);
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

/// What each of some pages has of their bytes.
fn per_page(bytes: u64, pages: u32) -> u32 {
    u32::try_from(bytes / u64::from(pages.max(1))).unwrap_or(u32::MAX)
}
