//! Copies of descriptors of other processes on this computer.

use crate::numbers::int;
use libc::{c_int, c_uint};

/// Whether programs that this process runs get a descriptor.
pub(super) enum Lasting {
    UntilExec,
    AcrossExec,
}

/// A copy of another process's descriptor, at a new number here; negative if it cannot be had.
pub(crate) fn fetch(process: c_int, number: c_int) -> c_int {
    let flags: c_uint = 0;
    // SAFETY: the calls touch no memory.
    unsafe {
        let other = int(gondwana_sys::syscall!(libc::SYS_pidfd_open, process, flags));
        if other < 0 {
            return other;
        }
        let copy = int(gondwana_sys::syscall!(libc::SYS_pidfd_getfd, other, number, flags));
        crate::real!(close: fn(c_int) -> c_int)(other);
        copy
    }
}

/// Puts a copy of another process's descriptor at the same number here.
pub(super) fn copy(process: c_int, number: c_int, lasting: Lasting) -> bool {
    let kind = match lasting {
        Lasting::UntilExec => libc::O_CLOEXEC,
        Lasting::AcrossExec => 0,
    };
    let copy = fetch(process, number);
    if copy < 0 {
        return false;
    }
    // SAFETY: the calls touch no memory; the copy is nobody else's.
    unsafe {
        let done = crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(copy, number, kind) == number;
        crate::real!(close: fn(c_int) -> c_int)(copy);
        done
    }
}
