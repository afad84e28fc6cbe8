use super::SyncError;
use super::request::{Caller, Reply};
use super::resting::Rest;
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Waiting {
    caller: Caller,
    write: bool,
    /// As a reader, it passes writers as soon as others read.
    passes: bool,
}

/// A readers-writer lock. Which of its threads hold it, each node knows itself. Who waits is served first come first.
///
/// Readers that may pass waiting writers do so, as programs may rely on: a thread that reads already would otherwise
/// wait for a writer that waits for it, and so would one on which a reader waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RwLock {
    writer: Option<NodeId>,
    /// How often threads of each node have locked for reading; never 0.
    readers: BTreeMap<NodeId, u32>,
    waiting: VecDeque<Waiting>,
}

impl RwLock {
    /// A lock for which nobody waits, and which only threads of one node hold.
    pub(super) fn resting(node: NodeId, rest: Rest) -> Self {
        let mut lock = Self { writer: rest.writer.then_some(node), ..Self::default() };
        lock.add_readers(node, rest.count);
        lock
    }

    /// What of the lock can rest with a node: `None` if threads wait for it, or others hold it.
    pub(super) fn rest(&self, node: NodeId) -> Option<Rest> {
        let others = self.readers.keys().chain(&self.writer).any(|holder| *holder != node);
        let count = self.readers.get(&node).copied().unwrap_or(0);
        (self.waiting.is_empty() && !others).then(|| Rest { count, writer: self.writer.is_some(), stamp: 0 })
    }

    /// More threads of a node hold it for reading.
    pub(super) fn add_readers(&mut self, node: NodeId, count: u32) {
        if count > 0 {
            *self.readers.entry(node).or_default() += count;
        }
    }

    /// True if more readers would go on at once.
    pub(super) fn admits_readers(&self) -> bool {
        self.writer.is_none() && self.waiting.is_empty()
    }

    /// `None`: the caller waits and is answered later. `passes`: as a reader, it may pass waiting writers.
    pub(super) fn lock(
        &mut self,
        caller: Caller,
        write: bool,
        attempt: bool,
        passes: bool,
    ) -> Option<Result<i64, SyncError>> {
        let may_pass = if write { attempt } else { passes };
        if self.permits(write) && (may_pass || self.waiting.is_empty()) {
            self.grant(caller.node, write);
            return Some(Ok(0));
        }
        if attempt {
            return Some(Err(SyncError::Busy));
        }
        self.waiting.push_back(Waiting { caller, write, passes });
        None
    }

    pub(super) fn unlock(
        &mut self,
        node: NodeId,
        write: bool,
        out: &mut Vec<Reply>,
    ) -> Result<i64, SyncError> {
        if write {
            self.writer.take_if(|writer| *writer == node).ok_or(SyncError::NotOwner)?;
        } else {
            let times = self.readers.get_mut(&node).ok_or(SyncError::NotOwner)?;
            *times -= 1;
            if *times == 0 {
                self.readers.remove(&node);
            }
        }
        self.admit(out);
        Ok(0)
    }

    /// A cancelled writer may have kept readers waiting: they are admitted.
    pub(super) fn cancel(&mut self, caller: Caller, out: &mut Vec<Reply>) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.caller != caller);
        let cancelled = self.waiting.len() != before;
        self.admit(out);
        cancelled
    }

    fn permits(&self, write: bool) -> bool {
        self.writer.is_none() && (!write || self.readers.is_empty())
    }

    fn grant(&mut self, node: NodeId, write: bool) {
        if write {
            self.writer = Some(node);
        } else {
            self.add_readers(node, 1);
        }
    }

    fn admit(&mut self, out: &mut Vec<Reply>) {
        while let Some(first) = self.waiting.front() {
            if !self.permits(first.write) {
                break;
            }
            let (caller, write) = (first.caller, first.write);
            self.waiting.pop_front();
            self.grant(caller.node, write);
            out.push(caller.done(0));
        }
        if self.permits(false) {
            let passing = |waiting: &Waiting| waiting.passes && !waiting.write;
            let admitted: Vec<_> = self.waiting.iter().copied().filter(passing).collect();
            self.waiting.retain(|waiting| !passing(waiting));
            for Waiting { caller, .. } in admitted {
                self.grant(caller.node, false);
                out.push(caller.done(0));
            }
        }
    }
}
