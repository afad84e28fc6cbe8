//! Starting and ending threads over all nodes.

use crate::Node;
use crate::clock::{Activity, Scope};
use crate::monitor::Touch;
use crate::schedule;
use crate::signal_mask::CAUSED;
use crate::sync::JoinWait;
use crate::thread_number::{
    foreign_number, is_foreign, is_remote_call, is_run_wide, node_of, remote_call_number, thread_number,
};
use crate::wait_slots::WaitSlot;
use crate::wire::{ThreadSpec, Wire};
use gondwana_coherence::sync::{Answer, Request, SyncError, Thread as ThreadId, Ticket};
use gondwana_coherence::{Access, Page};
use gondwana_memory::PAGE_SIZE;
use gondwana_page::{to_usize, whole_pages};
use gondwana_prefetch::Prefetch;
use gondwana_topology::{NodeId, NodeSet};
use std::ops::Range;

/// Pages at the top of a stack that are there before the thread starts: the frames that system calls of the C
/// library itself may write to.
const STACK_TOP_PAGES: u32 = 32;

/// Bytes of stack of a thread that makes one call for another node.
const REMOTE_CALL_STACK: u64 = 256 << 10;

impl Node {
    /// True if the number is one that this run gives its threads.
    #[must_use]
    pub fn is_thread(&self, thread: u64) -> bool {
        is_run_wide(thread) && node_of(thread).index() < self.nodes()
    }

    /// The node that a thread was placed on, if it is one of the run.
    #[must_use]
    pub fn place_of_thread(&self, thread: u64) -> Option<usize> {
        self.is_thread(thread).then(|| node_of(thread).index())
    }

    /// The C library's name for a thread of this node.
    #[must_use]
    pub fn native_thread(&'static self, thread: u64) -> Option<u64> {
        self.undisturbed(move || self.threads.native(thread))
    }

    /// Starts a thread by a function that returns the C library's name for it. The name is known before another thread
    /// learns of the new one and may send it a signal.
    ///
    /// # Errors
    /// Those of the function.
    pub fn begin_native(
        &'static self,
        thread: u64,
        start: impl FnOnce() -> Result<u64, i32>,
    ) -> Result<(), i32> {
        self.undisturbed(move || self.threads.begins(thread));
        // Holds nothing: it touches memory of the program, and serves others while it waits for that.
        let started = start();
        self.undisturbed(move || self.threads.began(thread, started));
        started.map(|_| ())
    }

    /// The calling thread begins, beside `others` on this node: on a processor of its own, if there is one for each.
    pub(crate) fn begin_apart(&self, others: u32) {
        let each = u32::from(self.boot.processors);
        if others < each && self.waiting.has_processor() {
            schedule::begin_at(self.me.index() * each as usize + others as usize);
        }
    }

    /// The number of the thread that runs `main`.
    #[must_use]
    pub fn main_thread(&self) -> u64 {
        thread_number(NodeId(0), 1)
    }

    /// A number for a thread that a library started without `pthread_create`.
    pub(crate) fn foreign_thread(&self, slot: WaitSlot) -> u64 {
        foreign_number(self.me, slot.0)
    }

    /// `pthread_create`: the new thread's number.
    ///
    /// # Errors
    /// `EAGAIN` when the node that it would go to has no room.
    pub fn create_thread(&'static self, spec: ThreadSpec) -> Result<u64, i32> {
        self.start_thread(spec, None)
    }

    /// As [`Node::create_thread`], on the one of some nodes that has the fewest threads.
    ///
    /// # Errors
    /// `EINVAL` if the run has none of the nodes, `EAGAIN` if the chosen one has no room.
    pub fn create_thread_in(&'static self, among: NodeSet, spec: ThreadSpec) -> Result<u64, i32> {
        if !among.iter().any(|node| node.index() < self.nodes()) {
            return Err(libc::EINVAL);
        }
        self.start_thread(spec, Some(among))
    }

    fn start_thread(&'static self, mut spec: ThreadSpec, among: Option<NodeSet>) -> Result<u64, i32> {
        self.privately(move || {
            spec.id = if self.is_first() {
                self.threads.place(among)
            } else {
                self.ask_for(NodeId(0), move |ticket| Wire::Place { ticket, among })?.cast_unsigned()
            };
            let to = node_of(spec.id);
            if to == self.me {
                self.start_here(spec)?;
            } else {
                self.threads.note_remote();
                self.release_to(to);
                self.core().downgrade_exclusive();
                self.ask_publishing(to, move |ticket| Wire::Start { ticket, thread: spec })?;
            }
            Ok(spec.id)
        })
    }

    /// Calls `function(argument)` in a thread of another node, or right here, and returns its result. What either
    /// side has written before, the other sees.
    ///
    /// # Errors
    /// `EAGAIN` when the node has no room for the thread.
    ///
    /// # Safety
    /// The function is at that address on all nodes, and may be called with the argument on any.
    pub unsafe fn call_on(
        &'static self,
        to: NodeId,
        function: unsafe extern "C" fn(usize) -> usize,
        argument: usize,
    ) -> Result<usize, i32> {
        if to == self.me {
            // SAFETY: the caller's promise.
            return Ok(unsafe { function(argument) });
        }
        self.privately(move || {
            let id = self.begin_call(to, function, argument)?;
            self.join_thread(id, JoinWait::Forever).map(to_usize)
        })
    }

