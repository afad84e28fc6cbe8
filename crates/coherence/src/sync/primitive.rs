//! What the entry of a mutex is made of. The loom test puts checked counterparts in this module's place.

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
