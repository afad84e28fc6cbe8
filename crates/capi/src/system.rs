//! `gw_version` and what a program can ask about the machine.

use crate::arguments::{length, node, numbers, room};
use crate::backend::Kind;
use crate::error::{self, Error, call};
use crate::installed::backend;
use gondwana_page::PAGE_SIZE;
use gondwana_topology::{MAX_PROCESSORS, ProcessorId};
use libc::{c_char, c_int};

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn gw_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What the calling thread's last failed call says.
#[unsafe(no_mangle)]
pub extern "C" fn gw_error_message() -> *const c_char {
    error::message()
}

/// What the calling thread's last successful call could not have.
#[unsafe(no_mangle)]
pub extern "C" fn gw_remark() -> *const c_char {
    error::remark()
}

/// `GW_HOST` or `GW_CLUSTER`.
#[unsafe(no_mangle)]
pub extern "C" fn gw_kind() -> c_int {
    call(-1, || {
        Ok(match backend().kind() {
            Kind::Host => 1,
            Kind::Cluster => 2,
        })
    })
}

/// Bytes in a page.
#[unsafe(no_mangle)]
pub extern "C" fn gw_page_size() -> usize {
    PAGE_SIZE
}

/// The numbers of all nodes.
///
/// # Safety
/// There is room for `most` numbers behind `nodes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_nodes(nodes: *mut c_int, most: c_int) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let to = unsafe { room(nodes, length(most, "the room")?, "the array")? };
        Ok(numbers(backend().machine()?.node_ids().iter(), to))
    })
}

/// The memory of a node in bytes, and what of it is left.
///
/// # Safety
/// Both pointers are null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_node_memory(number: c_int, total: *mut u64, available: *mut u64) -> c_int {
    call(-1, || {
        let machine = backend().machine()?;
        let id = node(number, machine)?;
        let all = machine.node(id).map_or(0, |node| node.memory.total.0);
        let left = backend().available_memory(id).map_or(all, |bytes| bytes.0);
        // SAFETY: the caller's promise.
        unsafe {
            total.as_mut().into_iter().for_each(|total| *total = all);
            available.as_mut().into_iter().for_each(|available| *available = left);
        }
        Ok(0)
    })
}

/// How far one node is from another; 10 is local.
#[unsafe(no_mangle)]
pub extern "C" fn gw_distance(from: c_int, to: c_int) -> c_int {
    call(-1, || {
        let machine = backend().machine()?;
        let distance = machine.distance(node(from, machine)?, node(to, machine)?);
        Ok(distance.and_then(|distance| c_int::try_from(distance).ok()).unwrap_or(c_int::MAX))
    })
}

/// The node of a processor.
#[unsafe(no_mangle)]
pub extern "C" fn gw_node_of_processor(number: c_int) -> c_int {
    call(-1, || {
        let machine = backend().machine()?;
        let processor = u16::try_from(number).ok().filter(|number| usize::from(*number) < MAX_PROCESSORS);
        let node = processor.and_then(|number| machine.node_of(ProcessorId(number)));
        node.map(|node| node.0.into()).ok_or_else(|| {
            let has = machine.processors();
            Error::invalid(format!("the machine has no processor {number} (it has {has})"))
        })
    })
}

/// The node on which the calling thread is, and its processor.
///
/// # Safety
/// `processor` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_here(processor: *mut c_int) -> c_int {
    call(-1, || {
        let (at, node) = backend().here()?;
        // SAFETY: the caller's promise.
        unsafe { processor.as_mut() }.into_iter().for_each(|processor| *processor = at.0.into());
        Ok(node.0.into())
    })
}
