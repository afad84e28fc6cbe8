//! What a node counts, as `--stats` shows it.

use crate::wire::KINDS;
use gondwana_coherence::{Kind, MOST_KINDS, PROTOCOLS};
use serde_json::{Map, Value, json};

/// Messages and bytes sent, by type.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageCounts {
    /// By the kinds of the protocol that runs.
    coherence: [(u64, u64); MOST_KINDS],
    /// By [`KINDS`].
    other: [(u64, u64); KINDS.len()],
}

impl MessageCounts {
    /// One more message of the coherence protocol.
    pub(crate) fn count_coherence(&mut self, Kind(kind): Kind, bytes: usize) {
        add(&mut self.coherence[usize::from(kind)], bytes);
    }

    /// One more message of another type.
    pub(crate) fn count(&mut self, kind: usize, bytes: usize) {
        add(&mut self.other[kind], bytes);
    }

    fn all(&self) -> impl Iterator<Item = &(u64, u64)> {
        self.coherence.iter().chain(&self.other)
    }

    /// All messages sent.
    #[must_use]
    pub(crate) fn messages(&self) -> u64 {
        self.all().map(|(count, _)| count).sum()
    }

    /// All bytes sent.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.all().map(|(_, bytes)| bytes).sum()
    }

    /// As an object: type -> messages and bytes. `kinds` are those of the protocol that runs; those of others are 0.
    #[must_use]
    pub(crate) fn to_json(&self, kinds: &[&str]) -> Value {
        let silent = PROTOCOLS.iter().flat_map(|protocol| protocol.kinds).map(|name| (name, &(0, 0)));
        let sent = kinds.iter().zip(&self.coherence).chain(KINDS.iter().zip(&self.other));
        silent
            .chain(sent)
            .map(|(name, (count, bytes))| ((*name).to_owned(), json!({"count": count, "bytes": bytes})))
            .collect::<Map<_, _>>()
            .into()
    }
}

fn add((messages, sum): &mut (u64, u64), bytes: usize) {
    *messages += 1;
    *sum += bytes as u64;
}
