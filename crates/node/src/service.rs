//! The service thread: it receives messages, and does what else has to be done beside the program.

use crate::clock::{Activity, Scope};
use crate::deferred::{DeferredTask, DeferredTasks};
use crate::keepalive::Keepalives;
use crate::process_change::ProcessChange;
use crate::signal_mask::SignalMask;
use crate::sync::encoded;
use crate::wire::Wire;
use crate::{Node, StreamDone, Thread};
use gondwana_coherence::sync::{Answer, SyncMessage, Ticket};
use gondwana_coherence::{Env, MESSAGE_TAG};
use gondwana_control::Report;
use gondwana_fabric::{Event, LostReason};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// How often the launcher is told of progress, when it wants to know.
const PROGRESS: Duration = Duration::from_millis(250);

/// In what time the protocol is first told to let go of a page that another node wants.
const HOLD: Duration = Duration::from_micros(8);

/// What the service thread does besides receiving messages.
pub(crate) struct Service {
    /// Tasks that messages ask for and that start threads.
    pub(crate) deferred: DeferredTasks,
    /// Signs of life between computers.
    pub(crate) keepalives: Keepalives,
    /// A page is kept for a thread of this node although another node wants it.
    wanted: AtomicBool,
    /// How many such requests there have been.
    put_off: AtomicU64,
    /// The service thread is to look in a moment which of those pages may leave.
    looks_soon: AtomicBool,
    /// The time of tokens that stay here for hot mutexes runs, or may still.
    keeps_tokens: AtomicBool,
}

impl Service {
    pub(crate) fn new(keepalives: Keepalives) -> Self {
        Self {
            deferred: DeferredTasks::default(),
            keepalives,
            wanted: AtomicBool::new(false),
            put_off: AtomicU64::new(0),
            looks_soon: AtomicBool::new(false),
            keeps_tokens: AtomicBool::new(false),
        }
    }

    /// Whether another node wants a page that is kept here, and how many requests for such pages there have been. True if there is a new
    /// one. Called under the node's lock.
    pub(crate) fn note_wanted(&self, wanted: bool, put_off: u64) -> bool {
        if self.is_wanted() != wanted {
            self.wanted.store(wanted, Ordering::Relaxed);
        }
        let is_new = self.put_off.load(Ordering::Relaxed) != put_off;
        if is_new {
            self.put_off.store(put_off, Ordering::Relaxed);
        }
        is_new && wanted
    }

    /// True if another node may want a page that is kept here.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }
}

/// Does something that is due at a time, and says in what time to do so again. Returns in what time it is due.
fn again_if_due(at: &mut Option<Instant>, act: impl FnOnce() -> Option<Duration>) -> Option<Duration> {
    if at.is_some_and(|at| at <= Instant::now()) {
        *at = act().map(|due| Instant::now() + due);
    }
    at.map(|at| at.saturating_duration_since(Instant::now()))
}

impl Node {
    /// Starts the service thread beside the program.
    pub fn serve_in_background(&'static self) {
        let settled = Arc::new(Barrier::new(2));
        let started = Thread::start_native("gondwana", {
            let settled = Arc::clone(&settled);
            move || {
                // With the first block that a thread allocates, the C library maps memory and unmaps part of it again.
                // A library that the program opens at that moment could be loaded there instead of in its place.
                drop(std::hint::black_box(Box::new(0_u8)));
                settled.wait();
                self.serve()
            }
        });
        if let Err(error) = started {
            crate::fatal(&format!("starting the service thread: {error}"));
        }
        settled.wait();
    }

    /// Serves the other nodes until the process ends.
    pub fn serve(&'static self) -> ! {
        SignalMask::block_all();
        crate::schedule::prefer_latency();
        self.begin_apart(0);
        Thread::become_service();
        self.times.service_begins();
        self.report(&Report::Up);
        crate::inject::at("service");
        let mut told = Instant::now();
        let mut signed = told;
        let mut let_go_at = None;
        let mut catch_up_at = Some(told);
        let timeout = [self.boot.progress.then_some(PROGRESS), self.service.keepalives.period()]
            .into_iter()
            .flatten()
            .min();
        loop {
            // First of all what has come before: this thread may have received while the C library began.
            while self.receive() > 0 {}
            // To be woken costs the sender ten times a message: the next one is awaited for a moment, unless a thread
            // of the program does so already.
            let has_time = || !self.fabric.is_polled() && !self.service.deferred.may_have_some();
            self.receive_while_idle(&self.waiting.service, has_time);
            let pages_due = self.let_go_of_due_pages(&mut let_go_at);
            while let Some(event) = self.fabric.next_event() {
                let Event::Lost(node, reason) = event;
                let silent = matches!(reason, LostReason::Silent(_));
                self.report(&Report::Lost { node: node.0, reason: reason.to_string(), silent });
            }
            self.run_deferred();
            if self.boot.progress && told.elapsed() >= PROGRESS {
                told = Instant::now();
                self.report_progress();
            }
            self.give_signs_of_life(&mut signed);
            let catch_up_due = again_if_due(&mut catch_up_at, || self.core().catch_up());
            let due = [self.let_go_of_due_tokens(), pages_due, catch_up_due];
            self.fabric.wait(timeout.into_iter().chain(due.into_iter().flatten()).min());
        }
    }

