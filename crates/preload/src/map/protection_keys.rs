//! Protection keys, which the processor has for the pages of one process: shared memory has none. A program gets no key, as on systems
//! without them.

use gondwana_node::Node;
use libc::{c_int, c_uint, c_void, size_t};

/// The key of memory that has none.
const NONE: c_int = -1;

/// # Safety
/// As the C library's `pkey_alloc`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pkey_alloc(flags: c_uint, rights: c_uint) -> c_int {
    if Node::current().is_some() {
        crate::errno::set(libc::ENOSPC);
        return -1;
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { crate::real!(pkey_alloc: fn(c_uint, c_uint) -> c_int)(flags, rights) }
}

/// # Safety
/// As the C library's `pkey_mprotect`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pkey_mprotect(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    key: c_int,
) -> c_int {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        match (Node::current(), key) {
            (Some(_), NONE) => super::mprotect(address, length, protection),
            (Some(_), _) => {
                crate::errno::set(libc::EINVAL);
                -1
            }
            (None, _) => crate::real!(pkey_mprotect: fn(*mut c_void, size_t, c_int, c_int) -> c_int)(
                address, length, protection, key,
            ),
        }
    }
}
