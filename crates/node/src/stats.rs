//! What a node counts, as `--stats` shows it.

use crate::wire::KINDS;
use serde_json::{Map, Value, json};

/// Messages and bytes sent, by type.
#[derive(Clone, Debug, Default)]
pub struct MessageCounts([(u64, u64); KINDS.len()]);

impl MessageCounts {
    /// One more message of a type.
    pub fn count(&mut self, kind: usize, bytes: usize) {
        self.0[kind].0 += 1;
        self.0[kind].1 += bytes as u64;
    }

    /// All messages sent.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.0.iter().map(|(count, _)| count).sum()
    }

    /// All bytes sent.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }

    /// As an object: type -> messages and bytes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        KINDS
            .iter()
            .zip(&self.0)
            .map(|(name, (count, bytes))| ((*name).to_owned(), json!({"count": count, "bytes": bytes})))
            .collect::<Map<_, _>>()
            .into()
    }
}
