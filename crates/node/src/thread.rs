//! One thread of the program, or of a library, as this node sees it.

use crate::held_locks::HeldLocks;
use crate::monitor::Stacks;
use crate::per_thread::{SIGNAL_INFO_WORDS, SignalInfo, per_thread};
use crate::signal_mask::SignalMask;
use crate::wait_slots::WaitSlot;
use crate::{Node, native_stack};
use gondwana_memory::heap::Cache;
use gondwana_prefetch::Predictor;
use std::cell::{Cell, RefCell};
use std::ops::{Deref, Range};
use std::time::Instant;

/// Bytes of stack that functions of a thread of the runtime itself have.
const NATIVE_STACK: usize = 1 << 20;

/// What the node keeps for the calling thread.
pub struct Thread {
    /// Where it waits.
    pub slot: WaitSlot,
    common: &'static Common,
    /// The same thread while it runs a handler of a signal: the handler may wait, too, and must not take the answers
    /// that the interrupted function waits for.
    handling: Option<&'static Self>,
    /// It waits in a way that ends when a handler of a signal has run.
    interruptible: Cell<Option<EndedBy>>,
    /// Such a handler has run.
    interrupted: Cell<bool>,
}

/// The handlers after which a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// All of them.
    Each,
    /// Those of actions without `SA_RESTART`.
    NotRestarting,
}

impl EndedBy {
    /// The handlers that end a wait of the kernel for a word to change.
    pub(crate) fn of_waiting_until(until: Option<Instant>) -> Self {
        if until.is_some() { Self::Each } else { Self::NotRestarting }
    }
}

/// What is the same whether or not a thread runs a handler.
pub struct Common {
    /// The thread's number in the whole run.
    pub id: u64,
    /// Its stack inside the span; empty for threads that have theirs elsewhere.
    pub stack: Range<usize>,
    /// What it will return to whoever joins it.
    pub value: Cell<u64>,
    /// Its share of the heap.
    pub cache: RefCell<Option<Cache>>,
    /// The same for small blocks that a plan wants on the node that allocates: on pages with no others.
    pub(crate) local_cache: RefCell<Option<Cache>>,
    /// The slabs that are being taken are for such blocks.
    pub(crate) takes_local_slabs: Cell<bool>,
    pub(crate) predictor: RefCell<Predictor>,
    /// How many requests it has made, roughly.
    pub(crate) requests: Cell<u32>,
    /// Where it waits for an access to another node's memory: an instruction may make one while the thread awaits another answer, as that which
    /// looks at the word of a futex. `None` until the first one.
    accessing: Cell<Option<WaitSlot>>,
    /// The readers-writer locks that it holds.
    pub(crate) locks: &'static HeldLocks,
    /// The calls that it has allocated by, if the run is monitored.
    pub(crate) stacks: RefCell<Option<Box<Stacks>>>,
}

impl Deref for Thread {
    type Target = Common;

    fn deref(&self) -> &Common {
        self.common
    }
}

impl Common {
    /// The thread's number for people: 0 is the one that runs `main`.
    pub(crate) fn number(&self) -> u32 {
        gondwana_control::number_for_people(self.id)
    }
}

impl Thread {
    /// The calling thread. A thread that this library did not start gets its place now.
    #[inline]
    pub fn current(node: &'static Node) -> &'static Self {
        Self::known().unwrap_or_else(|| Self::attach(node, 0, 0..0))
    }

    /// The calling thread, if it has its place already.
    #[inline]
    pub(crate) fn known() -> Option<&'static Self> {
        per_thread().current.get()
    }

    /// The calling thread's number for people: 0 is the one that runs `main`.
    #[must_use]
    pub fn current_number() -> u64 {
        Self::known().map_or(0, |thread| u64::from(thread.number()))
    }

