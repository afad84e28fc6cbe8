//! Follows the nodes of a run to its end, and sees to it that there is one.

use super::monitored::Monitored;
use crate::failure::{CANNOT, Failure};
use crate::live::Live;
use crate::process::events::{End, Event, Nodes};
use crate::process::signal_name;
use crate::running::State;
use crate::running::answer::Register;
use crate::running::requests::Inbox;
use gondwana_node::control::{Order, Report};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for the cause when a connection was closed: most often its other end has just died, and on a loaded
/// computer the news of that takes a while.
const CAUSE: Duration = Duration::from_millis(1000);

/// How long the kernel may take to end processes that were killed.
const KILLED: Duration = Duration::from_secs(2);

/// How long nodes may take to end once a computer is silent: those on it may be unable to tell of it.
const KILLED_AFTER_SILENCE: Duration = Duration::from_millis(200);

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

/// What is known about one node.
#[derive(Clone, Debug, Default)]
struct Node {
    up: bool,
    ended: bool,
    exit: bool,
    /// It was ended because the program has, and nobody needs it any more.
    released: bool,
    crash: Option<Crash>,
}

#[derive(Clone, Debug)]
struct Crash {
    thread: u64,
    address: u64,
    what: String,
}

/// Follows nodes until all have ended.
pub struct Supervisor<'a> {
    nodes: Vec<Node>,
    /// Whether nodes have the runtime library and so report.
    reporting: bool,
    stats: BTreeMap<u16, serde_json::Value>,
    live: Live,
    /// What those are told who ask about the run, if anybody can.
    register: Option<Arc<Register>>,
    /// Where what nodes record goes.
    monitored: Option<Monitored>,
    say: &'a mut dyn FnMut(&str),
    end: Option<End>,
    /// Signals passed on to node 0: no surprise if it dies of one of them.
    passed_on: Vec<i32>,
    lost: Option<String>,
    /// A whole computer is silent: the nodes on it cannot be followed to their ends.
    silent: bool,
    killed: bool,
    deadline: Option<Instant>,
}

