//! Putting what the event sink sees into the table, and counting it for the bank.

use super::EventSink;
use gondwana_coherence::Page;
use gondwana_memory::PAGE_SIZE;
use gondwana_monitor::{Direction, Kind, Transaction, Units};
use gondwana_page::{PAGE_BITS, to_usize, whole_pages};
use gondwana_topology::NodeId;
use std::ops::Range;

/// log2 of the unit that transactions with an exact address are recorded for, in bytes.
const FINEST: u8 = 2;

impl EventSink {
    /// A transaction that is this node's to record, and of which the exact address is known.
    pub(super) fn note(&mut self, transaction: &Transaction) {
        if let Some(table) = &mut self.table {
            let unit =
                self.units.as_ref().map_or(FINEST, |units| units.unit_of(transaction.address).max(FINEST));
            table.note(transaction, unit);
        }
        self.count(transaction);
    }

    /// Transactions that are this node's to record and come at once, one about each of some pages whose numbers follow each other:
    /// they differ in nothing but their addresses, which `like` does not have.
    pub(super) fn note_pages(&mut self, pages: Range<u32>, like: &Transaction) {
        let mut next = pages.start;
        while next < pages.end {
            let count = self.geometry.consecutive(next, pages.end);
            self.note_range(&Transaction { address: self.address_of(Page(next)), ..*like }, count);
            next += count;
        }
    }

    /// As [`EventSink::note_pages`], of pages at consecutive addresses.
    fn note_range(&mut self, first: &Transaction, pages: u32) {
        let end = first.address + u64::from(pages) * PAGE_SIZE as u64;
        if let Some(table) = &mut self.table {
            match &self.units {
                None => table.note_range(first, PAGE_BITS, PAGE_BITS, pages),
                // One of the largest units after the other: all pages of one are seen equally closely.
                Some(units) => {
                    let mut address = first.address;
                    while address < end {
                        let next = end.min(((address >> Units::LARGEST) + 1) << Units::LARGEST);
                        let unit = units.unit_of(address).max(PAGE_BITS);
                        let count = whole_pages(to_usize(next - address));
                        table.note_range(&Transaction { address, ..*first }, PAGE_BITS, unit, count);
                        address = next;
                    }
                }
            }
        }
        if self.bank.is_some() {
            for address in (first.address..end).step_by(PAGE_SIZE) {
                self.count(&Transaction { address, ..*first });
            }
        }
    }

    pub(super) fn count(&self, transaction: &Transaction) {
        if let Some(bank) = &self.bank {
            bank.count(transaction);
        }
    }

    /// Transactions about pages that are another node's to record: here they are only counted.
    pub(super) fn see(&self, kind: Kind, direction: Direction, pages: Range<u32>, bytes: u32, peer: NodeId) {
        if self.bank.is_some() {
            for page in pages {
                let address = self.address_of(Page(page));
                let peer = peer.0;
                self.count(&Transaction { kind, direction, address, bytes, peer, thread: None, code: 0 });
            }
        }
    }

    /// The first address of a page.
    fn address_of(&self, page: Page) -> u64 {
        self.geometry.address_of(page.0) as u64
    }

    /// True if there are such pages.
    pub(super) fn holds(&self, first: Page, count: u32) -> bool {
        first.0.checked_add(count).is_some_and(|end| end <= self.geometry.pages())
    }
}
