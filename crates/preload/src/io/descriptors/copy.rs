//! Copies of descriptors of other processes on this computer.

use crate::numbers::int;
use libc::{c_int, c_uint};

/// Whether programs that this process runs get a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    UntilExec,
    AcrossExec,
}

impl Lasting {
    /// What another process's descriptor does.
    pub(super) fn of(process: c_int, number: c_int) -> Self {
        let text = described(process, number);
        let flags =
            text.lines().find_map(|line| c_int::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
        if flags.is_some_and(|flags| flags & libc::O_CLOEXEC == 0) {
            Self::AcrossExec
        } else {
            Self::UntilExec
        }
    }

    /// The flags with which `dup3` makes such a descriptor.
    pub(super) fn flags(self) -> c_int {
        match self {
            Self::UntilExec => libc::O_CLOEXEC,
            Self::AcrossExec => 0,
        }
    }
}

/// What the system says of a descriptor of a process, a line for each fact; nothing if there is none.
pub(crate) fn described(process: c_int, number: c_int) -> String {
    let (path, mut text) = (format!("/proc/{process}/fdinfo/{number}\0"), vec![0_u8; 256]);
    // SAFETY: a string, and memory as long as told, all of it private.
    let read = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0);
        let read = gondwana_sys::syscall!(libc::SYS_read, file, text.as_mut_ptr(), text.len());
        gondwana_sys::syscall!(libc::SYS_close, file);
        read
    };
    text.truncate(usize::try_from(read).unwrap_or(0));
    String::from_utf8_lossy(&text).into_owned()
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
    let copy = fetch(process, number);
    if copy < 0 {
        return false;
    }
    // SAFETY: the calls touch no memory; the copy is nobody else's.
    unsafe {
        let done =
            crate::real!(dup3: fn(c_int, c_int, c_int) -> c_int)(copy, number, lasting.flags()) == number;
        crate::real!(close: fn(c_int) -> c_int)(copy);
        done
    }
}
