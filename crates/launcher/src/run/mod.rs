//! A run on nodes that have been started: its options and plan, its supervision and its recording.

pub(crate) mod common;
mod counter_banks;
pub(crate) mod expected;
pub(crate) mod homes;
pub(crate) mod job;
mod monitored;
pub mod options;
pub mod plan;
pub(crate) mod policies;
pub mod recording_writer;
pub(crate) mod supervise;
