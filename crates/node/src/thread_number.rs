//! The numbers of threads of a run. Each carries the thread's node, and is never 0.

use gondwana_topology::NodeId;

/// Tells the numbers of a run from the C library's, which are addresses.
const RUN_WIDE: u64 = 1 << 62;

/// Marks threads that libraries start without `pthread_create`.
const FOREIGN: u64 = 1 << 39;

/// Marks threads that the runtime starts on another node for one call. Node 0 does not count them: a thread that counts
/// waits for each.
const REMOTE_CALL: u64 = 1 << 38;

/// A thread of a node.
pub(crate) fn thread_number(node: NodeId, number: u32) -> u64 {
    RUN_WIDE | u64::from(node.0) << 40 | u64::from(number)
}

/// A thread that a library starts without `pthread_create`.
pub(crate) fn foreign_number(node: NodeId, number: u32) -> u64 {
    thread_number(node, number) | FOREIGN
}

/// A thread on `node` that makes the `number`th call for the node `caller`.
pub(crate) fn remote_call_number(node: NodeId, caller: NodeId, number: u32) -> u64 {
    thread_number(node, u32::from(caller.0) << 20 | number & 0xf_ffff) | REMOTE_CALL
}

/// The node that a thread runs on.
pub(crate) fn node_of(thread: u64) -> NodeId {
    NodeId((thread >> 40 & 0x3fff) as u16)
}

/// True if a run gives its threads such numbers.
pub(crate) fn is_run_wide(thread: u64) -> bool {
    thread & RUN_WIDE != 0
}

/// True for a number of [`foreign_number`].
pub(crate) fn is_foreign(thread: u64) -> bool {
    thread & FOREIGN != 0
}

/// True for a number of [`remote_call_number`].
pub(crate) fn is_remote_call(thread: u64) -> bool {
    thread & REMOTE_CALL != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_node_and_kind() {
        let (node, caller) = (NodeId(255), NodeId(254));
        let numbers =
            [thread_number(node, 7), foreign_number(node, 7), remote_call_number(node, caller, 1 << 20)];
        assert!(numbers.iter().all(|&number| node_of(number) == node && is_run_wide(number)));
        assert_eq!(numbers.map(is_foreign), [false, true, false]);
        assert_eq!(numbers.map(is_remote_call), [false, false, true]);
        assert!(!is_run_wide(0x7fff_ffff_f000), "an address of the C library");
    }
}
