//! Follows the nodes of a run to its end, and ends it.

mod crashes;
mod ending;
mod looks;
mod monitoring;
mod state;
#[cfg(test)]
mod tests;

use super::monitored::Monitored;
use crate::process::events::{End, Event, Nodes, Stop};
use crate::process::signal_name;
use crate::run_registry::State;
use ending::held_up;
use gondwana_console::failure::{CANNOT, Failure};
use gondwana_control::{Order, Report};
use state::Crash;
pub(crate) use state::Supervisor;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// How often the live line is renewed.
const TICK: Duration = Duration::from_millis(250);

/// Signals that ask a program to end.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// How a run has ended.
#[derive(Debug)]
pub struct Outcome {
    /// How the launcher is to end.
    pub end: End,
    /// The counters of each node, as far as they have arrived.
    pub stats: Vec<Option<serde_json::Value>>,
}

impl Supervisor<'_> {
    /// Follows the nodes to their ends.
    pub(crate) fn run(mut self, machine: &mut dyn Nodes) -> Result<Outcome, Failure> {
        if let Some(requests) = self.requests() {
            machine.watch(requests.as_raw_fd());
        }
        if self.registry.is_some() {
            self.watch_progress();
        }
        while !self.nodes.iter().all(|node| node.ended) || self.obituary.is_some() {
            let tick = self.live.is_shown().then(|| Instant::now() + TICK);
            let told = self.obituary.as_ref().map(|obituary| obituary.until);
            let until = [self.deadline, tick, self.looks.due(), told].into_iter().flatten().min();
            match machine.next(until)? {
                Some(event) => self.event(event, machine),
                None if self.nodes.iter().all(|node| node.ended) => {}
                None if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    self.overdue(machine)?;
                }
                None => {}
            }
            self.go_on_looking(machine);
            self.say_obituary(false);
            self.live.draw();
        }
        self.live.erase();
        while let Some(event) = machine.last_words() {
            self.event(event, machine);
        }
        if let Some(sentence) = self.monitored.as_mut().and_then(Monitored::finish) {
            self.say(&sentence);
        }
        let stats = (0..).take(self.nodes.len()).map(|node| self.stats.remove(&node)).collect();
        let end = match self.end {
            // The status must show neither a success nor a reader that has closed.
            Some(End::Exited(0) | End::Signalled(libc::SIGPIPE)) if self.output_lost => None,
            end => end,
        };
        Ok(Outcome { end: end.unwrap_or(End::Exited(i32::from(CANNOT))), stats })
    }

    fn event(&mut self, event: Event, machine: &mut dyn Nodes) {
        match event {
            Event::Started(node, process) => {
                if let Some(node) = self.nodes.get_mut(usize::from(node)) {
                    node.process = Some(process);
                }
                if let Some(registry) = &self.registry {
                    registry.started(node, process);
                }
            }
            Event::Report(node, report) => self.report(node, report, machine),
            Event::Ended(node, end) => self.ended(node, end, machine),
            Event::Signal { signal: libc::SIGTSTP, from_terminal } => self.stop(from_terminal, machine),
            Event::Chunk(node, chunk) => self.recorded(node, chunk, machine),
            Event::Watched => self.requested(machine),
            Event::Unwound(id) => self.unwound(id, machine),
            Event::Looked(found) => self.looked(found, machine),
            Event::Stopped(stop, host) => self.stopped(&stop, host.as_deref()),
            Event::Continued(node) => self.continued(node),
            Event::OutputLost(sentence) => {
                self.output_lost = true;
                self.say(&sentence);
            }
            // A program may handle such a signal any number of times; one that blocks it gets it once.
            Event::Signal { signal, .. }
                if ENDING.contains(&signal)
                    && self.passed_on.contains(&signal)
                    && machine.holds_back(self.replaced().unwrap_or(0), signal) =>
            {
                self.finish(End::Signalled(signal), machine);
                self.say(&format!("the program blocks {}: ended by force", signal_name(signal)));
            }
            Event::Signal { signal, from_terminal } => {
                self.passed_on.push(signal);
                // The terminal has sent it to node 0 too.
                if !from_terminal {
                    machine.signal(self.replaced().unwrap_or(0), signal);
                }
            }
        }
    }

    fn report(&mut self, number: u16, report: Report, machine: &mut dyn Nodes) {
        let Some(node) = self.nodes.get_mut(usize::from(number)) else { return };
        match report {
            Report::Up => {
                node.up = true;
                self.live.up();
                self.reached(number, State::Up);
            }
            Report::Progress { faults, bytes } => self.live.progress(number, faults, bytes),
            Report::Stats(counters) => {
                self.stats.insert(number, counters);
            }
            Report::Crash { thread, address, what, task, .. } => {
                let crash = Crash { thread, address, what, looking: None, stack: vec![] };
                self.crashed(number, crash, task, machine);
            }
            Report::Waits { part, last } => self.waits_told(number, part, last, machine),
            Report::HeldUp { by } => {
                let holder = self.nodes.get(usize::from(by));
                if holder.is_none_or(|node| !node.stopped) {
                    self.say(&held_up(number, by, holder.and_then(|node| node.process)));
                }
            }
            Report::Refused { what } => self.say(&format!("node {number}: {what}")),
            Report::Starved { why } => node.starved = Some(why),
            Report::Failed { why } => self.failed(&why, machine),
            Report::Unrecorded { why } => {
                self.say(&format!(
                    "node {number}: its monitor has failed, so that no more is recorded of it, while the program goes on ({why})"
                ));
                self.monitored.iter_mut().for_each(|monitored| monitored.failed(number, machine));
            }
            Report::Thresholds { reached, more } => {
                for (address, count) in reached {
                    self.say(&format!("node {number}: {count} transactions at {address:#x}"));
                }
                if more > 0 {
                    self.say(&format!("node {number}: {more} more counters have reached their thresholds"));
                }
            }
            Report::Replacing { program } => {
                node.replaced = Some(program);
                (self.lost, self.deadline) = (None, None);
            }
            Report::NotReplaced => node.replaced = None,
            Report::Silent => self.silent(number, machine),
            Report::Exit { .. } => node.exit = true,
            Report::Closed if number == 0 => self.release(0, machine),
            Report::Closed => {}
            Report::Bank(request) => {
                let over = self.end.is_some() || self.exiting();
                if let Some(monitored) = &mut self.monitored {
                    monitored.asked_of_banks(number, request, over, machine);
                }
            }
            Report::BankDone(answer) => {
                self.monitored
                    .iter_mut()
                    .for_each(|monitored| monitored.bank_done(number, answer.clone(), machine));
            }
            Report::Reached { node, reached } => machine.order(node, &Order::Reached(reached)),
            Report::Counted => self.monitored.iter_mut().for_each(|monitored| monitored.counted(number)),
            Report::Record { file } => self.asked_by_node(number, Some(file), machine),
            Report::StopRecording => self.asked_by_node(number, None, machine),
            Report::Lost { node: lost, reason, silent } => {
                self.lost(number, lost, &reason);
                if silent && self.lost.is_some() && !self.silent {
                    self.silent = true;
                    self.finish_lost(machine);
                }
            }
        }
    }

    /// The stop key of the terminal: node 0 may already have the signal; then the other nodes and the launcher stop.
    fn stop(&mut self, from_terminal: bool, machine: &mut dyn Nodes) {
        if !from_terminal {
            machine.signal(0, libc::SIGTSTP);
        }
        let others = (0..).take(self.nodes.len()).skip(1);
        others.clone().for_each(|node| machine.signal(node, libc::SIGSTOP));
        self.live.erase();
        // SAFETY: stops this process until the shell continues it.
        unsafe { libc::raise(libc::SIGSTOP) };
        others.for_each(|node| machine.signal(node, libc::SIGCONT));
        machine.signal(0, libc::SIGCONT);
    }

    /// A node is stopped: reports it.
    fn stopped(&mut self, stop: &Stop, host: Option<&str>) {
        let Some(node) = self.nodes.get_mut(usize::from(stop.node)) else { return };
        if self.end.is_none() && !node.ended {
            node.stopped = true;
            self.say(&stop.sentence(host));
        }
    }

    fn continued(&mut self, number: u16) {
        let node = self.nodes.get_mut(usize::from(number));
        if node.is_some_and(|node| std::mem::take(&mut node.stopped)) && self.end.is_none() {
            self.say(&format!("node {number} goes on"));
        }
    }
}
