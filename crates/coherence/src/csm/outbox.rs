//! What one flush sends, gathered so that each receiver gets as few messages as possible.

use super::message::{CsmMessage, DiffEntry, Update};
use crate::message::Encoder;
use crate::runs::{count_of, runs};
use crate::{Env, Event, Page};
use gondwana_topology::{NodeId, NodeSet};

/// Most pages that one message names, so that its header stays short.
const MOST_PAGES: usize = 1024;

/// The flush that something is sent for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlushId {
    pub number: u64,
    pub origin: NodeId,
    /// The last flush of the origin that was complete when it sent this one.
    pub completed: u64,
    /// The origin is this node.
    pub is_own: bool,
}

/// Diffs for one home.
#[derive(Clone, Debug)]
struct DiffBatch {
    home: NodeId,
    entries: Vec<DiffEntry>,
    bulk: Vec<u8>,
}

/// Diffs on their way to several homes.
#[derive(Clone, Debug, Default)]
pub(super) struct DiffBatches {
    list: Vec<DiffBatch>,
    encoder: Encoder,
}

impl DiffBatches {
    /// Those of a machine that encodes its messages in this way.
    pub(super) fn encoded_by(encoder: Encoder) -> Self {
        Self { encoder, ..Self::default() }
    }

    /// Adds a page's diff, which `write` appends to the bytes it is given. An empty diff of a page that is `valid`
    /// here is sent as well: the home must know who writes the page, even if the values stay the same. Sends what
    /// is gathered for this home once that reaches `limit` bytes or entries. Returns the length of the diff, or
    /// `None` if nothing is sent.
    pub(super) fn add(
        &mut self,
        home: NodeId,
        flush: FlushId,
        limit: usize,
        (page, valid): (Page, bool),
        env: &mut dyn Env,
        write: impl FnOnce(&mut Vec<u8>, &mut dyn Env),
    ) -> Option<u32> {
        let index = self.list.iter().position(|batch| batch.home == home).unwrap_or_else(|| {
            self.list.push(DiffBatch { home, entries: Vec::new(), bulk: Vec::new() });
            self.list.len() - 1
        });
        let batch = &mut self.list[index];
        let before = batch.bulk.len();
        write(&mut batch.bulk, env);
        let length = u32::try_from(batch.bulk.len() - before).expect("a diff is about as long as a page");
        if length == 0 && !valid {
            return None;
        }
        batch.entries.push(DiffEntry { page, length, valid });
        if batch.bulk.len() >= limit || batch.entries.len() >= MOST_PAGES {
            batch.send(flush, &mut self.encoder, env);
        }
        Some(length)
    }

    /// Sends what is left.
    pub(super) fn send(&mut self, flush: FlushId, env: &mut dyn Env) {
        for batch in &mut self.list {
            if !batch.entries.is_empty() {
                batch.send(flush, &mut self.encoder, env);
            }
        }
    }
}

impl DiffBatch {
    fn send(&mut self, flush: FlushId, encoder: &mut Encoder, env: &mut dyn Env) {
        if flush.is_own {
            let alike = |one: &DiffEntry, next: &DiffEntry| {
                one.page.0 + 1 == next.page.0 && one.length == next.length
            };
            for run in self.entries.chunk_by(alike).filter(|run| run[0].length > 0) {
                let event = Event::DiffSent { bytes: run[0].length };
                env.observe(event, run[0].page, count_of(run), self.home);
            }
        }
        let entries = std::mem::take(&mut self.entries);
        let FlushId { number: flush, origin, completed, .. } = flush;
        let message = CsmMessage::Diffs { flush, origin, completed, entries };
        encoder.with(&message, |message| env.send(self.home, message, &self.bulk));
        self.bulk.clear();
        // Keeps the list's memory for the next flush.
        if let CsmMessage::Diffs { mut entries, .. } = message {
            entries.clear();
            self.entries = entries;
        }
    }
}

/// What one sharer is told of.
#[derive(Clone, Debug)]
struct NoticeList {
    sharer: NodeId,
    pages: Vec<Page>,
    updates: Vec<Update>,
    /// The diffs of `updates`.
    bulk: Vec<u8>,
}

/// Write notices for several sharers.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    lists: Vec<NoticeList>,
    encoder: Encoder,
}

impl Notices {
    /// Those of a machine that encodes its messages in this way.
    pub(super) fn encoded_by(encoder: Encoder) -> Self {
        Self { encoder, ..Self::default() }
    }

    /// Adds a notice about `page` for each of `sharers`.
    pub(super) fn add(&mut self, sharers: NodeSet, page: Page) {
        for sharer in sharers.iter() {
            self.list(sharer).pages.push(page);
        }
    }

    /// Adds the `diff` of `page` for each of `sharers`.
    pub(super) fn update(&mut self, sharers: NodeSet, page: Page, diff: &[u8]) {
        let length = u32::try_from(diff.len()).expect("a diff is about as long as a page");
        for sharer in sharers.iter() {
            let list = self.list(sharer);
            list.updates.push(Update { page, length });
            list.bulk.extend_from_slice(diff);
        }
    }

    fn list(&mut self, sharer: NodeId) -> &mut NoticeList {
        let index = self.lists.iter().position(|list| list.sharer == sharer).unwrap_or_else(|| {
            self.lists.push(NoticeList { sharer, pages: vec![], updates: vec![], bulk: vec![] });
            self.lists.len() - 1
        });
        &mut self.lists[index]
    }

    /// Sends one message to each sharer, or several if they would have more than `limit` bytes of diffs or be long.
    pub(super) fn send(&mut self, flush: FlushId, limit: usize, env: &mut dyn Env) -> SentNotices {
        let mut sent = SentNotices::default();
        let FlushId { number: flush, origin, .. } = flush;
        for NoticeList { sharer, pages, updates, bulk } in &mut self.lists {
            let (mut noticed, mut updated, mut bytes) = (&pages[..], &updates[..], &bulk[..]);
            sent.notices += noticed.len() as u64;
            sent.updates += updated.len() as u64;
            while !noticed.is_empty() || !updated.is_empty() {
                let (now, later) = noticed.split_at(noticed.len().min(MOST_PAGES));
                noticed = later;
                let (count, length) = first_updates(updated, limit);
                let (these, others) = updated.split_at(count);
                updated = others;
                let (diffs, rest) = bytes.split_at(length);
                bytes = rest;
                for (first, count) in runs(now) {
                    env.observe(Event::NoticeSent, first, count, *sharer);
                }
                for Update { page, length } in these {
                    env.observe(Event::UpdateSent { bytes: *length }, *page, 1, *sharer);
                }
                let message =
                    CsmMessage::Notices { flush, origin, pages: now.to_vec(), updates: these.to_vec() };
                self.encoder.with(&message, |message| env.send(*sharer, message, diffs));
                sent.messages += 1;
                sent.receivers.insert(*sharer);
            }
            pages.clear();
            updates.clear();
            bulk.clear();
        }
        sent
    }
}

/// How many of these updates one message takes, and how long their diffs are.
fn first_updates(updates: &[Update], limit: usize) -> (usize, usize) {
    let mut length = 0;
    for (count, update) in updates.iter().enumerate().take(MOST_PAGES) {
        if count > 0 && length + update.length as usize > limit {
            return (count, length);
        }
        length += update.length as usize;
    }
    (updates.len().min(MOST_PAGES), length)
}

/// What [`Notices::send`] has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentNotices {
    pub messages: u32,
    /// Counted by page and receiver.
    pub notices: u64,
    /// Counted by page and receiver.
    pub updates: u64,
    pub receivers: NodeSet,
}
