//! Permission to use registers that are so many that a process must ask for them (`ARCH_REQ_XCOMP_PERM`): Intel's AMX, which libraries for
//! linear algebra use where there is one. Threads on other nodes use them, too.

use super::calls::on_all;
use crate::numbers::int;
use libc::c_int;

/// The operation of `arch_prctl` that asks; the C library's headers do not have it.
pub(crate) const REQUEST: c_int = 0x1023;

/// Asks for a component of the registers' state, for all nodes.
pub(crate) fn request(component: u64) -> c_int {
    on_all(component, ask)
}

/// Asks for the threads of this node.
fn ask(component: &mut u64) -> c_int {
    // SAFETY: touches no memory.
    int(unsafe { gondwana_sys::syscall!(libc::SYS_arch_prctl, REQUEST, *component) })
}
