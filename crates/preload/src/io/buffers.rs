//! Memory that the kernel uses during a call, which must be present.

use crate::accesses;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::Node;
use std::ffi::c_char;

/// How often a call is repeated before its `EFAULT` is taken for the program's own mistake.
const ATTEMPTS: usize = 64;

/// The access of a system call to a range of memory.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Read,
    Write,
}

/// A range of memory that a system call will use. Null and private ranges need nothing.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub start: usize,
    pub length: usize,
    pub usage: Use,
}

impl Buffer {
    pub(crate) fn read<T>(start: *const T, length: usize) -> Self {
        Self { start: start as usize, length, usage: Use::Read }
    }

    pub(crate) fn write<T>(start: *mut T, length: usize) -> Self {
        Self { start: start as usize, length, usage: Use::Write }
    }

    /// One value that the call reads.
    pub(crate) fn value<T>(start: *const T) -> Self {
        Self::read(start, size_of::<T>())
    }

    /// One value that the call fills in.
    pub(crate) fn result<T>(start: *mut T) -> Self {
        Self::write(start, size_of::<T>())
    }

    /// A string that the call reads.
    pub(crate) fn string(start: *const c_char) -> Self {
        let shared = Node::current().is_some_and(|node| node.is_shared(start as usize));
        // Reading it makes it present.
        Self::read(start, if shared { accesses::string(start.cast()) } else { 0 })
    }

    /// Makes the range present. True if any part of it is shared.
    fn touch(&self, node: &Node) -> bool {
        if self.start == 0 || self.length == 0 || !node.is_shared(self.start) {
            return false;
        }
        let mut at = self.start;
        let last = self.start + (self.length - 1);
        loop {
            if !node.is_shared(at) {
                break;
            }
            // Neither access changes anything, and both fault exactly as the program's own would.
            let is_there = match self.usage {
                Use::Read => accesses::is_readable(at as *const u8),
                Use::Write => accesses::is_writable(at as *mut u8),
            };
            if !is_there {
                break;
            }
            let next = (at / PAGE_SIZE + 1) * PAGE_SIZE;
            if next > last {
                break;
            }
            at = next;
        }
        true
    }
}

/// Results with a value for "failed, see errno".
pub(crate) trait Failing: Copy {
    const FAILED: Self;
    fn failed(self) -> bool;
    /// What a register holds.
    fn from_word(word: i64) -> Self;
}

/// Integers, with -1 for failure.
macro_rules! failing {
    ($($type:ty),*) => {$(
        impl Failing for $type {
            const FAILED: Self = -1;
            fn failed(self) -> bool {
                self == Self::FAILED
            }
            #[allow(clippy::cast_possible_truncation, reason = "the result is the lower part of the register")]
            fn from_word(word: i64) -> Self {
                word as Self
            }
        }
    )*};
}

failing! { i32, i64, isize }

impl<T> Failing for *mut T {
    const FAILED: Self = std::ptr::null_mut();
    fn failed(self) -> bool {
        self.is_null()
    }
    fn from_word(word: i64) -> Self {
        word as Self
    }
}

/// Makes `call` with `buffers` present.
pub(super) fn with_present<R: Failing>(buffers: &[Buffer], mut call: impl FnMut() -> R) -> R {
    let Some(node) = Node::current() else { return call() };
    let before = crate::errno::get();
    for _ in 0..ATTEMPTS {
        let mut shared = false;
        for buffer in buffers {
            shared |= buffer.touch(node);
        }
        let result = call();
        if !(shared && result.failed() && crate::errno::get() == libc::EFAULT) {
            return result;
        }
        crate::errno::set(before);
    }
    call()
}
