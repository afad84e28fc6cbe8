//! The end of a run, and what the launcher is told on the way.

use crate::clock::{Activity, Scope};
use crate::fixed_line::FixedLine;
use crate::wait_slots::{futex_wait, futex_wake};
use crate::wire::{Ending, Wire};
use crate::{Node, Thread};
use gondwana_control::{Report, send_crash};
use gondwana_topology::NodeId;
use serde_json::json;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long node 0 waits for the others to write out their streams.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How far the end of the run has come.
#[derive(Default)]
pub(crate) struct RunEnd {
    /// Node 0 ends the others.
    closing: AtomicBool,
    /// Nodes that have written out their streams.
    closed: AtomicU32,
    /// The launcher has looked at what is left of a thread that has crashed.
    may_die: AtomicU32,
}

/// How long a thread that has crashed stays to be looked at.
const LOOKED_AT: Duration = Duration::from_secs(5);

/// Lets a process trace this one, where the system (Yama) allows that to ancestors only.
pub(crate) fn let_trace(process: u32) {
    // SAFETY: touches no memory. Without Yama it is refused, and not needed.
    unsafe { gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_SET_PTRACER, process, 0, 0, 0) };
}

impl RunEnd {
    /// A thread that has crashed may go.
    pub(crate) fn let_die(&self) {
        self.may_die.store(1, Ordering::Release);
        futex_wake(&self.may_die);
    }

    /// Waits until the launcher has looked at this thread. Neither allocates nor locks.
    fn stay_to_be_looked_at(&self) {
        let end = Instant::now() + LOOKED_AT;
        while self.may_die.load(Ordering::Acquire) == 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            futex_wait(&self.may_die, 0, Some(left));
        }
    }

    /// Node 0 learns that another node has written out its streams.
    pub(crate) fn node_closed(&self) {
        self.closed.fetch_add(1, Ordering::Release);
        futex_wake(&self.closed);
    }

    /// True the first time.
    fn begin_closing(&self) -> bool {
        !self.closing.swap(true, Ordering::AcqRel)
    }

    /// Waits until so many nodes have closed; false if the deadline passes first.
    fn wait_closed(&self, others: u32, deadline: Instant) -> bool {
        loop {
            let closed = self.closed.load(Ordering::Acquire);
            if closed == others {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            futex_wait(&self.closed, closed, Some(left));
        }
    }
}

impl Node {
    /// Replaces this process by another program: if that succeeds, the launcher ends the other nodes. `replace` does it, and returns
    /// if it fails.
    pub fn replace<R>(&'static self, program: &str, replace: impl FnOnce() -> R) -> R {
        self.report(&Report::Replacing { program: program.to_owned() });
        let failed = replace();
        self.report(&Report::NotReplaced);
        failed
    }

    /// Node 0, after the program's exit handlers: ends the other nodes, then this process. It does not return, because the caller's
    /// stack may be shared, and a fault there could no longer be resolved.
    pub fn close_run(&'static self, status: i32) -> ! {
        self.privately(move || {
            let deadline = Instant::now() + FLUSH_TIMEOUT;
            if self.run_end.begin_closing() {
                self.end_other_nodes(status, deadline);
            } else {
                // Another thread is at it, and ends the process when it has finished.
                while let Some(left) = deadline.checked_duration_since(Instant::now()) {
                    std::thread::sleep(left);
                }
            }
            loop {
                // SAFETY: ends this process.
                unsafe { gondwana_sys::syscall!(libc::SYS_exit_group, status) };
            }
        })
    }

    fn end_other_nodes(&'static self, status: i32, deadline: Instant) {
        self.report(&Report::Exit { status: status & 0xff });
        self.report_stats();
        for node in 1..self.boot.nodes {
            self.core().env.post(NodeId(node), &Wire::Close, &[]);
        }
        self.prepare_end_of_recording();
        // First: the launcher may end the others meanwhile, which takes longest.
        if self.run_end.wait_closed(u32::from(self.boot.nodes) - 1, deadline) {
            self.report(&Report::Closed);
        }
        self.end_recording();
    }

    /// The program ends on another node than the first: node 0 is asked to do it, and this thread waits for the
    /// end.
    pub fn exit_through_first(&'static self, ending: Ending, status: i32) -> ! {
        self.privately(move || {
            self.release_and_wait();
            self.core().publish(NodeId(0), &Wire::Exit(ending, status));
            let _time = Scope::enter(Activity::Waiting);
            loop {
                // SAFETY: waits for the signal or the exit that ends this process.
                unsafe { libc::pause() };
            }
        })
    }

