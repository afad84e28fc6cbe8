//! A copy of this process made by `fork`.

use crate::signal_mask::SignalMask;
use crate::{CURRENT, Node};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicPtr, Ordering};

/// In a child: the node that its parent is.
static FORMER: AtomicPtr<Node> = AtomicPtr::new(std::ptr::null_mut());

impl Node {
    /// In a child made by [`Node::fork`]: how many bytes the block at an address has if it was allocated before the
    /// fork, which the C library does not know of. 0 if the child cannot know.
    #[must_use]
    pub fn inherited_block(address: usize) -> Option<usize> {
        // SAFETY: the pointer is null or comes from a leaked box.
        let former = unsafe { FORMER.load(Ordering::Acquire).as_ref() }?;
        former.is_shared(address).then(|| former.heap.usable_size(address).unwrap_or(0))
    }

    /// Makes a child process by `fork`. What was shared becomes the child's private copy of this node's memory,
    /// and the child is no node any more; most often it runs another program next. The parent waits for the
    /// copy to be complete. `own` is the part of the [thread memory](gondwana_memory::ThreadMemory) that the calling thread has, if
    /// it has any.
    ///
    /// # Errors
    /// `EAGAIN` if the two cannot be told of each other, or what `fork` gives (as its result).
    pub fn fork(&'static self, own: Range<usize>, fork: impl FnOnce() -> i32 + 'static) -> Result<i32, i32> {
        self.privately(move || self.fork_here(&own, fork))
    }

    fn fork_here(&'static self, own: &Range<usize>, fork: impl FnOnce() -> i32) -> Result<i32, i32> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors, which nobody else owns.
        let (reading, writing) = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return Err(libc::EAGAIN);
            }
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        // Held across the fork: the child must find the machines at rest.
        let mut core = self.core();
        let blocked = SignalMask::block_all();
        if let Err(error) = self.thread_memory.begin_fork(own) {
            crate::fatal(&format!("copying a thread's memory for a child process: {error}"));
        }
        let child = fork();
        if child == 0 {
            let copied =
                core.env.pages.become_private().and_then(|()| self.thread_memory.end_fork_in_child(own));
            if let Err(error) = copied {
                crate::fatal(&format!("copying shared memory for a child process: {error}"));
            }
            blocked.set();
            FORMER.store(CURRENT.load(Ordering::Acquire), Ordering::Release);
            CURRENT.store(std::ptr::null_mut(), Ordering::Release);
            std::mem::forget(core);
            return Ok(0);
        }
        let here = &raw const child as usize;
        // A thread that runs on this very memory keeps the copy: other nodes have no thread yet that could see the difference.
        if !own.contains(&here) {
            // SAFETY: signals are blocked, and the stack is elsewhere.
            if let Err(error) = unsafe { self.thread_memory.end_fork_in_parent(own) } {
                crate::fatal(&format!("a thread's memory after a fork: {error}"));
            }
        }
        blocked.set();
        drop(writing);
        if child > 0 {
            // Ends when the child has closed its end, by finishing its copy or by dying.
            let _ = File::from(reading).read(&mut [0]);
        }
        Ok(child)
    }
}