    /// The number for people of the thread of the program that is running, unless it is doing what a message asks for.
    pub(crate) fn acting_number() -> Option<u32> {
        let thread = Self::known().filter(|thread| !thread.stack.is_empty())?;
        (!Self::is_handling_message()).then(|| thread.number())
    }

    /// Where the calling thread waits for an access to another node's memory.
    pub(crate) fn accessing(node: &'static Node) -> WaitSlot {
        let thread = Self::current(node);
        thread.accessing.get().unwrap_or_else(|| {
            let Some(slot) = node.waiting.slots.take() else { crate::fatal("too many threads on one node") };
            node.waiting.slots.name(slot, node.waiting.slots.thread(thread.slot));
            thread.accessing.set(Some(slot));
            slot
        })
    }

    /// Gives the calling thread, one of the program's, its number and stack. It begins with the function at `routine`.
    pub fn begin(node: &'static Node, id: u64, stack: Range<usize>, routine: usize) -> &'static Self {
        let thread = Self::attach(node, id, stack);
        node.begin_apart(node.threads.live().saturating_sub(1));
        Self::in_runtime(|| node.monitor.threads.started(thread.number(), &thread.stack, routine));
        thread
    }

    /// Gives the calling thread its number and stack. Number 0 stands for a thread that the run does not know.
    ///
    /// The memory stays in use until [`Thread::detach`].
    fn attach(node: &'static Node, id: u64, stack: Range<usize>) -> &'static Self {
        // A handler must not find the list of slots locked.
        let (slot, other) = Self::in_runtime(|| (node.waiting.slots.take(), node.waiting.slots.take()));
        let (Some(slot), Some(other)) = (slot, other) else { crate::fatal("too many threads on one node") };
        let id = if id == 0 { node.foreign_thread(slot) } else { id };
        let common = Box::leak(Box::new(Common {
            id,
            stack,
            value: Cell::new(0),
            cache: RefCell::new(None),
            local_cache: RefCell::new(None),
            takes_local_slabs: Cell::new(false),
            predictor: RefCell::default(),
            requests: Cell::new(0),
            accessing: Cell::new(None),
            locks: node.notes.locks(slot),
            stacks: RefCell::new(None),
        }));
        let of_slot = |slot, handling| {
            let (interruptible, interrupted) = (Cell::new(None), Cell::new(false));
            Box::leak(Box::new(Self { slot, common, handling, interruptible, interrupted }))
        };
        let handling = of_slot(other, None);
        let thread = of_slot(slot, Some(handling));
        per_thread().first.set(Some(thread));
        per_thread().current.set(Some(thread));
        let number = (!thread.stack.is_empty()).then(|| thread.number());
        [slot, other].into_iter().for_each(|slot| node.waiting.slots.name(slot, number));
        if !thread.stack.is_empty() {
            node.times.thread_begins();
            node.notes.begin_thread(slot, id);
        }
        node.threads.name(id, (node.hooks.native_self)());
        thread
    }

    /// The calling thread ends: gives back its place.
    pub fn detach(node: &'static Node) {
        // A handler may have been left by `siglongjmp`.
        per_thread().current.set(None);
        if let Some(thread) = per_thread().first.take() {
            for cache in [thread.cache.take(), thread.local_cache.take()].into_iter().flatten() {
                node.return_cache(cache);
            }
            node.threads.forget(thread.id);
            node.notes.end_thread(thread.slot);
            Self::in_runtime(|| {
                node.waiting.slots.give_back(thread.slot);
                thread.handling.iter().for_each(|handling| node.waiting.slots.give_back(handling.slot));
                thread.accessing.take().into_iter().for_each(|slot| node.waiting.slots.give_back(slot));
            });
            if !thread.stack.is_empty() {
                node.threads.leave();
                node.times.thread_ends();
            }
            // SAFETY: the references were made from leaked boxes by `attach`, and the only places that held them, this
            // thread's own variables, have just been emptied.
            unsafe {
                drop(Box::from_raw(std::ptr::from_ref(thread.common).cast_mut()));
                thread
                    .handling
                    .iter()
                    .for_each(|&handling| drop(Box::from_raw(std::ptr::from_ref(handling).cast_mut())));
                drop(Box::from_raw(std::ptr::from_ref(thread).cast_mut()));
            }
        }
    }

    /// A handler of a signal begins, which may have interrupted this thread anywhere but in a critical section. Calls that can be begun
    /// again are, if its action `restarts` them.
    pub fn begin_handler(restarts: bool) -> Interrupted {
        let before = Self::known();
        if let Some(handling) = before.and_then(|thread| thread.handling) {
            per_thread().current.set(Some(handling));
        }
        note_handler(before, true);
        // It may be left by `siglongjmp`.
        let waited = before.and_then(|thread| thread.interruptible.take());
        Interrupted { before, waited, restarts }
    }

    /// The handler returns.
    pub fn end_handler(Interrupted { before, waited, restarts }: Interrupted) {
        note_handler(before, false);
        per_thread().current.set(before.or(Self::known()));
        let (Some(thread), Some(node), Some(waited)) = (before, Node::current(), waited) else { return };
        thread.interruptible.set(Some(waited));
        if waited == EndedBy::Each || !restarts {
            thread.interrupted.set(true);
            node.interrupt(thread.slot);
        }
    }

    /// Makes a call that waits until a time, or for ever, and ends earlier when the wait is interrupted: then with `EINTR` if it was a
    /// handler of a signal that has interrupted it.
    pub(crate) fn interruptibly<R>(
        &self,
        node: &Node,
        by: EndedBy,
        call: impl FnOnce() -> Result<R, i32>,
    ) -> Result<R, i32> {
        node.forget_interruption(self.slot);
        self.interrupted.set(false);
        self.interruptible.set(Some(by));
        let result = call();
        self.interruptible.set(None);
        if !self.interrupted.take() {
            return result;
        }
        node.forget_interruption(self.slot);
        result.map_err(|error| if error == libc::ETIMEDOUT { libc::EINTR } else { error })
    }

    /// Starts a thread of the runtime itself, which is not one of the program's. All of them begin here, with a name by
    /// which a panic can be told to the launcher. Signals that are sent to the process do not reach it.
    ///
    /// # Errors
    /// If the system has no room for it.
    pub fn start_native(name: &'static str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        per_thread().starts_native.set(true);
        // The thread is not to block them itself: a signal could come to it before.
        let blocked = SignalMask::block_all();
        let started = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(native_stack(NATIVE_STACK))
            .spawn(move || {
                crate::inject::at(name);
                let note = |begins| {
                    if let Some(node) = Node::current() {
                        node.notes.native(begins);
                    }
                };
                note(true);
                run();
                note(false);
            });
        blocked.set();
        per_thread().starts_native.set(false);
        started.map(|_| ())
    }

    /// The calling thread is the one that receives for this node: whatever it waits for, it receives meanwhile.
    pub fn become_service() {
        per_thread().is_service.set(true);
    }

    /// True for the thread that receives for this node.
    pub(crate) fn is_service() -> bool {
        per_thread().is_service.get()
    }

    /// Does what a message asks for: meanwhile nobody else of this node receives.
    pub(crate) fn handling_message<R>(call: impl FnOnce() -> R) -> R {
        per_thread().handles_message.set(true);
        let result = call();
        per_thread().handles_message.set(false);
        result
    }

    /// True while the calling thread does what a message asks for: it must not wait for another one.
    pub(crate) fn is_handling_message() -> bool {
        per_thread().handles_message.get()
    }

    /// True for a thread that the program started, and for the one that runs `main`.
    #[must_use]
    pub fn is_of_program() -> bool {
        Self::known().is_some_and(|thread| !thread.stack.is_empty())
    }

    /// True while the calling thread starts a thread of the runtime itself.
    #[must_use]
    pub fn is_starting_native() -> bool {
        per_thread().starts_native.get()
    }

    /// True while the calling thread is in a critical section of the runtime.
    #[must_use]
    pub fn inside_runtime() -> bool {
        per_thread().depth.get() > 0
    }

    /// Does what handlers of the program's signals must not interrupt.
    pub fn in_runtime<R>(call: impl FnOnce() -> R) -> R {
        let _uninterrupted = Uninterrupted::begin();
        call()
    }

    /// Keeps a signal, with what came with it, for when the thread leaves the runtime. Until then the interrupted code has it
    /// blocked: further ones wait in the kernel.
    ///
    /// # Safety
    /// Called by a handler, with what the kernel has passed to it.
    pub unsafe fn postpone_signal(signal: i32, info: *const libc::siginfo_t, context: *mut libc::ucontext_t) {
        let bit = 1 << (signal - 1);
        let state = per_thread();
        state.postponed.set(state.postponed.get() | bit);
        // SAFETY: the kernel's description is longer than this and aligned for it, and its context has the mask.
        unsafe {
            state.postponed_infos[many(signal - 1)].set(info.cast::<SignalInfo>().read());
            libc::sigaddset(&raw mut (*context).uc_sigmask, signal);
        }
    }
}

/// What a thread was when a handler of a signal interrupted it.
#[derive(Clone, Copy)]
pub struct Interrupted {
    before: Option<&'static Thread>,
    waited: Option<EndedBy>,
    restarts: bool,
}

fn note_handler(thread: Option<&'static Thread>, begins: bool) {
    if let (Some(thread), Some(node)) = (thread, Node::current()) {
        node.notes.handles(thread.slot, begins);
    }
}

/// Sends the calling thread a signal that it has put off, and blocks it no longer.
fn send_postponed(signal: i32) {
    let state = per_thread();
    let mut info = [0; SIGNAL_INFO_WORDS];
    let kept = state.postponed_infos[many(signal - 1)].get();
    info[..kept.len()].copy_from_slice(&kept);
    state.sent_info.set(info);
    let (process, thread) = (gondwana_sys::process(), gondwana_sys::thread());
    // SAFETY: what the kernel reads is in memory that is private to the thread.
    unsafe {
        gondwana_sys::syscall!(
            libc::SYS_rt_tgsigqueueinfo,
            process,
            thread,
            signal,
            state.sent_info.as_ptr()
        );
        let mut mask = [0; SIGNAL_INFO_WORDS];
        mask[0] = 1 << (signal - 1);
        state.sent_info.set(mask);
        gondwana_sys::syscall!(
            libc::SYS_rt_sigprocmask,
            libc::SIG_UNBLOCK,
            state.sent_info.as_ptr(),
            std::ptr::null_mut::<u64>(),
            size_of::<u64>()
        );
    }
}

fn many(number: i32) -> usize {
    usize::try_from(number).expect("a signal's number")
}

/// A critical section of the runtime: while this value lives, handlers of the program's signals wait.
pub(crate) struct Uninterrupted(());

impl Uninterrupted {
    pub(crate) fn begin() -> Self {
        per_thread().depth.set(per_thread().depth.get() + 1);
        Self(())
    }

    /// In a child of a fork: the signals that the parent's thread has put off, bit 0 being signal 1, are not the child's.
    pub(crate) fn forget_postponed() -> u64 {
        per_thread().postponed.replace(0)
    }
}

impl Drop for Uninterrupted {
    fn drop(&mut self) {
        per_thread().depth.set(per_thread().depth.get() - 1);
        if per_thread().depth.get() == 0 {
            let mut postponed = per_thread().postponed.replace(0);
            while postponed != 0 {
                let signal = postponed.trailing_zeros().cast_signed() + 1;
                postponed &= postponed - 1;
                send_postponed(signal);
            }
        }
    }
}