    /// As [`Node::call_on`] on several other nodes at the same time; the results in their order.
    ///
    /// # Safety
    /// As for that.
    pub unsafe fn call_on_each(
        &'static self,
        nodes: &[NodeId],
        function: unsafe extern "C" fn(usize) -> usize,
        argument: usize,
    ) -> Vec<Result<usize, i32>> {
        let nodes = nodes.to_vec();
        self.privately(move || {
            let begun: Vec<Result<u64, i32>> =
                nodes.into_iter().map(|to| self.begin_call(to, function, argument)).collect();
            let join = |id| self.join_thread(id, JoinWait::Forever).map(to_usize);
            begun.into_iter().map(|begun| begun.and_then(join)).collect()
        })
    }

    /// Has another node call `function(argument)` in a thread, whose number is the result.
    fn begin_call(
        &'static self,
        to: NodeId,
        function: unsafe extern "C" fn(usize) -> usize,
        argument: usize,
    ) -> Result<u64, i32> {
        let id = remote_call_number(to, self.me, self.threads.next_remote_call());
        let (function, argument) = (function as usize as u64, argument as u64);
        // Signals are for the program's own threads.
        let blocked = !CAUSED;
        let thread =
            ThreadSpec { id, function, argument, stack: REMOTE_CALL_STACK, blocked, ..ThreadSpec::default() };
        self.release_to(to);
        self.ask_publishing(to, move |ticket| Wire::Start { ticket, thread })?;
        Ok(id)
    }

    /// Starts a thread on this node, for this or another node.
    fn start_here(&'static self, spec: ThreadSpec) -> Result<(), i32> {
        let thread = ThreadId(spec.id);
        self.request_of(self.me, Request::ThreadStart { thread, detached: spec.detached })?;
        self.threads.count_start();
        (self.hooks.start_thread)(self, spec).inspect_err(|_| {
            let _ = self.request_of(self.me, Request::Detach { thread });
            let _ = self.request_of(self.me, Request::ThreadExit { thread, value: 0 });
            self.tell_ended(spec.id);
        })
    }

    /// The service thread starts what another node asked for.
    pub(crate) fn start_for_peer(&'static self, from: NodeId, ticket: Ticket, spec: ThreadSpec) {
        self.acquire(None);
        let answer = match self.start_here(spec) {
            Ok(()) => Answer::Done(0),
            Err(_) => Answer::Failed(SyncError::Exhausted),
        };
        self.core().answer(from, ticket, answer);
    }

    /// Another node asks where a thread may go.
    pub(crate) fn place_for(&'static self, from: NodeId, ticket: Ticket, among: Option<NodeSet>) {
        let number = self.threads.place(among);
        self.threads.note_remote();
        self.core().answer(from, ticket, Answer::Done(number.cast_signed()));
    }

    /// The calling thread ends: what it wrote is released, its joiner is told.
    pub fn thread_ended(&'static self, id: u64, value: u64) {
        self.privately(move || {
            if is_foreign(id) || id == self.main_thread() {
                return;
            }
            self.release(None);
            let _ = self.request_of(self.me, Request::ThreadExit { thread: ThreadId(id), value });
            self.tell_ended(id);
        })
    }

    fn tell_ended(&'static self, id: u64) {
        if is_remote_call(id) {
            return;
        }
        if self.is_first() {
            self.thread_gone(self.me);
        } else {
            self.core().publish(NodeId(0), &Wire::Ended);
        }
    }

    /// Node 0 learns that a thread of any node has ended.
    pub(crate) fn thread_gone(&'static self, node: NodeId) {
        self.threads.ended(node);
    }

    /// True for the thread that runs `main`.
    #[must_use]
    pub fn is_main(&self, thread: u64) -> bool {
        thread == self.main_thread()
    }

    /// The thread that runs `main` can be joined and detached like others.
    pub fn main_begins(&'static self) {
        let main = ThreadId(self.main_thread());
        let _ = self.request_of(self.me, Request::ThreadStart { thread: main, detached: false });
    }

    /// `pthread_exit` in main, with this value: the process lives until the last thread of the run has ended. Returns
    /// then.
    pub fn main_exits_alone(&'static self, value: u64) {
        self.privately(move || {
            self.release(None);
            let thread = ThreadId(self.main_thread());
            let _ = self.request_of(self.me, Request::ThreadExit { thread, value });
            let _time = Scope::enter(Activity::Waiting);
            self.threads.wait_for_all();
            self.acquire(None);
        })
    }

    /// True once threads were started on another node than the one that asked.
    #[inline]
    #[must_use]
    pub fn has_remote_threads(&self) -> bool {
        self.threads.any_remote()
    }

    /// True if threads of the program may be, or have been, on other nodes.
    #[must_use]
    pub fn has_company(&self) -> bool {
        !self.is_first() || self.has_remote_threads()
    }

    /// A thread of this node will run on this stack. Brings in the part of it that is used first.
    pub fn begin_stack(&'static self, stack: &Range<usize>) {
        let Some(pages) = self.pages_of_stack(stack) else { return };
        let count = STACK_TOP_PAGES.min(pages.end - pages.start);
        let first = pages.end - count;
        let touch = Touch { address: self.geometry.address_of(first), code: 0, writer: None };
        self.privately(move || {
            self.core().env.stacks.push(pages);
            self.resolve(Page(first), Access::Write, Prefetch::next(count - 1), touch);
        });
    }

    /// No thread runs on this stack any more.
    pub fn end_stack(&'static self, stack: &Range<usize>) {
        let Some(pages) = self.pages_of_stack(stack) else { return };
        self.privately(move || self.core().env.stacks.retain(|other| *other != pages));
    }

    fn pages_of_stack(&self, stack: &Range<usize>) -> Option<Range<u32>> {
        let end = self.geometry.page_of(stack.end - PAGE_SIZE)? + 1;
        Some(end - whole_pages(stack.len())..end)
    }
}
