//! What a node counts, as `--stats` shows it.

use crate::wire::KINDS;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Messages and bytes sent, by type.
#[derive(Clone, Debug, Default)]
pub struct MessageCounts([(u64, u64); KINDS.len()]);

impl MessageCounts {
    /// One more message of a type.
    pub fn count(&mut self, kind: usize, bytes: usize) {
        self.0[kind].0 += 1;
        self.0[kind].1 += bytes as u64;
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

/// Nanoseconds that threads of this node spent outside the program, as in Figure 2 of the Cashmere paper.
pub struct Times {
    /// False: nobody wants to know, and the clock is not looked at.
    on: bool,
    /// In protocol code.
    pub protocol: AtomicU64,
    /// Waiting for pages, locks and other threads.
    pub waiting: AtomicU64,
    /// Receiving messages.
    pub message: AtomicU64,
}

/// When something began, if times are wanted.
#[derive(Clone, Copy)]
pub struct Began(Option<Instant>);

impl Times {
    /// Nothing spent yet.
    pub fn new(on: bool) -> Self {
        Self { on, protocol: AtomicU64::new(0), waiting: AtomicU64::new(0), message: AtomicU64::new(0) }
    }

    /// Something begins now.
    pub fn begin(&self) -> Began {
        Began(self.on.then(Instant::now))
    }
}

impl Began {
    /// It ends now: adds the nanoseconds that it took to a total.
    pub fn add_to(self, total: &AtomicU64) {
        if let Some(start) = self.0 {
            total.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

/// Events outside the coherence protocol.
#[derive(Default)]
pub struct Events {
    /// Threads of this node that arrived at barriers.
    pub barriers: AtomicU64,
    /// Threads started on this node.
    pub threads: AtomicU64,
}
