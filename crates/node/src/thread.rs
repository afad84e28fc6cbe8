//! One thread of the program, or of a library, as this node sees it.

use crate::Node;
use crate::slots::Slot;
use crate::streams::Streams;
use gondwana_memory::heap::Cache;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// What the node keeps for the calling thread.
pub struct Thread {
    /// The thread's number in the whole run.
    pub id: u64,
    /// Where it waits.
    pub slot: Slot,
    /// Its stack inside the span; empty for threads that have theirs elsewhere.
    pub stack: Range<usize>,
    /// What it will return to whoever joins it.
    pub value: Cell<u64>,
    /// Its values of the keys of thread-specific data.
    pub specifics: RefCell<BTreeMap<u32, usize>>,
    /// Its share of the heap.
    pub cache: RefCell<Option<Cache>>,
    pub(crate) streams: RefCell<Streams>,
}

thread_local! {
    static CURRENT: Cell<Option<&'static Thread>> = const { Cell::new(None) };
    static NATIVE: Cell<bool> = const { Cell::new(false) };
    static SERVICE: Cell<bool> = const { Cell::new(false) };
    /// How many of the runtime's critical sections the thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Signals whose handlers wait for the thread to leave the runtime.
    static POSTPONED: Cell<u64> = const { Cell::new(0) };
}

impl Thread {
    /// The calling thread. A thread that this library did not start gets its place now.
    pub fn current(node: &'static Node) -> &'static Self {
        CURRENT.get().unwrap_or_else(|| Self::attach(node, 0, 0..0))
    }

    /// The calling thread's number for people: 0 is the one that runs `main`.
    #[must_use]
    pub fn current_number() -> u64 {
        CURRENT.get().map_or(0, |thread| (thread.id & 0xffff_ffff).saturating_sub(1))
    }

    /// Gives the calling thread its number and stack. Number 0 stands for a thread that the run does not know.
    ///
    /// The memory stays in use until [`Thread::detach`].
    pub fn attach(node: &'static Node, id: u64, stack: Range<usize>) -> &'static Self {
        let Some(slot) = node.slots.take() else { crate::fatal("too many threads on one node") };
        let id = if id == 0 { node.foreign_thread(slot) } else { id };
        let thread = Box::leak(Box::new(Self {
            id,
            slot,
            stack,
            value: Cell::new(0),
            specifics: RefCell::default(),
            cache: RefCell::new(None),
            streams: RefCell::default(),
        }));
        CURRENT.set(Some(thread));
        if !thread.stack.is_empty() {
            node.live.fetch_add(1, Ordering::Relaxed);
        }
        node.natives.lock().expect("not poisoned").insert(id, (node.hooks.native_self)());
        thread
    }

    /// The calling thread ends: gives back its place.
    pub fn detach(node: &'static Node) {
        if let Some(thread) = CURRENT.take() {
            if let Some(cache) = thread.cache.take() {
                node.return_cache(cache);
            }
            node.natives.lock().expect("not poisoned").remove(&thread.id);
            node.slots.give_back(thread.slot);
            if !thread.stack.is_empty() {
                node.live.fetch_sub(1, Ordering::Relaxed);
            }
            // SAFETY: the reference was made from a leaked box by `attach`, and the only place that held it,
            // CURRENT of this thread, has just been emptied.
            drop(unsafe { Box::from_raw(std::ptr::from_ref(thread).cast_mut()) });
        }
    }

    /// Starts a thread of the runtime itself, which is not one of the program's.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub(crate) fn start_native(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        NATIVE.set(true);
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        NATIVE.set(false);
        started.map(|_| ())
    }

    /// The calling thread is the one that receives for this node.
    pub(crate) fn become_service() {
        SERVICE.set(true);
    }

    /// True for the thread that receives for this node.
    pub(crate) fn is_service() -> bool {
        SERVICE.get()
    }

    /// True for a thread that the program started, and for the one that runs `main`.
    #[must_use]
    pub fn is_of_program() -> bool {
        CURRENT.get().is_some_and(|thread| !thread.stack.is_empty())
    }

    /// True while the calling thread starts a thread of the runtime itself.
    #[must_use]
    pub fn is_starting_native() -> bool {
        NATIVE.get()
    }

    /// True while the calling thread is in a critical section of the runtime.
    #[must_use]
    pub fn inside_runtime() -> bool {
        DEPTH.get() > 0
    }

    /// Does what handlers of the program's signals must not interrupt.
    pub fn in_runtime<R>(call: impl FnOnce() -> R) -> R {
        Self::enter_runtime();
        let result = call();
        Self::leave_runtime();
        result
    }

    /// Keeps a signal for when the thread leaves the runtime.
    pub fn postpone_signal(signal: i32) {
        POSTPONED.set(POSTPONED.get() | 1 << (signal - 1));
    }

    pub(crate) fn enter_runtime() {
        DEPTH.set(DEPTH.get() + 1);
    }

    pub(crate) fn leave_runtime() {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            let mut postponed = POSTPONED.replace(0);
            while postponed != 0 {
                let signal = postponed.trailing_zeros() as i32 + 1;
                postponed &= postponed - 1;
                // SAFETY: sends the calling thread the signal that it has put off.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
            }
        }
    }
}