    /// Another node's thread has ended the program.
    pub(crate) fn exit_for_peer(&'static self, ending: Ending, status: i32) {
        // Exit handlers run on a thread of their own: this one must go on receiving for them.
        let exiting = Thread::start_native("exit", move || {
            self.acquire(None);
            (self.hooks.exit)(ending, status);
        });
        if let Err(error) = exiting {
            crate::fatal(&format!("starting a thread to end the program: {error}"));
        }
    }

    /// A worker node writes out what its streams hold; node 0 will end it.
    pub(crate) fn close_here(&'static self) {
        // A thread of the program may hold a stream while it waits for a page, so this one goes on receiving.
        let closing = Thread::start_native("close", move || {
            (self.hooks.flush_all_streams)();
            self.report_stats();
            self.end_recording();
            self.core().env.post(NodeId(0), &Wire::Closed, &[]);
        });
        if let Err(error) = closing {
            crate::fatal(&format!("starting a thread to write out streams: {error}"));
        }
    }

    /// Tells the launcher where the program is about to die. Called by signal handlers: neither allocates nor
    /// locks.
    pub fn report_crash(&self, signal: i32, address: usize, at: usize) {
        let mut place = FixedLine::default();
        crate::code_address::describe(at, &mut place);
        let task = if Thread::is_of_program() { gondwana_sys::thread().unsigned_abs() } else { 0 };
        // A launcher that is gone takes this process with it; nobody is left to be told.
        let told = send_crash(
            self.control.as_raw_fd(),
            Thread::current_number(),
            signal,
            address as u64,
            task,
            place.text(),
        );
        if told.is_ok() && task != 0 {
            self.run_end.stay_to_be_looked_at();
        }
    }

    pub(crate) fn report_progress(&self) {
        let (faults, bytes) = {
            let core = self.core();
            let counters = core.counters();
            (counters.read_faults + counters.write_faults, core.env.messages.bytes())
        };
        self.report(&Report::Progress { faults, bytes });
    }

    fn report_stats(&'static self) {
        if !self.boot.stats {
            return;
        }
        let homes = self.placement_stats();
        let core = self.core();
        let (c, l, b) = (core.counters(), core.lock_counters(), core.barrier_counters());
        let k = core.keeper_counters();
        let (split, locked) = self.times.program();
        let mut stats = json!({
            "faults": {"read": c.read_faults, "write": c.write_faults, "first_touches": c.first_touches},
            "pages": {
                "transfers": c.page_transfers,
                "visits": c.one_sided_reads,
                "fetches": c.fetches,
                "awaited": c.awaited,
                "forwarded": c.fetches_forwarded,
                "deferred": c.fetches_deferred,
                "refetches": c.refetches,
                "twins": c.twins,
                "kept": c.kept,
                "merges": c.merges,
                "invalidations": c.invalidations,
                "home_moves": c.home_moves,
                "exclusive_entered": c.exclusive_entered,
                "exclusive_left": c.exclusive_left,
                "became_common": c.became_common,
                "synchronised": c.promoted,
            },
            "diffs": {"sent": c.diffs, "bytes": c.diff_bytes, "forwarded": c.diffs_forwarded, "patched": c.patches},
            "notices": {"sent": c.notices_sent, "received": c.notices_received},
            "updates": {"sent": c.updates_sent, "received": c.updates_received},
            "locks": {
                "local": locked.saturating_sub(l.tokens_received),
                "remote": l.tokens_received,
                "requested": l.requests,
                "early": l.early,
                "tokens_sent": l.tokens_sent,
                "handed_over": l.handovers,
                "kept": l.kept,
                "common": l.common,
            },
            "objects": {"kept": k.kept, "shared": k.shared, "recalled": k.recalled},
            "threads": {"started": self.threads.started(), "barrier_arrivals": b.arrivals},
            "barriers": {"episodes": b.episodes, "hurried": b.hurries},
            "messages": core.env.messages.to_json(core.message_kinds()),
            "time_us": {
                "user": split.micros(Activity::User),
                "protocol": split.micros(Activity::Protocol),
                "waiting": split.micros(Activity::Waiting),
                "message": split.micros(Activity::Message),
            },
            "service_us": self.times.service_micros(),
        });
        drop(core);
        if let Some(homes) = homes {
            stats["homes"] = homes;
        }
        self.report(&Report::Stats(stats));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_closes_once_when_all_nodes_have() {
        let end = RunEnd::default();
        assert!(end.begin_closing() && !end.begin_closing());
        assert!(!end.wait_closed(2, Instant::now()));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| end.wait_closed(2, Instant::now() + FLUSH_TIMEOUT));
            end.node_closed();
            end.node_closed();
            assert!(first.join().unwrap());
        });
    }
}
