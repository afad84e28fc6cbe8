//! Receiving: what a node does with each message.

use crate::clock::{Activity, Scope};
use crate::wire::{ThreadSpec, Wire};
use crate::{Node, StreamDone, Thread};
use gondwana_coherence::sync::{Answer, SyncMessage, Ticket};
use gondwana_control::Report;
use gondwana_fabric::{Event, LostReason};
use gondwana_topology::NodeId;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// How often the launcher is told of progress, when it wants to know.
const PROGRESS: Duration = Duration::from_millis(250);

/// How long a page stays for the thread that waited for it, when another node wants it: the thread must get the
/// chance to repeat its access, or nodes that fight for a page could take it from each other for ever.
const HOLD: Duration = Duration::from_micros(20);

/// What messages ask for that starts threads.
///
/// The C library does that, which a thread of the program that happens to poll may be in the middle of, and it reads
/// variables that a program with copies of them shares: the thread that receives could not wait for their pages. The
/// service thread, between two polls, can.
pub(crate) enum Errand {
    /// A thread of the program, for another node.
    Start { from: NodeId, ticket: Ticket, thread: ThreadSpec },
    /// A thread that makes calls on streams for other nodes.
    CallStreams,
    /// A thread of another node ends the program, with this status.
    Exit(i32),
    /// The run ends.
    Close,
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
        block_all_signals();
        crate::schedule::prefer_latency();
        self.begin_apart(0);
        Thread::become_service();
        self.times.service_begins();
        self.report(&Report::Up);
        crate::inject::at("service");
        let mut told = Instant::now();
        let mut signed = told;
        let timeout =
            [self.boot.progress.then_some(PROGRESS), self.heard.period()].into_iter().flatten().min();
        loop {
            // First of all what has come before: this thread may have received while the C library began.
            while self.receive() > 0 {}
            // To be woken costs the sender ten times a message: the next one is awaited for a moment, unless a thread
            // of the program does so already.
            let has_time = || !self.fabric.is_polled() && !self.has_errands.load(Ordering::Relaxed);
            self.receive_while_idle(&self.service_patience, has_time);
            // Asked again each time: the interruption that tells of another one may end this very wait.
            while self.holding.swap(false, Ordering::AcqRel) {
                self.fabric.wait(Some(HOLD));
                self.core().let_go();
            }
            while let Some(event) = self.fabric.next_event() {
                let Event::Lost(node, reason) = event;
                let silent = matches!(reason, LostReason::Silent(_));
                self.report(&Report::Lost { node: node.0, reason: reason.to_string(), silent });
            }
            self.run_errands();
            if self.boot.progress && told.elapsed() >= PROGRESS {
                told = Instant::now();
                self.report_progress();
            }
            self.give_signs_of_life(&mut signed);
            self.fabric.wait(timeout);
        }
    }

    /// Another node wants a page that is kept for a thread of this one: the service thread gives it up in a moment.
    pub(crate) fn let_go_soon(&self) {
        if !self.holding.swap(true, Ordering::AcqRel) {
            self.fabric.interrupt();
        }
    }

    /// Receives what has arrived; returns how many messages that were.
    pub(crate) fn receive(&'static self) -> usize {
        self.fabric.poll(&mut |from, head, bulk| {
            self.heard.note(from);
            let _time = Scope::enter(Activity::Message);
            if let Some(message) = SyncMessage::from_bytes(head) {
                return Thread::handling_message(|| self.core().synchronise(from, message));
            }
            match postcard::from_bytes(head) {
                Ok(wire) => Thread::handling_message(|| self.handle(from, wire, bulk)),
                Err(error) => crate::fatal(&format!("node {from} sent something unintelligible: {error}")),
            }
        })
    }

    pub(crate) fn leave_to_service(&self, errand: Errand) {
        self.errands.lock().expect("not poisoned").push_back(errand);
        self.has_errands.store(true, Ordering::Release);
        self.fabric.interrupt();
    }

    fn run_errands(&'static self) {
        // An errand that is added after this is announced after this.
        self.has_errands.store(false, Ordering::Relaxed);
        loop {
            let Some(errand) = self.errands.lock().expect("not poisoned").pop_front() else { return };
            match errand {
                Errand::Start { from, ticket, thread } => self.start_for_peer(from, ticket, thread),
                Errand::CallStreams => self.start_stream_caller(),
                Errand::Exit(status) => self.exit_for_peer(status),
                Errand::Close => self.close_here(),
            }
        }
    }

    fn handle(&'static self, from: NodeId, wire: Wire, bulk: &[u8]) {
        match wire {
            Wire::Coherence(message) => self.core().coherence(from, message, bulk),
            Wire::Request { ticket, request } => self.core().serve(from, ticket, request),
            Wire::Reply { ticket, answer } => self.core().announce(ticket, answer),
            Wire::Place { ticket, among } => self.place_for(from, ticket, among),
            Wire::Start { ticket, thread } => self.leave_to_service(Errand::Start { from, ticket, thread }),
            Wire::Ended => self.thread_gone(from),
            Wire::Free(addresses) => {
                // What the freeing node wrote must not be found stale in a block that is handed out again.
                self.acquire();
                self.freed_by_peer(&addresses);
            }
            Wire::UsableSize { ticket, address } => {
                let size = self.heap.usable_size(address as usize).unwrap_or(0);
                self.core().answer(from, ticket, Answer::Done(size as i64));
            }
            Wire::Used { ticket, first, end } => {
                let mut core = self.core();
                let used = core.ports.pages.next_used(first..end).unwrap_or(0..0);
                core.answer(from, ticket, Answer::Done(crate::used::packed(&used)));
            }
            Wire::Homes { ticket, name, first, count } => {
                let runs = self.known_homes(first, count);
                let mut core = self.core();
                core.ports.post(from, &Wire::HomesFound { name, runs }, &[]);
                core.answer(from, ticket, Answer::Done(0));
            }
            Wire::HomesFound { name, runs } => self.note_homes(name, runs),
            Wire::Replicate { first, count, on: true } => self.replicated.insert(first, count),
            Wire::Replicate { first, count, on: false } => {
                self.replicated.remove(first, count);
            }
            Wire::Everywhere { ticket, change } => {
                let error = (self.hooks.apply)(&change);
                self.core().answer(from, ticket, Answer::Done(i64::from(error)));
            }
            Wire::Lend { ticket, descriptor } => {
                let answer = (self.hooks.lend)(descriptor);
                self.core().answer(from, ticket, Answer::Done(i64::from(answer)));
            }
            Wire::Stream { ticket, call } => self.stream_call_came(from, ticket, call, bulk),
            Wire::StreamDone { ticket, done } => {
                self.stream_call_done(ticket, StreamDone { bytes: bulk.to_vec(), ..done });
            }
            Wire::Alive => {}
            Wire::Exit(status) => self.leave_to_service(Errand::Exit(status)),
            Wire::Close => self.leave_to_service(Errand::Close),
            Wire::Closed => {
                self.closed.fetch_add(1, Ordering::Release);
                crate::slots::futex_wake(&self.closed);
            }
        }
    }
}

/// Signals sent to the process are for the program's own threads.
pub(crate) fn block_all_signals() {
    // SAFETY: the set is a private variable.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigdelset(&mut all, libc::SIGBUS);
        libc::sigdelset(&mut all, libc::SIGSEGV);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}
