//! A simulated ccNUMA machine: accesses of processors in, simulated time and counts of misses out.
//!
//! Pure: no I/O, no `unsafe`, no host clock. The same accesses in the same order give the same times and counts.
//!
//! - [`Description`] is a machine as a file has it; [`shipped`] has those that come with Gondwana.
//! - [`Machine`] simulates one. [`Machine::access`] is the slow path of each load and store; most of them end in
//!   [`Port::read`] or [`Port::write`], which answer for the line that was used last in a set of the first cache.
//! - [`Schedule`] says which thread of the program runs next, in simulated time.
//! - [`Machine::watch`] has it keep the transactions between nodes for a monitor.
//! - The coherence protocol between nodes is [`gondwana_coherence::directory`].

#![forbid(unsafe_code)]

mod access;
mod cache;
mod colour;
mod counters;
mod description;
mod directory_cache;
mod dispatch;
mod far;
mod idle;
mod invariants;
mod l1;
mod lines;
mod machine;
mod network;
mod placed;
mod port;
mod replication;
mod resource;
mod schedule;
mod sharing;
pub mod shipped;
mod statistics;
mod system_parts;
mod tlb;
mod transaction;
mod watch;

pub use counters::{Cause, Counters, Supply};
pub use description::{
    BusPart, CachePart, Colouring, ControllerPart, Description, FarCachePart, MemoryPart, NetworkPart,
    ProcessorPart, TlbPart, Topology,
};
pub use directory_cache::{DirectoryCachePart, DirectoryLookups};
pub use dispatch::Allowed;
pub use idle::IdleTimes;
pub use machine::{Kind, Machine};
pub use network::Network;
pub use port::Port;
pub use schedule::{Next, Schedule, Scheduling, ThreadId};
pub use statistics::{LinkStatistics, NodeReplication, NodeStatistics, Statistics, Use};
pub use system_parts::{ReplicationPart, SchedulerPart, SchedulerPolicy};
pub use watch::{AtHome, WrittenWords};

/// Simulated time in picoseconds since the start of the program.
pub type Time = u64;

/// Picoseconds in a nanosecond.
pub const NANOSECOND: Time = 1000;

/// What a calendar says when the program starts, in seconds since 1970: any date does, but always the same. 2000-01-01.
pub const CALENDAR: u64 = 946_684_800;

/// The most nodes that a simulated machine may have: a directory entry has one bit for each (full map).
pub const MAX_NODES: usize = 64;

/// The most processors that a simulated machine may have in all.
pub const MAX_PROCESSORS: usize = 128;
