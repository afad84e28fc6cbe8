//! The limit on open files: the kernel's must leave room for the numbers of all nodes, and the program sees the one
//! it was started with.

use crate::io::{Buffer, with_buffers};
use libc::{RLIMIT_NOFILE, c_int, c_uint, rlimit};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the runtime itself opens, at most: a few, and a connection to every other node.
fn own(nodes: usize) -> u64 {
    64 + nodes as u64
}

/// The soft limit that the program believes in; 0 for the kernel's.
static BELIEVED: AtomicU64 = AtomicU64::new(0);

fn get() -> rlimit {
    let mut limit = rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the result goes to a private variable; the call cannot fail.
    unsafe { crate::real!(getrlimit: fn(c_uint, *mut rlimit) -> c_int)(RLIMIT_NOFILE, &raw mut limit) };
    limit
}

fn set(limit: rlimit) -> c_int {
    // SAFETY: passes a private variable.
    unsafe { crate::real!(setrlimit: fn(c_uint, *const rlimit) -> c_int)(RLIMIT_NOFILE, &raw const limit) }
}

/// Raises the limit as far as it goes. Returns how many numbers a run of `nodes` may divide.
pub fn raise(nodes: usize) -> c_int {
    let limit = get();
    BELIEVED.store(limit.rlim_cur, Ordering::Relaxed);
    set(rlimit { rlim_cur: limit.rlim_max, ..limit });
    c_int::try_from(get().rlim_cur.saturating_sub(own(nodes))).unwrap_or(c_int::MAX)
}

/// Ends the program's numbers where those of the run end.
pub fn settle(room: c_int) {
    set(rlimit { rlim_cur: room as u64, ..get() });
}

/// Defines `getrlimit`, with what the program believes in place of what the kernel says.
macro_rules! telling {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(resource: c_uint, result: *mut rlimit) -> c_int {
            with_buffers(&[Buffer::result(result)], || {
                // SAFETY: forwards the caller's arguments; the structure is there when the call has not failed.
                unsafe {
                    let failed = crate::real!($name: fn(c_uint, *mut rlimit) -> c_int)(resource, result);
                    let believed = BELIEVED.load(Ordering::Relaxed);
                    if failed == 0 && resource == RLIMIT_NOFILE && believed != 0 {
                        (*result).rlim_cur = believed.min((*result).rlim_max);
                    }
                    failed
                }
            })
        }
    )*};
}

telling! { getrlimit getrlimit64 }

/// Defines `setrlimit`: for open files, the kernel's limit stays as long as the hard limit allows.
macro_rules! setting {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(resource: c_uint, limit: *const rlimit) -> c_int {
            if resource == RLIMIT_NOFILE && BELIEVED.load(Ordering::Relaxed) != 0 && !limit.is_null() {
                // SAFETY: the caller passes a valid limit.
                return believe(unsafe { *limit });
            }
            with_buffers(&[Buffer::value(limit)], || {
                // SAFETY: forwards the caller's arguments.
                unsafe { crate::real!($name: fn(c_uint, *const rlimit) -> c_int)(resource, limit) }
            })
        }
    )*};
}

setting! { setrlimit setrlimit64 }

fn believe(wanted: rlimit) -> c_int {
    if wanted.rlim_cur > wanted.rlim_max {
        crate::errno::set(libc::EINVAL);
        return -1;
    }
    let result = set(rlimit { rlim_cur: get().rlim_cur.min(wanted.rlim_max), ..wanted });
    if result == 0 {
        BELIEVED.store(wanted.rlim_cur, Ordering::Relaxed);
    }
    result
}
