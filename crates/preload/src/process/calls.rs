//! Calls of the C library that node 0 makes for a thread of another node, or all nodes for a thread of one.
//!
//! Each is made by a thread of its own: the C library has locks, and reads variables that a program with copies of them
//! shares, so that whoever receives messages must not make it.

use super::common;
use gondwana_node::{Caller, Node};
use gondwana_topology::{Id, NodeId};
use libc::c_int;

/// A call, in shared memory: the function is at the same address on all nodes.
#[repr(C)]
struct Call<T> {
    function: fn(&mut T) -> c_int,
    value: T,
    result: c_int,
    error: c_int,
}

/// Makes the call on the node where it runs, with a private copy of the value: the kernel cannot wait for a page.
unsafe extern "C" fn serve<T: Copy>(address: usize) -> usize {
    let call = address as *mut Call<T>;
    // SAFETY: `on` passes a call that stays until this function returns.
    unsafe {
        let mut value = Box::new((*call).value);
        (*call).result = ((*call).function)(&mut value);
        (*call).error = crate::errno::get();
        (*call).value = *value;
    }
    0
}

/// Has a node make a call on a value, which it may change. Gives what the call gives, with its `errno`.
fn on<T: Copy>(node: &'static Node, to: NodeId, value: &mut T, function: fn(&mut T) -> c_int) -> c_int {
    let failed = |error| {
        crate::errno::set(error);
        -1
    };
    let bytes = size_of::<Call<T>>();
    let Some(address) = node.allocate(bytes, align_of::<Call<T>>().max(16), Caller::NONE) else {
        return failed(libc::ENOMEM);
    };
    let call = address as *mut Call<T>;
    // SAFETY: the block is this long and nobody else's; the other node changes it only during the call.
    unsafe {
        call.write(Call { function, value: *value, result: 0, error: 0 });
        let result = match node.call_on(to, serve::<T>, address) {
            Ok(_) => {
                *value = (*call).value;
                crate::errno::set((*call).error);
                (*call).result
            }
            Err(error) => failed(error),
        };
        node.free(address);
        result
    }
}

/// Makes a call on a value on node 0, wherever the calling thread is. Gives what the call gives, with its `errno`.
pub(crate) fn on_first<T: Copy>(value: T, function: fn(&mut T) -> c_int) -> (T, c_int) {
    let mut value = Box::new(value);
    let result = match common().filter(|node| !node.is_first()) {
        Some(node) => on(node, NodeId(0), &mut *value, function),
        None => function(&mut value),
    };
    (*value, result)
}

/// As [`serve`], with the call of this node in a row of them for all nodes.
unsafe extern "C" fn serve_own<T: Copy>(row: usize) -> usize {
    let number = Node::current().map_or(0, |node| node.number().index());
    // SAFETY: `on_others` passes such a row.
    unsafe { serve::<T>(row + number * size_of::<Call<T>>()) }
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
    let me = node.number().index();
    let others: Vec<NodeId> =
        (0..node.nodes()).filter(|&other| other != me).map(NodeId::from_index).collect();
    let bytes = node.nodes() * size_of::<Call<T>>();
    let row = node.allocate(bytes, align_of::<Call<T>>().max(16), Caller::NONE).ok_or((me, libc::ENOMEM))?;
    let call_of = |other: NodeId| (row as *mut Call<T>).wrapping_add(other.index());
    // SAFETY: the row is this long and nobody else's; each node changes its own call only, until it has answered.
    let result = unsafe {
        for &other in &others {
            call_of(other).write(Call { function, value, result: 0, error: 0 });
        }
        let answers = node.call_on_each(&others, serve_own::<T>, row);
        others.iter().zip(answers).try_for_each(|(&other, answer)| {
            let call = call_of(other);
            match answer {
                Err(error) => Err((other.index(), error)),
                Ok(_) if (*call).result != 0 => Err((other.index(), (*call).error)),
                Ok(_) => Ok(()),
            }
        })
    };
    node.free(row);
    result
}
