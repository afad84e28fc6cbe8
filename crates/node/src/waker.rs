//! Threads that wait until another thread of their node wakes them.

use crate::wait_slots::{WaitSlot, event};
use crate::{Node, Thread};

/// Wakes one thread of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker(WaitSlot);

impl Waker {
    /// The calling thread's.
    #[must_use]
    pub fn current(node: &'static Node) -> Self {
        Self(Thread::current(node).slot)
    }

    /// Forgets that the calling thread was woken: before it leaves its waker where others find it.
    pub fn arm(self, node: &'static Node) {
        node.waiting.slots.arm(self.0, event::WOKEN);
    }

    /// Wakes the thread, now or when it is going to wait.
    pub fn wake(self, node: &'static Node) {
        node.waiting.slots.announce(self.0, event::WOKEN, 0);
    }
}

impl Node {
    /// Waits until the calling thread is woken.
    pub fn await_waking(&'static self) {
        self.privately(move || {
            self.wait(Thread::current(self).slot, event::WOKEN, None);
        });
    }
}
