//! The barrier that one thread makes for all of the program's (`membarrier`): readers that make none of their own, such as those of
//! userspace RCU, rely on it on whatever node they are.

use super::calls::on_all;
use libc::{c_int, c_uint};

/// The command that only asks.
const QUERY: c_int = 0;

/// The arguments of the system call.
type Barrier = (c_int, c_uint, c_int);

/// As the system call. What registers a process registers those of all nodes.
pub(crate) fn membarrier(command: c_int, flags: c_uint, processor: c_int) -> c_int {
    let mut barrier = (command, flags, processor);
    if command == QUERY { make(&mut barrier) } else { on_all(barrier, make) }
}

/// Makes it for the threads of this node.
fn make(&mut (command, flags, processor): &mut Barrier) -> c_int {
    // SAFETY: touches no memory.
    let result = unsafe { gondwana_sys::syscall!(libc::SYS_membarrier, command, flags, processor) };
    crate::numbers::int(result)
}
