//! How the child of a `fork` tells its parent how far it is. No descriptor is needed, which another child or another node could have a copy
//! of.

use gondwana_memory::PAGE_SIZE;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// How long the parent sleeps before it looks whether the child is alive, in nanoseconds.
const LOOK_AGAIN: i64 = 10_000_000;

/// The head of a list of locks that the kernel gives up for a thread that ends or executes a program, as it knows it.
#[repr(C)]
struct Locks {
    first: *const Link,
    /// From a link to its lock, in bytes.
    lock: isize,
    pending: *const Link,
}

/// One of those locks; the last leads to the head.
#[repr(C)]
struct Link {
    next: *const Locks,
}

/// What parent and child have in common, at the beginning of a page of its own.
#[repr(C)]
struct Shared {
    /// Not 0 once the child has the memory that it gets.
    ready: AtomicU32,
    /// A lock that the child has until it has left this memory.
    present: AtomicU32,
    link: Link,
    locks: Locks,
}

/// The beginning of a child process.
pub(crate) struct Birth {
    shared: *mut Shared,
}

impl Birth {
    /// Before the fork. `None` if the kernel refuses the page.
    pub(crate) fn new() -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice changes no existing memory.
        let page = unsafe {
            gondwana_sys::syscall!(libc::SYS_mmap, null_mut::<u8>(), PAGE_SIZE, access, how, -1, 0)
        };
        let shared = usize::try_from(page).ok()? as *mut Shared;
        let lock = (std::mem::offset_of!(Shared, present)).cast_signed()
            - std::mem::offset_of!(Shared, link).cast_signed();
        // SAFETY: the page is this one's own, and zero where nothing is written.
        unsafe {
            let head = &raw mut (*shared).locks;
            (&raw mut (*shared).link).write(Link { next: head });
            head.write(Locks { first: &raw const (*shared).link, lock, pending: std::ptr::null() });
        }
        Some(Self { shared })
    }

    fn ready(&self) -> &AtomicU32 {
        // SAFETY: mapped until this is dropped, and accessed as an atomic word only.
        unsafe { &(*self.shared).ready }
    }

    fn present(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &(*self.shared).present }
    }

    /// In a child that is to leave this memory: the parent learns when it has. The child must not have locks of the C library's list, which
    /// this takes the place of.
    pub(crate) fn be_present(&self) {
        self.present().store(gondwana_sys::thread().cast_unsigned() | libc::FUTEX_WAITERS, Ordering::Release);
        // SAFETY: the kernel reads the list when the child leaves this memory, and sets its lock free.
        unsafe {
            let head = &raw const (*self.shared).locks;
            gondwana_sys::syscall!(libc::SYS_set_robust_list, head, size_of::<Locks>());
        }
    }

    /// In the child: it has the memory that it gets.
    pub(crate) fn tell(&self) {
        self.ready().store(1, Ordering::Release);
        // SAFETY: waking touches no memory.
        unsafe { gondwana_sys::syscall!(libc::SYS_futex, self.ready().as_ptr(), libc::FUTEX_WAKE, 1) };
    }

    /// In the parent: waits until `child` has told it or has ended.
    pub(crate) fn wait(&self, child: i32) {
        wait_while(self.ready(), child, |ready| ready == 0);
    }

    /// In the parent, when `child` has told that it is ready after it was [present](Birth::be_present): waits until it has executed a program
    /// or has ended.
    pub(crate) fn wait_until_left(&self, child: i32) {
        wait_while(self.present(), child, |present| present & libc::FUTEX_OWNER_DIED == 0);
    }
}

fn wait_while(word: &AtomicU32, child: i32, holds: impl Fn(u32) -> bool) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN };
    loop {
        let found = word.load(Ordering::Acquire);
        if !holds(found) || !is_alive(child) {
            return;
        }
        // SAFETY: the word and the time are live. Every outcome means "look again".
        unsafe {
            gondwana_sys::syscall!(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, found, &raw const time)
        };
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        // SAFETY: the page is this one's own.
        unsafe { gondwana_sys::syscall!(libc::SYS_munmap, self.shared, PAGE_SIZE) };
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
        let (birth, end) = (Birth::new().unwrap(), Birth::new().unwrap());
        // The child lives until the parent has come back.
        let child = forked(|| {
            birth.tell();
            while end.ready().load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
        });
        birth.wait(child);
        assert!(is_alive(child));
        end.ready().store(1, Ordering::Release);
        reap(child);
    }

    #[test]
    fn the_parent_goes_on_when_the_child_has_ended() {
        let birth = Birth::new().unwrap();
        let child = forked(|| ());
        birth.wait(child);
        assert!(!is_alive(child));
        reap(child);
    }

    #[test]
    fn the_parent_waits_until_the_child_executes_a_program() {
        let birth = Birth::new().unwrap();
        let (program, argument) = (c"/bin/sleep", c"1000");
        let arguments = [program.as_ptr(), argument.as_ptr(), std::ptr::null()];
        let child = forked(|| {
            birth.be_present();
            birth.tell();
            // SAFETY: strings that end with a null.
            unsafe { libc::execv(program.as_ptr(), arguments.as_ptr()) };
        });
        birth.wait(child);
        birth.wait_until_left(child);
        // The kernel tells it in the midst of the change.
        let this = std::env::current_exe().unwrap();
        while std::fs::read_link(format!("/proc/{child}/exe")).unwrap() == this {
            std::thread::yield_now();
        }
        // SAFETY: ends a child of this test's own.
        unsafe { libc::kill(child, libc::SIGKILL) };
        reap(child);
    }

    #[test]
    fn the_parent_waits_until_the_child_has_ended() {
        let birth = Birth::new().unwrap();
        let child = forked(|| {
            birth.be_present();
            birth.tell();
        });
        birth.wait(child);
        birth.wait_until_left(child);
        assert_ne!(birth.present().load(Ordering::Acquire) & libc::FUTEX_OWNER_DIED, 0);
        reap(child);
    }
}
