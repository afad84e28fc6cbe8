//! How a run ends when nodes do, or connections between them.

use super::state::Supervisor;
use crate::process::events::{End, Nodes};
use crate::run_registry::State;
use gondwana_console::failure::{CANNOT, Failure, NOT_FOUND};
use std::time::{Duration, Instant};

/// The wait for the cause of a closed connection: most often its other end has just died, and on a loaded computer
/// that report takes a while.
pub(super) const CAUSE: Duration = Duration::from_millis(1000);

/// How long the kernel may take to end processes that were killed.
const KILLED: Duration = Duration::from_secs(2);

/// The wait for nodes to end once a computer is silent: those on it may be unable to report.
const KILLED_AFTER_SILENCE: Duration = Duration::from_millis(200);

impl Supervisor<'_> {
    /// Ends the nodes other than `last`, which ends by itself: freeing much memory takes the system a while.
    pub(super) fn release(&mut self, last: u16, machine: &mut dyn Nodes) {
        for (number, node) in (0..).zip(&mut self.nodes) {
            if number != last && !node.ended {
                node.released = true;
                machine.signal(number, libc::SIGKILL);
            }
        }
    }

    /// A node will report nothing more. If another program has taken the place of this one, the other nodes end, as all threads
    /// natively do.
    pub(super) fn silent(&mut self, number: u16, machine: &mut dyn Nodes) {
        let node = &self.nodes[usize::from(number)];
        let Some(program) = node.replaced.clone().filter(|_| !node.ended && self.end.is_none()) else {
            return;
        };
        self.release(number, machine);
        let program = if program.is_empty() { "another one".to_owned() } else { program };
        self.say(&format!(
            "the program has replaced itself by {program} (exec), which runs natively: start that with gondwana run if it is to \
             run on several nodes"
        ));
    }

    /// A connection has broken. That ends the run, unless it is ending already. The death of a node is the better
    /// explanation, so the report of it is awaited, except from a silent computer.
    pub(super) fn lost(&mut self, by: u16, lost: u16, reason: &str) {
        if self.end.is_some() || self.lost.is_some() || self.exiting() || self.replaced().is_some() {
            return;
        }
        self.lost = Some(format!("node {by} has lost its connection to node {lost}: {reason}"));
        self.deadline = Some(Instant::now() + CAUSE);
    }

    pub(super) fn ended(&mut self, number: u16, end: End, machine: &mut dyn Nodes) {
        let index = usize::from(number);
        if index >= self.nodes.len() {
            return;
        }
        self.nodes[index].ended = true;
        self.reached(number, State::Ended);
        if let Some(monitored) = &mut self.monitored {
            monitored.ended(number, machine);
        }
        if self.end.is_some() {
            return;
        }
        match self.replaced() {
            Some(replaced) if replaced == number => return self.finish(end, machine),
            // It has missed the one that was replaced.
            Some(_) => return,
            None => {}
        }
        let node = self.nodes[index].clone();
        match end {
            End::Signalled(_) if node.released => {}
            End::Signalled(signal) => {
                let expected = number == 0 && self.passed_on.contains(&signal);
                self.finish(end, machine);
                // A death by SIGPIPE is not reported, as natively.
                let of_pipe = signal == libc::SIGPIPE && node.crash.is_none();
                if let Some(why) = &node.starved {
                    self.say(&format!("node {number} was killed by the kernel: {why}"));
                } else if self.reporting && !expected && !of_pipe {
                    self.bury(number, signal);
                }
            }
            // The other nodes have flushed their streams and do nothing more.
            End::Exited(_) if node.exit => self.finish(end, machine),
            // The other nodes end when they learn that the program is ending. A node that failed will not report that
            // it has flushed its streams, so node 0 would wait for ever.
            End::Exited(status) if node.released || self.exiting() && status != i32::from(CANNOT) => {}
            // The loader has printed which library of the program is missing, as natively.
            End::Exited(status) if self.reporting && !node.up && status == i32::from(NOT_FOUND) => {
                self.finish(end, machine);
            }
            End::Exited(status) if self.reporting && !node.up => {
                self.finish(End::Exited(i32::from(CANNOT)), machine);
                if status != i32::from(CANNOT) {
                    self.say(&format!(
                        "node {number} ended with status {status} before it had joined the others: is the runtime \
                         library complete, and made for this system?"
                    ));
                }
            }
            // `_exit`, or the runtime library itself, which has printed why.
            End::Exited(status) if number == 0 || status == i32::from(CANNOT) => self.finish(end, machine),
            End::Exited(status) => {
                let failure = if status == 0 { i32::from(CANNOT) } else { status };
                self.finish(End::Exited(failure), machine);
                self.say(&format!("node {number} ended with status {status}, but the program had not"));
            }
        }
    }

    /// Decides how the run ends, and ends all nodes. The reason is printed afterwards: writing to a stopped terminal
    /// blocks.
    pub(super) fn finish(&mut self, end: End, machine: &mut dyn Nodes) {
        self.end = Some(end);
        machine.kill();
        self.killed = true;
        self.deadline = Some(Instant::now() + if self.silent { KILLED_AFTER_SILENCE } else { KILLED });
    }

    /// A process cannot become a node. Only the first reason is printed.
    pub(super) fn failed(&mut self, why: &str, machine: &mut dyn Nodes) {
        if self.end.is_none() {
            self.finish(End::Exited(i32::from(CANNOT)), machine);
            self.say(why);
        }
    }

    pub(super) fn overdue(&mut self, machine: &mut dyn Nodes) -> Result<(), Failure> {
        if self.killed && self.silent {
            // The agent there, if it still runs, ends its nodes by itself.
            self.nodes.iter_mut().for_each(|node| node.ended = true);
            return Ok(());
        }
        if self.killed {
            let left: Vec<_> = (0..self.nodes.len())
                .filter(|&node| !self.nodes[node].ended)
                .map(|node| node.to_string())
                .collect();
            return Err(Failure::cannot(format!(
                "node {} was killed, but its end is not known: look for what is left of it",
                left.join(", ")
            )));
        }
        self.finish_lost(machine);
        Ok(())
    }

    /// The wait for a better explanation than a broken connection has ended.
    pub(super) fn finish_lost(&mut self, machine: &mut dyn Nodes) {
        let lost = self.lost.take().filter(|_| self.end.is_none());
        let end = self.end.unwrap_or(End::Exited(i32::from(CANNOT)));
        self.finish(end, machine);
        if let Some(lost) = lost {
            self.say(&lost);
        }
    }
}

/// One line about a node that others wait for, and that may be stopped.
pub(super) fn held_up(node: u16, by: u16, process: Option<u32>) -> String {
    let process = process.map_or_else(|| "PID".to_owned(), |process| process.to_string());
    format!(
        "node {node} waits for node {by}, which holds one of its pages: if that node is stopped, let it go on with \
         `kill -CONT {process}`"
    )
}
