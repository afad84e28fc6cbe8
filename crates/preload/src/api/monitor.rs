//! The monitor of the run, for the program.

use super::cluster::{Cluster, asking, node, unsupported};
use crate::handler_stack;
use gondwana_api::{Error, Listener, Monitor};
use gondwana_control::BankError;
use gondwana_monitor::{Filter, FilterId, Kinds, SecondaryId};
use gondwana_node::monitor::Callback;
use gondwana_topology::NodeId;
use libc::c_void;
use std::cell::Cell;
use std::path::Path;

thread_local! {
    /// The calling thread, one of the runtime's, is prepared to run code of the program.
    static READY: Cell<bool> = const { Cell::new(false) };
}

/// Notifies the program on this node that a counter of a filter has reached its threshold.
fn reached(listener: Listener, filter: u8, address: u64, count: u64) {
    if listener.descriptor >= 0 {
        let one = 1_u64;
        // SAFETY: the kernel reads eight bytes. One that is no eventfd any more is the program's affair.
        unsafe { libc::write(listener.descriptor, (&raw const one).cast(), size_of::<u64>()) };
    }
    if let Some((callback, argument)) = listener.callback {
        if !READY.replace(true) {
            // The callback may touch shared memory.
            handler_stack::begin_thread();
        }
        // SAFETY: the program has promised that another thread may call it as long as the filter is set.
        unsafe { callback(filter.into(), address as *const c_void, count, argument) };
    }
}

/// The program's argument is only passed on, see [`Listener`].
struct Passed(Listener);

// SAFETY: the program has promised that any thread may call its function, with this argument.
unsafe impl Sync for Passed {}

impl Passed {
    fn reached(&self, filter: u8, address: u64, count: u64) {
        reached(self.0, filter, address, count);
    }
}

/// A refusal of the launcher.
fn refused((number, why): (i32, String)) -> Error {
    Error::new(number, format!("the run {why}"))
}

/// A refusal of counter banks.
fn not_done(error: BankError) -> Error {
    match error {
        BankError::Filter(error) => error.into(),
        BankError::Refused(number, sentence) => Error::new(number, sentence),
    }
}

impl Monitor for Cluster {
    fn start(&self, file: &Path) -> Result<(), Error> {
        let node = node()?;
        asking(move || node.record_run(file)).map_err(refused)
    }

    fn stop(&self) -> Result<(), Error> {
        let node = node()?;
        asking(move || node.stop_recording()).map_err(refused)
    }

    fn set(&self, filter: Filter, listener: Listener) -> Result<FilterId, Error> {
        let node = node()?;
        asking(move || {
            let passed = Passed(listener);
            let callback: Option<Callback> = filter.threshold.map(|_| {
                Box::new(move |filter, address, count| passed.reached(filter, address, count)) as Callback
            });
            node.set_filter(filter, callback)
        })
        .map(FilterId)
        .map_err(not_done)
    }

    fn remove(&self, filter: FilterId) -> Result<(), Error> {
        let node = node()?;
        asking(move || node.remove_filter(filter.0)).map_err(not_done)
    }

    fn counters(&self, filter: FilterId, of: Option<NodeId>) -> Result<Vec<u64>, Error> {
        let node = node()?;
        asking(move || node.filter_counters(filter.0, of.map(|of| of.0))).map_err(not_done)
    }

    fn shadow(&self, filters: &[FilterId], kinds: Kinds) -> Result<SecondaryId, Error> {
        let node = node()?;
        // The numbers may be on a stack that is shared.
        let filters: Vec<u8> = filters.iter().map(|filter| filter.0).collect();
        asking(move || node.shadow_filters(&filters, kinds)).map(SecondaryId).map_err(not_done)
    }

    fn secondary(&self, secondary: SecondaryId, of: Option<NodeId>) -> Result<u64, Error> {
        let node = node()?;
        asking(move || node.secondary_counter(secondary.0, of.map(|of| of.0))).map_err(not_done)
    }

    fn unshadow(&self, secondary: SecondaryId) -> Result<(), Error> {
        let node = node()?;
        asking(move || node.unshadow(secondary.0)).map_err(not_done)
    }

    fn name(&self, start: usize, bytes: usize, name: &str) -> Result<(), Error> {
        let node = node()?;
        if !node.is_shared(start) || !node.is_shared(start + bytes - 1) {
            return Err(Error::new(libc::EINVAL, "these addresses are not shared between the nodes"));
        }
        match asking(move || node.name_data(start, bytes, name)) {
            true => Ok(()),
            false => Err(unsupported("this node has been given as many names as it keeps")),
        }
    }
}
