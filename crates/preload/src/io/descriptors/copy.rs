//! Copies of descriptors of other processes on this computer.

use crate::numbers::int;
use libc::{c_int, c_uint};

/// Whether programs that this process runs get a descriptor.
pub(super) enum Lasting {
    UntilExec,
    AcrossExec,
}

/// Puts a copy of another process's descriptor at the same number here.
pub(super) fn copy(process: c_int, number: c_int, lasting: Lasting) -> bool {
    let kind = match lasting {
        Lasting::UntilExec => libc::O_CLOEXEC,
        Lasting::AcrossExec => 0,
    };
    let flags: c_uint = 0;
    // SAFETY: none of the calls touches memory; all descriptors that they give are closed again.
    unsafe {
        let other = int(gondwana_sys::syscall!(libc::SYS_pidfd_open, process, flags));
        let copy = int(gondwana_sys::syscall!(libc::SYS_pidfd_getfd, other, number, flags));
        let close = crate::real!(close: fn(c_int) -> c_int);
        let done =
            copy >= 0 && crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(copy, number, kind) == number;
        for descriptor in [other, copy] {
            if descriptor >= 0 {
                close(descriptor);
            }
        }
        done
    }
}