impl<'a> Supervisor<'a> {
    /// A supervisor of `nodes` nodes. `say` prints one line for the user.
    pub fn new(nodes: u16, reporting: bool, live: Live, say: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            nodes: vec![Node::default(); usize::from(nodes)],
            reporting,
            stats: BTreeMap::new(),
            live,
            register: None,
            monitored: None,
            say,
            end: None,
            passed_on: vec![],
            lost: None,
            silent: false,
            killed: false,
            deadline: None,
        }
    }

    /// Keeps a register of the nodes.
    pub fn keeping(self, register: Option<Arc<Register>>) -> Self {
        Self { register, ..self }
    }

    /// Lets the run be monitored.
    pub fn monitored(self, monitored: Monitored) -> Self {
        Self { monitored: Some(monitored), ..self }
    }

    /// Follows the nodes to their ends.
    pub fn run(mut self, machine: &mut dyn Nodes) -> Result<Outcome, Failure> {
        if let Some(requests) = self.requests() {
            machine.watch(requests.as_raw_fd());
        }
        while !self.nodes.iter().all(|node| node.ended) {
            let tick = self.live.is_shown().then(|| Instant::now() + TICK);
            let until = [self.deadline, tick].into_iter().flatten().min();
            match machine.next(until)? {
                Some(event) => self.event(event, machine),
                None if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    self.overdue(machine)?;
                }
                None => {}
            }
            self.live.draw();
        }
        self.live.erase();
        if let Some(sentence) = self.monitored.as_mut().and_then(Monitored::finish) {
            self.say(&sentence);
        }
        let stats = (0..self.nodes.len() as u16).map(|node| self.stats.remove(&node)).collect();
        Ok(Outcome { end: self.end.unwrap_or(End::Exited(i32::from(CANNOT))), stats })
    }

    fn event(&mut self, event: Event, machine: &mut dyn Nodes) {
        match event {
            Event::Started(node, process) => {
                if let Some(register) = &self.register {
                    register.started(node, process);
                }
            }
            Event::Report(node, report) => self.report(node, report, machine),
            Event::Ended(node, end) => self.ended(node, end, machine),
            Event::Signal { signal: libc::SIGTSTP, from_terminal } => self.stop(from_terminal, machine),
            Event::Chunk(node, chunk) => self.recorded(node, chunk, machine),
            Event::Watched => self.requested(machine),
            // A program may handle such a signal as often as it likes; one that does not let it through has been
            // asked once.
            Event::Signal { signal, .. }
                if ENDING.contains(&signal)
                    && self.passed_on.contains(&signal)
                    && machine.holds_back(0, signal) =>
            {
                self.finish(End::Signalled(signal), machine);
                self.say(&format!("the program blocks {}: ended by force", signal_name(signal)));
            }
            Event::Signal { signal, from_terminal } => {
                self.passed_on.push(signal);
                // The terminal has sent it to node 0 as well.
                if !from_terminal {
                    machine.signal(0, signal);
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
            Report::Crash { thread, address, what, .. } => node.crash = Some(Crash { thread, address, what }),
            Report::Refused { what } => self.say(&format!("node {number}: {what}")),
            Report::Thresholds { reached, more } => {
                for (address, count) in reached {
                    self.say(&format!("node {number}: {count} transactions at {address:#x}"));
                }
                if more > 0 {
                    self.say(&format!("node {number}: {more} more counters have reached their thresholds"));
                }
            }
            Report::Exit { .. } => node.exit = true,
            Report::Closed if number == 0 => self.release(machine),
            Report::Closed => {}
            Report::Board(request) => {
                let over = self.end.is_some() || self.exiting();
                if let Some(monitored) = &mut self.monitored {
                    monitored.asked_of_boards(number, request, over, machine);
                }
            }
            Report::BoardDone(answer) => {
                self.monitored
                    .iter_mut()
                    .for_each(|monitored| monitored.board_done(number, answer.clone(), machine));
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

    /// Ends the other nodes while node 0 ends by itself: to give back much memory takes the system a while.
    fn release(&mut self, machine: &mut dyn Nodes) {
        for (number, node) in (0..).zip(&mut self.nodes).skip(1).filter(|(_, node)| !node.ended) {
            node.released = true;
            machine.signal(number, libc::SIGKILL);
        }
    }

    fn recorded(&mut self, node: u16, chunk: Vec<u8>, machine: &mut dyn Nodes) {
        let Some(monitored) = &mut self.monitored else { return };
        let was_on = monitored.is_on();
        let sentence = monitored.chunk(node, chunk, machine);
        if was_on != monitored.is_on() {
            self.note_monitored();
        }
        if let Some(sentence) = sentence {
            self.say(&sentence);
        }
    }

    fn asked_by_node(&mut self, node: u16, file: Option<PathBuf>, machine: &mut dyn Nodes) {
        let over = self.end.is_some() || self.exiting();
        // A folder that is gone is noticed when the file is made.
        let file = file.map(|file| std::path::absolute(&file).unwrap_or(file));
        if let Some(monitored) = &mut self.monitored {
            monitored.asked_by_node(node, file.as_deref(), over, machine);
        }
        self.note_monitored();
    }

    fn note_monitored(&self) {
        if let (Some(register), Some(monitored)) = (&self.register, &self.monitored) {
            register.monitored(monitored.is_on());
        }
    }

    /// Where others make requests, if they can.
    fn requests(&self) -> Option<Arc<Inbox>> {
        self.register.as_ref()?.requests().cloned()
    }

    fn requested(&mut self, machine: &mut dyn Nodes) {
        let over = self.end.is_some() || self.exiting();
        for asked in self.requests().into_iter().flat_map(|requests| requests.take()) {
            if let Some(monitored) = &mut self.monitored {
                monitored.asked(asked, over, machine);
            }
        }
        self.note_monitored();
    }

    fn reached(&self, number: u16, state: State) {
        if let Some(register) = &self.register {
            register.reached(number, state);
        }
    }

    /// A connection has broken. Unless the run is ending anyway, that ends it, but the death of a node is the
    /// better explanation, and may be on its way; not from a computer that is silent.
    fn lost(&mut self, by: u16, lost: u16, reason: &str) {
        if self.end.is_some() || self.lost.is_some() || self.exiting() {
            return;
        }
        self.lost = Some(format!("node {by} has lost its connection to node {lost}: {reason}"));
        self.deadline = Some(Instant::now() + CAUSE);
    }

    /// True once a node has said that the program is ending.
    fn exiting(&self) -> bool {
        self.nodes.iter().any(|node| node.exit)
    }

    fn ended(&mut self, number: u16, end: End, machine: &mut dyn Nodes) {
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
        let node = self.nodes[index].clone();
        match end {
            End::Signalled(_) if node.released => {}
            End::Signalled(signal) => {
                let expected = number == 0 && self.passed_on.contains(&signal);
                self.finish(end, machine);
                if self.reporting && !expected {
                    let line = obituary(number, signal, node.crash.as_ref());
                    self.say(&line);
                }
            }
            // Node 0 has seen to it that the others have written everything out and stand still.
            End::Exited(_) if node.exit => self.finish(end, machine),
            // The others end when they learn that the program is ending.
            End::Exited(_) if self.exiting() => {}
            End::Exited(status) if self.reporting && !node.up => {
                self.finish(End::Exited(i32::from(CANNOT)), machine);
                if status != i32::from(CANNOT) {
                    self.say(&format!(
                        "node {number} ended with status {status} before it had joined the others: is the runtime \
                         library complete, and made for this system?"
                    ));
                }
            }
            // `_exit`, or the runtime library itself, which has said why.
            End::Exited(status) if number == 0 || status == i32::from(CANNOT) => self.finish(end, machine),
            End::Exited(status) => {
                let failure = if status == 0 { i32::from(CANNOT) } else { status };
                self.finish(End::Exited(failure), machine);
                self.say(&format!("node {number} ended with status {status}, but the program had not"));
            }
        }
    }

    /// Decides how the run ends, and ends what is left of it. Why is said afterwards: a terminal that the user has stopped
    /// takes its time.
    fn finish(&mut self, end: End, machine: &mut dyn Nodes) {
        self.end = Some(end);
        machine.kill();
        self.killed = true;
        self.deadline = Some(Instant::now() + if self.silent { KILLED_AFTER_SILENCE } else { KILLED });
    }

    fn overdue(&mut self, machine: &mut dyn Nodes) -> Result<(), Failure> {
        if self.killed && self.silent {
            // The agent there, if there still is one, ends its nodes by itself.
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

    /// No better explanation than a broken connection has come.
    fn finish_lost(&mut self, machine: &mut dyn Nodes) {
        let lost = self.lost.take().filter(|_| self.end.is_none());
        let end = self.end.unwrap_or(End::Exited(i32::from(CANNOT)));
        self.finish(end, machine);
        if let Some(lost) = lost {
            self.say(&lost);
        }
    }

    /// The stop key of the terminal: node 0 may have had the signal itself, the others follow, then the launcher.
    fn stop(&mut self, from_terminal: bool, machine: &mut dyn Nodes) {
        if !from_terminal {
            machine.signal(0, libc::SIGTSTP);
        }
        let others = 1..self.nodes.len() as u16;
        others.clone().for_each(|node| machine.signal(node, libc::SIGSTOP));
        self.live.erase();
        // SAFETY: stops this process until the shell continues it.
        unsafe { libc::raise(libc::SIGSTOP) };
        others.for_each(|node| machine.signal(node, libc::SIGCONT));
        machine.signal(0, libc::SIGCONT);
    }

    fn say(&mut self, line: &str) {
        self.live.erase();
        (self.say)(line);
    }
}

/// One line about the death of a node.
fn obituary(node: u16, signal: i32, crash: Option<&Crash>) -> String {
    let name = signal_name(signal);
    let Some(Crash { thread, address, what }) = crash else {
        return format!("node {node} was killed by {name}");
    };
    let place = match signal {
        libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP => {
            format!(" at address {address:#x}")
        }
        _ => String::new(),
    };
    let more = if what.is_empty() { String::new() } else { format!(" ({what})") };
    format!("node {node}, thread {thread} died of {name}{place}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::os::fd::RawFd;

    /// Nodes that follow a script; a node that is killed ends by SIGKILL.
    struct Script {
        events: VecDeque<Event>,
        running: Vec<u16>,
        sent: Vec<(u16, i32)>,
        /// Signals that node 0 blocks.
        blocked: Vec<i32>,
    }

    impl Nodes for Script {
        fn holds_back(&mut self, node: u16, signal: i32) -> bool {
            self.blocked.contains(&signal) && self.sent.contains(&(node, signal))
        }

        fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Failure> {
            if let Some(event) = self.events.pop_front() {
                if let Event::Ended(node, _) = event {
                    self.running.retain(|other| *other != node);
                }
                return Ok(Some(event));
            }
            let deadline = deadline.expect("the script ended and the supervisor would wait for ever");
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            Ok(None)
        }

        fn order(&mut self, _node: u16, _order: &Order) {}

        fn watch(&mut self, _fd: RawFd) {}

        fn signal(&mut self, node: u16, signal: i32) {
            self.sent.push((node, signal));
        }

        fn kill(&mut self) {
            for node in std::mem::take(&mut self.running) {
                self.events.push_back(Event::Ended(node, End::Signalled(libc::SIGKILL)));
            }
        }
    }

    /// The outcome, what was said, and the signals sent.
    fn follow(nodes: u16, events: Vec<Event>) -> (End, Vec<String>, Vec<(u16, i32)>) {
        let mut said = vec![];
        let mut say = |line: &str| said.push(line.to_owned());
        let mut script = Script {
            events: events.into(),
            running: (0..nodes).collect(),
            sent: vec![],
            blocked: vec![libc::SIGQUIT],
        };
        let ups = (0..nodes).map(|node| Event::Report(node, Report::Up));
        for up in ups.rev() {
            script.events.push_front(up);
        }
        let outcome = Supervisor::new(nodes, true, Live::hidden(), &mut say).run(&mut script).unwrap();
        (outcome.end, said, script.sent)
    }

    fn ended(node: u16, status: i32) -> Event {
        Event::Ended(node, End::Exited(status))
    }

    #[test]
    fn the_status_is_that_of_the_node_that_called_exit() {
        let events = vec![Event::Report(1, Report::Exit { status: 3 }), ended(0, 0), ended(1, 3)];
        assert_eq!(follow(2, events), (End::Exited(3), vec![], vec![]));
    }

    #[test]
    fn the_end_of_the_program_is_the_end_of_all_nodes() {
        let stats = serde_json::json!({"barriers": 3});
        let mut said = vec![];
        let mut say = |line: &str| said.push(line.to_owned());
        let events = vec![
            Event::Report(0, Report::Up),
            Event::Report(1, Report::Up),
            Event::Report(0, Report::Exit { status: 0 }),
            Event::Report(1, Report::Stats(stats.clone())),
            ended(0, 0),
        ];
        let mut script = Script { events: events.into(), running: vec![0, 1], sent: vec![], blocked: vec![] };
        let outcome = Supervisor::new(2, true, Live::hidden(), &mut say).run(&mut script).unwrap();
        assert_eq!(outcome.end, End::Exited(0));
        assert_eq!(outcome.stats, [None, Some(stats)]);
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn nodes_that_nobody_needs_any_more_end_before_the_first_has_ended() {
        let killed = |node| Event::Ended(node, End::Signalled(libc::SIGKILL));
        let exit = |status| Event::Report(0, Report::Exit { status });
        let (end, said, sent) =
            follow(3, vec![exit(4), Event::Report(0, Report::Closed), killed(2), ended(0, 4), killed(1)]);
        assert_eq!((end, said), (End::Exited(4), vec![]));
        assert_eq!(sent, [(1, libc::SIGKILL), (2, libc::SIGKILL)]);
        // Only node 0 can know, and one that is killed before is missed.
        let (end, _, sent) = follow(2, vec![exit(0), Event::Report(1, Report::Closed), killed(1)]);
        assert_eq!((end, sent), (End::Signalled(libc::SIGKILL), vec![]));
    }

    #[test]
    fn a_crash_names_node_thread_signal_and_address() {
        let crash = Report::Crash { thread: 5, signal: libc::SIGSEGV, address: 16, what: "wild".to_owned() };
        let events = vec![Event::Report(1, crash), Event::Ended(1, End::Signalled(libc::SIGSEGV))];
        let (end, said, _) = follow(3, events);
        assert_eq!(end, End::Signalled(libc::SIGSEGV));
        assert_eq!(said, ["node 1, thread 5 died of SIGSEGV at address 0x10 (wild)"]);
    }

    #[test]
    fn a_killed_node_ends_the_run() {
        let (end, said, _) = follow(2, vec![Event::Ended(1, End::Signalled(libc::SIGKILL))]);
        assert_eq!(end, End::Signalled(libc::SIGKILL));
        assert_eq!(said, ["node 1 was killed by SIGKILL"]);
    }

    #[test]
    fn a_signal_sent_to_the_launcher_reaches_node_0_and_is_no_surprise() {
        let events = vec![
            Event::Signal { signal: libc::SIGTERM, from_terminal: false },
            Event::Ended(0, End::Signalled(libc::SIGTERM)),
        ];
        let (end, said, sent) = follow(2, events);
        assert_eq!((end, said), (End::Signalled(libc::SIGTERM), vec![]));
        assert_eq!(sent, [(0, libc::SIGTERM)]);
    }

    #[test]
    fn a_signal_that_is_blocked_ends_the_run_the_second_time() {
        let signal = |signal| Event::Signal { signal, from_terminal: false };
        let (quit, term) = (libc::SIGQUIT, libc::SIGTERM);
        let (end, said, sent) = follow(2, vec![signal(quit), signal(term), signal(term), signal(quit)]);
        assert_eq!(
            (end, said),
            (End::Signalled(quit), vec!["the program blocks SIGQUIT: ended by force".to_owned()])
        );
        assert_eq!(sent, [(0, quit), (0, term), (0, term)]);
    }

    #[test]
    fn a_key_of_the_terminal_is_not_passed_on_twice() {
        let events = vec![
            Event::Signal { signal: libc::SIGINT, from_terminal: true },
            Event::Report(0, Report::Exit { status: 0 }),
            ended(0, 0),
            ended(1, 0),
        ];
        assert_eq!(follow(2, events), (End::Exited(0), vec![], vec![]));
    }

    #[test]
    fn a_node_that_vanishes_is_a_failure() {
        let (end, said, _) = follow(2, vec![ended(1, 0)]);
        assert_eq!(end, End::Exited(i32::from(CANNOT)));
        assert_eq!(said.len(), 1);
        let (end, said, _) = follow(2, vec![ended(0, 7)]);
        assert_eq!((end, said), (End::Exited(7), vec![]), "_exit of the program itself");
    }

    #[test]
    fn the_death_of_a_node_explains_a_lost_connection() {
        let lost =
            |node| Event::Report(node, Report::Lost { node: 2, reason: "closed".to_owned(), silent: false });
        let (_, said, _) = follow(3, vec![lost(0), lost(1), Event::Ended(2, End::Signalled(libc::SIGABRT))]);
        assert_eq!(said, ["node 2 was killed by SIGABRT"]);
        let (end, said, _) = follow(3, vec![lost(0), lost(1)]);
        assert_eq!(end, End::Exited(i32::from(CANNOT)));
        assert_eq!(said, ["node 0 has lost its connection to node 2: closed"]);
    }

    #[test]
    fn a_silent_computer_is_not_waited_for() {
        let lost =
            |by, node| Event::Report(by, Report::Lost { node, reason: "no answer".to_owned(), silent: true });
        let mut said = vec![];
        let mut say = |line: &str| said.push(line.to_owned());
        // Node 1 cannot be killed from here.
        let mut script = Script {
            events: vec![lost(0, 1), lost(2, 1)].into(),
            running: vec![0, 2],
            sent: vec![],
            blocked: vec![],
        };
        let start = Instant::now();
        let outcome = Supervisor::new(3, true, Live::hidden(), &mut say).run(&mut script).unwrap();
        assert!(start.elapsed() < CAUSE);
        assert_eq!(outcome.end, End::Exited(i32::from(CANNOT)));
        assert_eq!(said, ["node 0 has lost its connection to node 1: no answer"]);
    }
}
