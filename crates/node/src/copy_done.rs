//! How the child of a `fork` tells its parent that its copy is complete. No descriptor is needed, which another child or another node
//! could have a copy of.

use gondwana_memory::PAGE_SIZE;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// How long the parent sleeps before it looks whether the child is alive, in nanoseconds.
const LOOK_AGAIN: i64 = 10_000_000;

/// A word that parent and child have in common.
pub(crate) struct CopyDone {
    /// At the beginning of a page of its own.
    word: *const AtomicU32,
}

impl CopyDone {
    /// Before the fork. `None` if the kernel refuses the page.
    pub(crate) fn new() -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice changes no existing memory.
        let page = unsafe {
            gondwana_sys::syscall!(libc::SYS_mmap, null_mut::<u8>(), PAGE_SIZE, access, how, -1, 0)
        };
        usize::try_from(page).ok().map(|page| Self { word: page as *const AtomicU32 })
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: mapped until this is dropped, zero at first, and accessed as an atomic word only.
        unsafe { &*self.word }
    }

    /// In the child: the copy is complete.
    pub(crate) fn tell(&self) {
        self.word().store(1, Ordering::Release);
        // SAFETY: waking touches no memory.
        unsafe { gondwana_sys::syscall!(libc::SYS_futex, self.word, libc::FUTEX_WAKE, 1) };
    }

    /// In the parent: waits until `child` has told it or has ended.
    pub(crate) fn wait(&self, child: i32) {
        let time = libc::timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN };
        while self.word().load(Ordering::Acquire) == 0 && is_alive(child) {
            // SAFETY: the word and the time are live. Every outcome means "look again".
            unsafe {
                gondwana_sys::syscall!(libc::SYS_futex, self.word, libc::FUTEX_WAIT, 0, &raw const time)
            };
        }
    }
}

impl Drop for CopyDone {
    fn drop(&mut self) {
        // SAFETY: the page is this one's own.
        unsafe { gondwana_sys::syscall!(libc::SYS_munmap, self.word, PAGE_SIZE) };
    }
}

/// True if a child of this process has not ended. Its status stays for the program.
fn is_alive(child: i32) -> bool {
    // SAFETY: an all-zero structure is valid.
    let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel writes to the structure.
    let result = unsafe {
        gondwana_sys::syscall!(libc::SYS_waitid, libc::P_PID, child, &raw mut ended, how, null_mut::<u8>())
    };
    // SAFETY: the kernel has filled it in, or it is still zero.
    result == 0 && unsafe { ended.si_pid() } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `child` in a child process.
    fn forked(child: impl FnOnce()) -> i32 {
        // SAFETY: the child calls nothing that another thread could have left locked.
        let number = unsafe { libc::fork() };
        if number == 0 {
            child();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        number
    }

    fn reap(child: i32) {
        // SAFETY: waits for a child of this test's own.
        assert_eq!(unsafe { libc::waitpid(child, null_mut(), 0) }, child);
    }

    #[test]
    fn the_parent_goes_on_when_the_child_has_told_it() {
        let (done, end) = (CopyDone::new().unwrap(), CopyDone::new().unwrap());
        // The child lives until the parent has come back.
        let child = forked(|| {
            done.tell();
            while end.word().load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
        });
        done.wait(child);
        assert!(is_alive(child));
        end.tell();
        reap(child);
    }

    #[test]
    fn the_parent_goes_on_when_the_child_has_ended() {
        let done = CopyDone::new().unwrap();
        let child = forked(|| ());
        done.wait(child);
        assert!(!is_alive(child));
        reap(child);
    }
}
