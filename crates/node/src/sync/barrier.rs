//! Barriers.

use crate::Node;
use gondwana_coherence::sync::{Object, Request};
use std::sync::atomic::Ordering;

impl Node {
    /// `pthread_barrier_wait`, with its results.
    pub fn barrier_wait(&'static self, barrier: usize, count: u32) -> i32 {
        self.events.barriers.fetch_add(1, Ordering::Relaxed);
        self.release();
        let request = Request::BarrierArrive { barrier: Object(barrier as u64), count, others: vec![] };
        let result = self.request(barrier, request);
        self.acquire();
        result.map_or_else(|error| error, |value| value as i32)
    }
}
