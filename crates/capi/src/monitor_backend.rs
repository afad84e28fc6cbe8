//! What the functions of the monitor need of the machine that they run on.

use crate::error::Error;
use gondwana_monitor::{Filter, FilterId, Kinds, SecondaryId};
use gondwana_topology::NodeId;
use libc::{c_int, c_void};
use std::path::Path;

/// `gw_monitor_callback`: filter, first address of the unit, what its counter has reached, and the argument.
pub type Callback = unsafe extern "C" fn(c_int, *const c_void, u64, *mut c_void);

/// Who is told when a counter has reached its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// A function of the program, and what it is given.
    pub callback: Option<(Callback, *mut c_void)>,
    /// An eventfd of the node that asks, or -1.
    pub descriptor: c_int,
}

// SAFETY: the argument is only passed on, to a function that the program has said may be called by another thread.
unsafe impl Send for Listener {}

/// The monitor below the functions for C. What is said of [`Backend`](crate::Backend) holds for it, too; filters
/// are set on all nodes, and anybody may read their counters.
pub trait Monitor: Sync {
    /// Records the run in a file from now on.
    fn start(&self, file: &Path) -> Result<(), Error>;

    /// Records no more.
    fn stop(&self) -> Result<(), Error>;

    /// Sets a filter.
    fn set(&self, filter: Filter, listener: Listener) -> Result<FilterId, Error>;

    /// Takes a filter away.
    fn remove(&self, filter: FilterId) -> Result<(), Error>;

    /// What the counters of a filter have counted on a node, or on all together.
    fn counters(&self, filter: FilterId, node: Option<NodeId>) -> Result<Vec<u64>, Error>;

    /// Begins a secondary counter.
    fn shadow(&self, filters: &[FilterId], kinds: Kinds) -> Result<SecondaryId, Error>;

    /// What a secondary counter has counted on a node, or on all together.
    fn secondary(&self, secondary: SecondaryId, node: Option<NodeId>) -> Result<u64, Error>;

    /// Ends a secondary counter.
    fn unshadow(&self, secondary: SecondaryId) -> Result<(), Error>;

    /// Gives data a name for reports.
    fn name(&self, start: usize, bytes: usize, name: &str) -> Result<(), Error>;
}
