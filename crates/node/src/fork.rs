//! A copy of this process made by `fork`.

use crate::birth::Birth;
use crate::core::CoreGuard;
use crate::monitor::Touch;
use crate::signal_mask::SignalMask;
use crate::thread::{Thread, Uninterrupted};
use crate::{CURRENT, Node};
use gondwana_coherence::{Access, Page};
use gondwana_memory::PAGE_SIZE;
use gondwana_prefetch::Prefetch;
use gondwana_topology::NodeId;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

/// How many pages after a missing one are fetched with it.
const AHEAD: u32 = 127;

/// How long a fork waits for threads that begin or end before it looks again, and how often.
const HOLD_AGAIN: Duration = Duration::from_micros(50);
const MOST_HOLDS: u32 = 2000;

/// What a child of a [`Node::fork`] is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Child {
    /// It goes on with the program's code, as by `fork`: the parent waits until all memory is copied.
    GoesOn,
    /// It executes another program soon, or ends, as by `vfork`: nothing is copied, and the calling thread stands still until then.
    Leaves,
}

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

    /// In a child made by [`Node::fork`]: its parent and the other node that alone could access an address.
    #[must_use]
    pub fn out_of_reach_of_child(address: usize) -> Option<(NodeId, NodeId)> {
        // SAFETY: as above.
        let former = unsafe { FORMER.load(Ordering::Acquire).as_ref() }?;
        former.out_of_reach(address).map(|owner| (former.me, owner))
    }

    /// Makes a child process by `fork`. What was shared becomes the child's private copy of this node's memory,
    /// and the child is no node any more. What other nodes alone have is fetched before, so the child sees each byte as it was at some moment of
    /// this call, or as the calling thread left it. `own` is the part of the [thread memory](gondwana_memory::ThreadMemory) that the calling thread has, if
    /// it has any. `hold` keeps other threads of this node from beginning and ending, or gives `None` if one does just now, which is
    /// waited for for a short time; what it gives is called with the result of `fork` when the child has its memory, in both processes.
    ///
    /// # Errors
    /// `EAGAIN` if the kernel refuses a page that both have, or what `fork` gives (as its result).
    pub fn fork<H: FnOnce(i32)>(
        &'static self,
        own: Range<usize>,
        child: Child,
        hold: impl Fn() -> Option<H> + 'static,
        fork: impl FnOnce() -> i32 + 'static,
    ) -> Result<i32, i32> {
        if self.has_company() {
            self.fetch_all();
        }
        self.privately(move || {
            let birth = Birth::new().ok_or(libc::EAGAIN)?;
            let number = self.fork_here(&own, child, &birth, hold, fork)?;
            match number {
                // The page is there until the child leaves this memory.
                0 => std::mem::forget(birth),
                1.. if child == Child::Leaves => birth.wait_until_left(number),
                _ => {}
            }
            Ok(number)
        })
    }

    /// Brings in all shared pages that any node has used. Those that another node takes away before all are here leave their contents
    /// behind in this node's memory.
    fn fetch_all(&'static self) {
        for segment in self.geometry.segments() {
            let bytes = segment.base..segment.base + segment.pages as usize * PAGE_SIZE;
            self.visit_used(bytes, |used| self.fetch(&used));
        }
    }

    fn fetch(&'static self, bytes: &Range<usize>) {
        let pages = self.geometry.page_of(bytes.start).zip(self.geometry.page_of(bytes.end - 1));
        let Some((first, last)) = pages else { return };
        self.privately(move || {
            let shared = self.core().env.pages.included(first..last + 1);
            for part in shared {
                let end = part.end;
                for page in part {
                    let touch = Touch { address: self.geometry.address_of(page), code: 0, writer: None };
                    self.resolve(
                        Page(page),
                        Access::Read,
                        Prefetch::next((end - page - 1).min(AHEAD)),
                        touch,
                    );
                }
            }
        });
    }

    /// The lock on the machines, and what `hold` gives. A thread that begins or ends may need the one before the other can be had. Nor may
    /// it be waited for without end: it may wait for a lock that the program's handlers of this fork have taken.
    fn at_rest<H>(&'static self, hold: impl Fn() -> Option<H>) -> (CoreGuard<'static>, Option<H>) {
        let mut tries = 0;
        loop {
            let core = self.core();
            let held = hold();
            if held.is_some() || tries == MOST_HOLDS {
                return (core, held);
            }
            drop(core);
            tries += 1;
            // A thread cannot be cancelled here.
            Thread::in_runtime(|| std::thread::sleep(HOLD_AGAIN));
        }
    }

    fn fork_here<H: FnOnce(i32)>(
        &'static self,
        own: &Range<usize>,
        child: Child,
        birth: &Birth,
        hold: impl Fn() -> Option<H>,
        fork: impl FnOnce() -> i32,
    ) -> Result<i32, i32> {
        // Held across the fork: the child must find the machines at rest.
        let (mut core, held) = self.at_rest(hold);
        let blocked = SignalMask::block_all();
        if let Err(error) = self.thread_memory.begin_fork(own) {
            crate::fatal(&format!("copying a thread's memory for a child process: {error}"));
        }
        let number = fork();
        if number == 0 {
            let all = child == Child::GoesOn;
            let copied =
                core.env.pages.become_private(all).and_then(|()| self.thread_memory.end_fork_in_child(own));
            if let Err(error) = copied {
                crate::fatal(&format!("copying shared memory for a child process: {error}"));
            }
            if child == Child::Leaves {
                birth.be_present();
            }
            birth.tell();
            // The thread's code has them blocked as long as they are put off.
            blocked.without(Uninterrupted::forget_postponed()).set();
            FORMER.store(CURRENT.load(Ordering::Acquire), Ordering::Release);
            CURRENT.store(std::ptr::null_mut(), Ordering::Release);
            core.leave_to_parent();
            if let Some(held) = held {
                held(0);
            }
            return Ok(0);
        }
        let here = &raw const number as usize;
        // A thread that runs on this very memory keeps the copy: other nodes have no thread yet that could see the difference.
        if !own.contains(&here) {
            // SAFETY: signals are blocked, and the stack is elsewhere.
            if let Err(error) = unsafe { self.thread_memory.end_fork_in_parent(own) } {
                crate::fatal(&format!("a thread's memory after a fork: {error}"));
            }
        }
        blocked.set();
        if number > 0 {
            birth.wait(number);
        }
        if let Some(held) = held {
            held(number);
        }
        Ok(number)
    }
}
