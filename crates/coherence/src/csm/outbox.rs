//! What one flush sends, gathered so that each receiver gets as few messages as possible.

use super::message::{CsmMessage, DiffEntry};
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

/// Write notices for several sharers.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices {
    lists: Vec<(NodeId, Vec<Page>)>,
    encoder: Encoder,
}

impl Notices {
    /// Adds a notice about `page` for each of `sharers`.
    pub(super) fn add(&mut self, sharers: NodeSet, page: Page) {
        for sharer in sharers.iter() {
            match self.lists.iter_mut().find(|(node, _)| *node == sharer) {
                Some((_, pages)) => pages.push(page),
                None => self.lists.push((sharer, vec![page])),
            }
        }
    }

    /// Sends one message to each sharer, or several if they would be long.
    pub(super) fn send(&mut self, flush: FlushId, env: &mut dyn Env) -> SentNotices {
        let mut sent = SentNotices::default();
        for (sharer, list) in &mut self.lists {
            if list.is_empty() {
                continue;
            }
            sent.notices += list.len() as u64;
            sent.receivers.insert(*sharer);
            let FlushId { number: flush, origin, .. } = flush;
            for pages in list.chunks(MOST_PAGES) {
                sent.messages += 1;
                let message = CsmMessage::Notices { flush, origin, pages: pages.to_vec() };
                for (first, count) in runs(pages) {
                    env.observe(Event::NoticeSent, first, count, *sharer);
                }
                self.encoder.with(&message, |message| env.send(*sharer, message, &[]));
            }
            list.clear();
        }
        sent
    }
}

/// What [`Notices::send`] has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentNotices {
    pub messages: u32,
    /// Counted by page and receiver.
    pub notices: u64,
    pub receivers: NodeSet,
}
