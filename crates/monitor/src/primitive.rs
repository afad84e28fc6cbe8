//! The atomics of the counter bank. `tests/loom.rs` replaces this module by one with loom's.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
