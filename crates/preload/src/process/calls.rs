//! Calls of the C library that node 0 makes for a thread of another node, or all nodes for a thread of one.
//!
//! Each is made by a thread of its own: the C library has locks, and reads variables that a program with copies of them
//! shares, so that whoever receives messages must not make it.

use super::{common, result_of};
use gondwana_node::{Caller, Node};
use gondwana_topology::NodeId;
use libc::c_int;

/// A call, in shared memory: the function is at the same address on all nodes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Call<T> {
    function: fn(&mut T) -> c_int,
    value: T,
    result: c_int,
    error: c_int,
}

/// Makes the call of the node where it runs, in a row of them, with a private copy of the value: the kernel cannot wait for a page.
unsafe extern "C" fn serve<T: Copy>(row: usize) -> usize {
    let Some(node) = Node::current() else { return 0 };
    // SAFETY: `on` passes a row for all nodes that stays until this function returns.
    unsafe {
        let call = (row as *mut Call<T>).add(node.number().index());
        let mut value = Box::new((*call).value);
        (*call).result = ((*call).function)(&mut value);
        (*call).error = crate::errno::get();
        (*call).value = *value;
    }
    0
}

/// Has other nodes make a call on a value at the same time, which each may change. Gives what they have made of it.
fn on<T: Copy>(
    node: &'static Node,
    nodes: &[NodeId],
    value: T,
    function: fn(&mut T) -> c_int,
) -> Vec<Call<T>> {
    let failed = |error| Call { function, value, result: -1, error };
    let bytes = node.nodes() * size_of::<Call<T>>();
    let Some(row) = node.allocate(bytes, align_of::<Call<T>>().max(16), Caller::NONE) else {
        return vec![failed(libc::ENOMEM); nodes.len()];
    };
    let call_of = |to: NodeId| (row as *mut Call<T>).wrapping_add(to.index());
    // SAFETY: the row is this long and nobody else's; each node changes its own call only, until it has answered.
    let calls = unsafe {
        nodes.iter().for_each(|&to| call_of(to).write(Call { function, value, result: 0, error: 0 }));
        let answers = node.call_on_each(nodes, serve::<T>, row);
        nodes
            .iter()
            .zip(answers)
            .map(|(&to, answer)| answer.map_or_else(failed, |_| call_of(to).read()))
            .collect()
    };
    node.free(row);
    calls
}

/// Makes a call on a value on node 0, wherever the calling thread is. Gives what the call gives, with its `errno`.
pub(crate) fn on_first<T: Copy>(value: T, function: fn(&mut T) -> c_int) -> (T, c_int) {
    on_one(NodeId(0), value, function)
}

/// Makes a call on a value on one node. Gives what the call gives, with its `errno`.
pub(crate) fn on_one<T: Copy>(to: NodeId, value: T, function: fn(&mut T) -> c_int) -> (T, c_int) {
    let elsewhere = common().filter(|node| node.number() != to);
    match elsewhere.and_then(|node| on(node, &[to], value, function).pop()) {
        Some(call) => {
            crate::errno::set(call.error);
            (call.value, call.result)
        }
        None => {
            let mut value = Box::new(value);
            let result = function(&mut value);
            (*value, result)
        }
    }
}

/// Makes a call on a value on this node and, if it succeeds, on all others: 0, or -1 with an error number in `errno`.
pub(super) fn on_all<T: Copy>(value: T, function: fn(&mut T) -> c_int) -> c_int {
    let result = function(&mut { value });
    let node = common().filter(|_| result == 0);
    node.map_or(result, |node| result_of(on_others(node, value, function).map_err(|(_, error)| error)))
}

/// Makes a call on a value on all other nodes at the same time, which each get the same one.
///
/// # Errors
/// The first node where it failed, and the error number.
pub(crate) fn on_others<T: Copy>(
    node: &'static Node,
    value: T,
    function: fn(&mut T) -> c_int,
) -> Result<(), (usize, c_int)> {
    let others: Vec<NodeId> = node.others().collect();
    let calls = on(node, &others, value, function);
    match others.iter().zip(calls).find(|(_, call)| call.result != 0) {
        Some((other, call)) => Err((other.index(), call.error)),
        None => Ok(()),
    }
}
