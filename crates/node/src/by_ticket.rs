//! What came for a thread ahead of the answer that it waits for.

use gondwana_locks::lock;
use std::collections::HashMap;
use std::sync::Mutex;

/// Results of questions of this node's threads, by their tickets, until they take them.
pub(crate) struct ByTicket<T>(Mutex<HashMap<u64, T>>);

impl<T> Default for ByTicket<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> ByTicket<T> {
    /// Keeps a result until its thread takes it.
    pub(crate) fn keep(&self, ticket: u64, result: T) {
        lock(&self.0).insert(ticket, result);
    }

    /// A result, once.
    pub(crate) fn take(&self, ticket: u64) -> Option<T> {
        lock(&self.0).remove(&ticket)
    }
}