    /// Another node wants a page that is kept for a thread of this one: the service thread gives it up in a moment if it may leave then.
    pub(crate) fn let_go_soon(&self) {
        if !self.service.looks_soon.swap(true, Ordering::AcqRel) {
            self.fabric.interrupt();
        }
    }

    /// No thread of this node may be computing any more: pages leave that stay for such threads.
    pub(crate) fn let_go_if_idle(&'static self) {
        if self.service.is_wanted() && !self.threads.any_computes() && self.core().let_go().is_some() {
            self.let_go_soon();
        }
    }

    /// Lets go of pages that another node wants, a moment after each was noted and then when the protocol says. Returns in what time
    /// to do so again.
    fn let_go_of_due_pages(&self, at: &mut Option<Instant>) -> Option<Duration> {
        if self.service.looks_soon.swap(false, Ordering::AcqRel) {
            let soon = Instant::now() + HOLD;
            *at = Some(at.map_or(soon, |at| at.min(soon)));
        }
        again_if_due(at, || self.core().let_go())
    }

    /// Lets go of all that is kept for threads of this node.
    pub(crate) fn let_go(&'static self) {
        let _next = self.core().let_go();
        self.let_go_of_tokens();
    }

    /// The time of tokens that stay here begins to run: the service thread gives them up when it is over.
    pub(crate) fn note_kept_tokens(&self) {
        self.service.keeps_tokens.store(true, Ordering::Release);
        self.fabric.interrupt();
    }

    /// Gives up tokens whose time is over; in what time the next one's is.
    fn let_go_of_due_tokens(&'static self) -> Option<Duration> {
        let keeps = &self.service.keeps_tokens;
        if !keeps.load(Ordering::Acquire) {
            return None;
        }
        let mut core = self.core();
        let next = core.with_locks(|locks, env| locks.let_go_due(env));
        // Not before: a thread that is about to wait meanwhile must see that tokens stay.
        keeps.store(next.is_some(), Ordering::Release);
        Some(next?.saturating_sub(core.env.now()))
    }

    /// The calling thread is about to wait for what other threads do: it will not use hot mutexes soon.
    pub(crate) fn let_go_of_tokens(&'static self) {
        let keeps = &self.service.keeps_tokens;
        if keeps.load(Ordering::Relaxed) && keeps.swap(false, Ordering::AcqRel) {
            self.core().with_locks(|locks, env| locks.let_go(env));
        }
    }

    /// Receives what has arrived; returns how many messages that were.
    pub(crate) fn receive(&'static self) -> usize {
        self.fabric.poll(&mut |from, head, bulk| {
            self.service.keepalives.note(from);
            let _time = Scope::enter(Activity::Message);
            if let Some(message) = SyncMessage::from_bytes(head) {
                return Thread::handling_message(|| self.core().synchronise(from, message, bulk));
            }
            if head.first() == Some(&MESSAGE_TAG) {
                return Thread::handling_message(|| self.core().coherence(from, head, bulk));
            }
            match postcard::from_bytes(head) {
                Ok(wire) => Thread::handling_message(|| self.handle(from, wire, bulk)),
                Err(error) => crate::fatal(&format!("node {from} sent something unintelligible: {error}")),
            }
        })
    }

    /// Leaves a task to the service thread.
    pub(crate) fn defer(&self, task: DeferredTask) {
        self.service.deferred.add(task);
        self.fabric.interrupt();
    }

    fn run_deferred(&'static self) {
        self.service.deferred.run_all(|task| match task {
            DeferredTask::Start { from, ticket, thread } => self.start_for_peer(from, ticket, thread),
            DeferredTask::Apply { from, ticket, change } => self.apply_for(from, ticket, &change),
            // Nobody is there to be told of an error.
            DeferredTask::TellOthers(change) => drop(self.change_on_others(change)),
            DeferredTask::StartCaller => self.start_caller(),
            DeferredTask::Later(words) => (self.hooks.later)(&words),
            DeferredTask::Exit(ending, status) => self.exit_for_peer(ending, status),
            DeferredTask::Close => self.close_here(),
        });
    }

    /// Makes a change to this process that another node asks for.
    fn apply_for(&self, from: NodeId, ticket: Ticket, change: &ProcessChange) {
        let error = (self.hooks.apply)(change);
        self.core().answer(from, ticket, Answer::Done(i64::from(error)));
    }

