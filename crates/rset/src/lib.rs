//! Resource sets, and policies that place threads and pages inside them.
//!
//! A resource set (*RSet*, from the Olifant papers) groups processors and memory: a thread bound to one runs on these
//! processors and gets its memory from these nodes, and nothing else. Sets are combined like sets of anything
//! ([`RSet::union`] and so on), written as text ([`RSet::parse`]) and kept under names, one inside the other
//! ([`Registry`]).
//!
//! Policies say which processor of a set each thread gets ([`ThreadPlan`]) and which node each page gets
//! ([`Placement`]). They are arithmetic: the same numbers decide system calls on a NUMA computer and homes of pages on
//! a cluster.
//!
//! Pure: nothing here asks the computer that it runs on, or changes it.

#![forbid(unsafe_code)]

mod allocation_rule;
mod entry;
mod memory_policy;
mod parse;
mod placement;
mod registry;
mod registry_error;
mod registry_text;
mod rset;
mod selector;
mod text_error;
mod thread_policy;

pub use allocation_rule::AllocationRule;
pub use entry::{Entry, RESERVED_NAMES, check_name};
pub use memory_policy::MemoryPolicy;
pub use placement::{PageRange, Placement, PlacementError, PlacementPart};
pub use registry::Registry;
pub use registry_error::RegistryError;
pub use rset::{RSet, Resource};
pub use selector::{AllocationSite, Selector};
pub use text_error::TextError;
pub use thread_policy::{ThreadPlace, ThreadPlan, ThreadPolicy};
