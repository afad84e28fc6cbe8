//! The monitor of the node, for the program.

use super::{Cluster, asking, node, unsupported};
use crate::handler_stack;
use gondwana_api::{Error, Listener, Monitor};
use gondwana_monitor::{Filter, FilterId, Kinds, SecondaryId};
use libc::c_void;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who is told of the thresholds of this node's filters.
static LISTENERS: Mutex<Option<HashMap<u8, Listener>>> = Mutex::new(None);

/// Held while a callback runs.
static CALLING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The calling thread, one of the runtime's own, can run code of the program.
    static READY: Cell<bool> = const { Cell::new(false) };
}

fn listeners() -> MutexGuard<'static, Option<HashMap<u8, Listener>>> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A counter of a filter of the program's has reached its threshold.
pub fn reached(filter: u8, address: u64, count: u64) {
    let _calling = CALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(listener) = listeners().as_ref().and_then(|listeners| listeners.get(&filter).copied()) else {
        return;
    };
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

/// What the launcher has refused.
fn refused((number, why): (i32, String)) -> Error {
    Error::new(number, format!("the run {why}"))
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
        let listens = filter.threshold.is_some();
        asking(move || {
            let id = node.with_panel(|panel| {
                let id = panel.set(filter)?;
                if listens {
                    // Before the panel is free, and with it anybody could look for events.
                    listeners().get_or_insert_default().insert(id.0, listener);
                }
                Ok::<_, Error>(id)
            })?;
            if listens && let Err(error) = node.listen(id) {
                node.with_panel(|panel| panel.remove(id))?;
                return Err(Error::new(
                    libc::EAGAIN,
                    format!("starting the thread that tells thresholds: {error}"),
                ));
            }
            Ok(id)
        })
    }

    fn remove(&self, filter: FilterId) -> Result<(), Error> {
        let node = node()?;
        asking(move || {
            let listened = listeners().as_mut().and_then(|listeners| listeners.remove(&filter.0)).is_some();
            if listened && !READY.get() {
                // A callback that runs may go on counting on its filter; none begins any more.
                drop(CALLING.lock().unwrap_or_else(PoisonError::into_inner));
            }
            node.with_panel(|panel| panel.remove(filter))?;
            node.listen_no_more(filter);
            Ok(())
        })
    }

    fn counters(&self, filter: FilterId) -> Result<Vec<u64>, Error> {
        let node = node()?;
        Ok(asking(move || {
            node.with_panel(|panel| panel.counters(filter).map(|counters| counters.collect()))
        })?)
    }

    fn shadow(&self, filters: &[FilterId], kinds: Kinds) -> Result<SecondaryId, Error> {
        let node = node()?;
        // The numbers may be on a stack that is shared.
        let filters = filters.to_vec();
        Ok(asking(move || node.with_panel(|panel| panel.shadow(&filters, kinds)))?)
    }

    fn secondary(&self, secondary: SecondaryId) -> Result<u64, Error> {
        let node = node()?;
        Ok(asking(move || node.with_panel(|panel| panel.secondary(secondary)))?)
    }

    fn unshadow(&self, secondary: SecondaryId) -> Result<(), Error> {
        let node = node()?;
        Ok(asking(move || node.with_panel(|panel| panel.unshadow(secondary)))?)
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
