//! Counts of messages and bytes of a fabric.

use std::sync::atomic::{AtomicU64, Ordering};

/// Messages and bytes that passed through a fabric. Bytes are those of heads and bulk data, without the
/// transport's own headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages accepted by `send`.
    pub messages_sent: u64,
    /// Bytes accepted by `send`.
    pub bytes_sent: u64,
    /// Messages delivered by `poll`.
    pub messages_received: u64,
    /// Bytes delivered by `poll`.
    pub bytes_received: u64,
}

/// Messages and bytes in one direction, written under a lock and read without it.
#[derive(Default)]
pub(crate) struct MessageCounter {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl MessageCounter {
    /// Counts one message. The caller holds the writer's lock, so no message costs a read-modify-write instruction.
    pub(crate) fn count(&self, bytes: usize) {
        self.messages.store(self.messages.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Messages and bytes so far.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.messages.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Counters {
    /// The sum of what was sent to each peer and received from each.
    pub(crate) fn sum<'a>(
        sent: impl Iterator<Item = &'a MessageCounter>,
        received: impl Iterator<Item = &'a MessageCounter>,
    ) -> Self {
        let total = |counters: &mut dyn Iterator<Item = &'a MessageCounter>| {
            counters.map(MessageCounter::get).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        };
        let (messages_sent, bytes_sent) = total(&mut { sent });
        let (messages_received, bytes_received) = total(&mut { received });
        Self { messages_sent, bytes_sent, messages_received, bytes_received }
    }
}
