//! `mlockall`. It would bring the runtime's own memory into the computer's, and all the addresses that nodes share, which are more than any
//! computer has: the kernel only says whether the program may lock memory. Ranges that the program names (`mlock`) are locked on the node that does.

use super::kernel;
use super::protection::result;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::Node;
use libc::{c_int, c_void};

/// Whether the program may lock a page of memory: 0 or an error number.
fn may_lock() -> c_int {
    let Some(like) = kernel::map_anonymous(0, PAGE_SIZE, libc::PROT_NONE) else { return libc::ENOMEM };
    // SAFETY: the mapping was made above, and is nobody else's; its page is not touched.
    unsafe {
        let locked = gondwana_sys::syscall!(libc::SYS_mlock2, like, PAGE_SIZE, libc::MLOCK_ONFAULT);
        let error = if locked < 0 { crate::errno::get() } else { 0 };
        kernel::munmap(like as *mut c_void, PAGE_SIZE);
        error
    }
}

/// # Safety
/// As the C library's `mlockall`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if Node::current().is_none() {
        // SAFETY: forwards the caller's arguments.
        return unsafe { crate::real!(mlockall: fn(c_int) -> c_int)(flags) };
    }
    let locks = libc::MCL_CURRENT | libc::MCL_FUTURE;
    let wrong = flags & !(locks | libc::MCL_ONFAULT) != 0 || flags & locks == 0;
    result(if wrong { libc::EINVAL } else { may_lock() })
}
