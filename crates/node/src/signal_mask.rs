//! The signals that a thread blocks. By system call: the functions of the C library may be the program's.

use std::ptr::{from_mut, from_ref};

/// The signal by which the C library has a thread change its users and groups.
pub const CREDENTIALS_SIGNAL: i32 = 33;

/// The signals that a thread causes by its own accesses and instructions, as the kernel has them in a mask.
pub(crate) const CAUSED: u64 = 1 << (libc::SIGBUS - 1) | 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGTRAP - 1);

/// The signals that a thread blocks, as the kernel has them: one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalMask(u64);

impl SignalMask {
    /// All but those that a thread causes by its own accesses and instructions, and by which the C library has all threads change their users
    /// and groups: signals sent to the process are for the program's own threads.
    const ALL: Self = Self(!(CAUSED | 1 << (CREDENTIALS_SIGNAL - 1)));

    /// The calling thread blocks all signals that are sent to the process; returns what it blocked before.
    pub(crate) fn block_all() -> Self {
        Self::ALL.set()
    }

    /// The signals of this mask but for some.
    pub(crate) fn without(self, signals: u64) -> Self {
        Self(self.0 & !signals)
    }

    /// The calling thread blocks these signals and no others; returns what it blocked before.
    pub(crate) fn set(self) -> Self {
        let mut before = Self(0);
        // SAFETY: both sets are private variables of the size that is said.
        unsafe {
            gondwana_sys::syscall!(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                from_ref(&self.0),
                from_mut(&mut before.0),
                size_of::<u64>()
            );
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_back_what_it_blocked() {
        let before = SignalMask::block_all();
        assert_eq!(before.set(), SignalMask::ALL.without_unblockable());
        assert_eq!(before.set(), before);
    }

    impl SignalMask {
        /// The kernel never blocks SIGKILL and SIGSTOP.
        fn without_unblockable(self) -> Self {
            Self(self.0 & !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1)))
        }
    }
}