    fn handle(&'static self, from: NodeId, wire: Wire, bulk: &[u8]) {
        match wire {
            Wire::Request { ticket, request } => self.core().requested(from, ticket, request, bulk),
            Wire::Reply { ticket, answer } => self.core().answered(from, ticket, answer, bulk),
            Wire::Keeper(message) => self.core().keeper(from, message, bulk),
            Wire::Place { ticket, among } => self.place_for(from, ticket, among),
            Wire::Start { ticket, thread } => {
                self.core().learn(from, bulk);
                self.defer(DeferredTask::Start { from, ticket, thread });
            }
            Wire::Ended => {
                self.core().learn(from, bulk);
                self.thread_gone(from);
            }
            Wire::Announce { name, number, words } => {
                self.core().learn(from, bulk);
                self.announced(name, number, words);
            }
            Wire::Tell { releases, words, ticket } => {
                if releases {
                    self.core().learn(from, bulk);
                    self.acquire(None);
                }
                (self.hooks.told)(from, &words);
                if let Some(ticket) = ticket {
                    self.core().answer(from, ticket, Answer::Done(0));
                }
            }
            Wire::Free(addresses) => {
                // What the freeing node wrote must not be found stale in a block that is handed out again.
                self.core().learn(from, bulk);
                self.acquire(None);
                self.freed_by_peer(&addresses);
            }
            Wire::UsableSize { ticket, address } => {
                let size = self.heap.usable_size(to_usize(address)).unwrap_or(0);
                self.core().answer(from, ticket, Answer::Done(i64::try_from(size).unwrap_or(0)));
            }
            Wire::Used { ticket, first, end } => {
                let mut core = self.core();
                let used = core.env.pages.next_used_here(first..end).unwrap_or(0..0);
                core.answer(from, ticket, Answer::Done(crate::sparse_memory::packed(&used)));
            }
            Wire::ReadPinned { ticket, address, count } => {
                let bytes = self.pinned_here(address, count);
                self.core().env.post(from, &Wire::Bytes { ticket }, &bytes);
            }
            Wire::Semaphores { ticket, from: least } => {
                let bytes = encoded(&self.semaphores_here(least));
                self.core().env.post(from, &Wire::Bytes { ticket }, &bytes);
            }
            Wire::Bytes { ticket } => {
                self.answer_bytes.keep(ticket.0, bulk.to_vec());
                self.core().announce(ticket, Answer::Done(0));
            }
            Wire::WritePinned { ticket, address } => {
                let done = self.write_pinned_here(address, bulk);
                self.core().answer(from, ticket, Answer::Done(done));
            }
            Wire::ExchangePinned { ticket, address, current, new } => {
                let done = self.exchange_pinned_here(address, current, new);
                self.core().answer(from, ticket, Answer::Done(done));
            }
            Wire::Homes { ticket, name, first, count } => {
                let runs = self.known_homes(first, count);
                let mut core = self.core();
                core.env.post(from, &Wire::HomesFound { name, runs }, &[]);
                core.answer(from, ticket, Answer::Done(0));
            }
            Wire::HomesFound { name, runs } => self.note_homes(name, runs),
            Wire::Replicate { first, count, on: true } => self.placement.replicated.insert(first, count),
            Wire::Replicate { first, count, on: false } => {
                self.placement.replicated.remove(first, count);
            }
            // A thread of the program would take signals of its own, and cannot start the one that repeats requests.
            Wire::Everywhere {
                ticket,
                change: change @ (ProcessChange::TakePending { .. } | ProcessChange::Cancel { .. }),
            } => self.defer(DeferredTask::Apply { from, ticket, change }),
            Wire::Everywhere { ticket, change } => self.apply_for(from, ticket, &change),
            Wire::Lend { ticket, descriptor } => {
                let answer = (self.hooks.lend)(descriptor);
                self.core().answer(from, ticket, Answer::Done(i64::from(answer)));
            }
            Wire::NextDescriptor { ticket, from: least } => {
                let answer = (self.hooks.next_descriptor)(least);
                self.core().answer(from, ticket, Answer::Done(i64::from(answer)));
            }
            Wire::Stream { ticket, call } => self.stream_call_came(from, ticket, call, bulk),
            Wire::StreamDone { ticket, done } => {
                self.stream_call_done(ticket, StreamDone { bytes: bulk.to_vec(), ..done });
            }
            Wire::Call { ticket } => self.descriptor_call_came(from, ticket, bulk),
            Wire::Interrupt { ticket } => {
                self.interruptions.interrupt(from, ticket, self.hooks.interrupt);
            }
            Wire::Alive => {}
            Wire::Exit(ending, status) => {
                self.core().learn(from, bulk);
                self.defer(DeferredTask::Exit(ending, status));
            }
            Wire::Close => self.defer(DeferredTask::Close),
            Wire::Closed => {
                self.run_end.node_closed();
            }
        }
    }
}
