use super::request::{Caller, Reply};
use super::{SyncError, Thread};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct Waiting {
    caller: Caller,
    thread: Thread,
    write: bool,
}

/// A readers-writer lock that serves readers and writers first come first.
///
/// A thread that reads already may read again past waiting writers, as programs may rely on: it would otherwise
/// wait for a writer that waits for it. `attempt` fails only where somebody holds the lock against it.
#[derive(Debug, Default)]
pub(super) struct RwLock {
    writer: Option<Thread>,
    /// Reading threads, and how often each has locked.
    readers: BTreeMap<Thread, u32>,
    waiting: VecDeque<Waiting>,
}

impl RwLock {
    /// `None`: the caller waits and is answered later.
    pub(super) fn lock(
        &mut self,
        caller: Caller,
        thread: Thread,
        write: bool,
        attempt: bool,
    ) -> Option<Result<i64, SyncError>> {
        let free = self.permits(write);
        if !attempt && self.writer == Some(thread) {
            return Some(Err(SyncError::Deadlock));
        }
        if free && (attempt || self.waiting.is_empty() || self.readers.contains_key(&thread)) {
            self.grant(thread, write);
            return Some(Ok(0));
        }
        if attempt {
            return Some(Err(SyncError::Busy));
        }
        self.waiting.push_back(Waiting { caller, thread, write });
        None
    }

    pub(super) fn unlock(&mut self, thread: Thread, out: &mut Vec<Reply>) -> Result<i64, SyncError> {
        if self.writer == Some(thread) {
            self.writer = None;
        } else {
            let times = self.readers.get_mut(&thread).ok_or(SyncError::NotOwner)?;
            *times -= 1;
            if *times == 0 {
                self.readers.remove(&thread);
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

    /// The writer and the readers.
    pub(super) fn holders(&self) -> (Option<Thread>, impl Iterator<Item = Thread>) {
        (self.writer, self.readers.keys().copied())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.writer.is_none() && self.readers.is_empty() && self.waiting.is_empty()
    }

    fn permits(&self, write: bool) -> bool {
        self.writer.is_none() && (!write || self.readers.is_empty())
    }

    fn grant(&mut self, thread: Thread, write: bool) {
        if write {
            self.writer = Some(thread);
        } else {
            *self.readers.entry(thread).or_default() += 1;
        }
    }

    fn admit(&mut self, out: &mut Vec<Reply>) {
        while let Some(first) = self.waiting.front() {
            if !self.permits(first.write) {
                break;
            }
            let (caller, thread, write) = (first.caller, first.thread, first.write);
            self.waiting.pop_front();
            self.grant(thread, write);
            out.push(caller.done(0));
        }
    }
}
