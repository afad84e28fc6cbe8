//! Runs that end in all the ways that runs end in.

use super::ending::CAUSE;
use super::*;
use crate::progress_line::ProgressLine;
use crate::run_registry::requests::{Asked, Request};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;

/// Nodes that follow a script; a node that is killed ends by SIGKILL.
struct Script {
    events: VecDeque<Event>,
    running: Vec<u16>,
    sent: Vec<(u16, i32)>,
    /// Signals that node 0 blocks.
    blocked: Vec<i32>,
    /// Nodes whose program has got an answer.
    answered: Vec<u16>,
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

    fn order(&mut self, node: u16, order: &Order) {
        if let Order::Answer(None) = order {
            self.answered.push(node);
        }
    }

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

/// Nodes that run, and for which this happens.
fn script(nodes: u16, events: Vec<Event>) -> Script {
    let running = (0..nodes).collect();
    Script { events: events.into(), running, sent: vec![], blocked: vec![], answered: vec![] }
}

/// The outcome, the printed lines, and the signals sent.
fn follow(nodes: u16, events: Vec<Event>) -> (End, Vec<String>, Vec<(u16, i32)>) {
    let mut said = vec![];
    let mut say = |line: &str| said.push(line.to_owned());
    let mut script = Script { blocked: vec![libc::SIGQUIT], ..script(nodes, events) };
    let ups = (0..nodes).map(|node| Event::Report(node, Report::Up));
    for up in ups.rev() {
        script.events.push_front(up);
    }
    let outcome = Supervisor::new(nodes, true, ProgressLine::hidden(), &mut say).run(&mut script).unwrap();
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
    let mut script = script(2, events);
    let outcome = Supervisor::new(2, true, ProgressLine::hidden(), &mut say).run(&mut script).unwrap();
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
fn a_program_that_is_replaced_ends_with_the_other_nodes_and_the_status_is_the_new_ones() {
    let replacing = |program: &str| Event::Report(1, Report::Replacing { program: program.to_owned() });
    let lost = |by| {
        let lost = Report::Lost { node: 1, reason: "the end of the stream".to_owned(), silent: false };
        Event::Report(by, lost)
    };
    let events = vec![
        replacing("nothing"),
        Event::Report(1, Report::NotReplaced),
        lost(0),
        replacing("sh"),
        lost(2),
        ended(2, i32::from(CANNOT)),
        Event::Report(1, Report::Silent),
        Event::Signal { signal: libc::SIGTERM, from_terminal: false },
        Event::Ended(0, End::Signalled(libc::SIGKILL)),
        ended(1, 0),
    ];
    let (end, said, sent) = follow(3, events);
    assert_eq!((end, sent), (End::Exited(0), vec![(0, libc::SIGKILL), (1, libc::SIGTERM)]));
    assert!(said.len() == 1 && said[0].contains("by sh (exec)"), "{said:?}");
    // A node that ends says nothing more, either.
    let events = vec![Event::Report(0, Report::Silent), ended(0, 3)];
    assert_eq!(follow(2, events), (End::Exited(3), vec![], vec![]));
}

#[test]
fn a_crash_names_node_thread_signal_and_address() {
    let crash =
        Report::Crash { thread: 5, signal: libc::SIGSEGV, address: 16, task: 0, what: "wild".to_owned() };
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
fn a_node_that_is_killed_for_its_memory_is_reported_with_the_cause() {
    let starved = Report::Starved { why: "the limit was reached".to_owned() };
    let killed = Event::Ended(0, End::Signalled(libc::SIGKILL));
    let (end, said, _) = follow(2, vec![Event::Report(0, starved), killed]);
    assert_eq!(end, End::Signalled(libc::SIGKILL));
    assert_eq!(said, ["node 0 was killed by the kernel: the limit was reached"]);
}

#[test]
fn what_keeps_nodes_from_their_start_is_said_once() {
    let failed = |node| Event::Report(node, Report::Failed { why: format!("no connection of {node}") });
    let end = i32::from(CANNOT);
    let (outcome, said, _) = follow(3, vec![failed(2), failed(1), ended(2, end), ended(1, end)]);
    assert_eq!(outcome, End::Exited(end));
    assert_eq!(said, ["no connection of 2"]);
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
fn who_writes_where_nobody_reads_dies_without_a_word() {
    let dies = |number| Event::Ended(number, End::Signalled(libc::SIGPIPE));
    for node in [0, 1] {
        assert_eq!(follow(2, vec![dies(node)]), (End::Signalled(libc::SIGPIPE), vec![], vec![]));
    }
}

#[test]
fn output_that_is_lost_is_a_failure() {
    let sentence = "standard output cannot be written: full".to_owned();
    let pipe = End::Signalled(libc::SIGPIPE);
    for (end, expected) in [
        (End::Exited(0), End::Exited(i32::from(CANNOT))),
        (pipe, End::Exited(i32::from(CANNOT))),
        (End::Exited(3), End::Exited(3)),
        (End::Signalled(libc::SIGSEGV), End::Signalled(libc::SIGSEGV)),
    ] {
        let events = vec![Event::OutputLost(sentence.clone()), Event::Ended(0, end)];
        let (end, said, _) = follow(2, events);
        assert_eq!((end, &said[0]), (expected, &sentence));
    }
}

#[test]
fn a_host_that_is_lost_while_the_program_ends_is_not_waited_for() {
    let exit = || Event::Report(0, Report::Exit { status: 0 });
    // Node 0 waits for a report that node 1 will not send.
    let (end, said, _) = follow(2, vec![exit(), ended(1, i32::from(CANNOT))]);
    assert_eq!((end, said), (End::Exited(i32::from(CANNOT)), vec![]));
    // A node that has flushed its streams is not needed.
    let closed = Event::Report(0, Report::Closed);
    let (end, said, _) = follow(2, vec![exit(), closed, ended(1, i32::from(CANNOT)), ended(0, 0)]);
    assert_eq!((end, said), (End::Exited(0), vec![]));
}

#[test]
fn a_stopped_node_is_told_of_while_the_run_waits_for_it() {
    let stop = |node| Event::Stopped(Stop { node, process: 77, tracer: None }, None);
    let sentence = "node 1 (process 77) is stopped and the run waits for it: continue it (kill -CONT 77)";
    let events = vec![
        stop(1),
        // The user knows already.
        Event::Report(0, Report::HeldUp { by: 1 }),
        Event::Continued(1),
        Event::Continued(0),
        ended(0, 7),
        // By now the run is ending.
        stop(1),
        Event::Continued(1),
    ];
    let (end, said, _) = follow(2, events);
    assert_eq!((end, said), (End::Exited(7), vec![sentence.to_owned(), "node 1 goes on".to_owned()]));
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
fn a_node_that_fails_while_the_program_ends_is_a_failure() {
    let events = vec![Event::Report(0, Report::Exit { status: 0 }), ended(1, i32::from(CANNOT)), ended(0, 0)];
    let (end, said, _) = follow(2, events);
    assert_eq!((end, said), (End::Exited(i32::from(CANNOT)), vec![]), "it has said why");
}

#[test]
fn a_node_that_is_waited_for_is_named_and_the_run_goes_on() {
    let events = vec![
        Event::Started(2, 4711),
        Event::Report(0, Report::HeldUp { by: 2 }),
        Event::Report(0, Report::HeldUp { by: 1 }),
        Event::Report(0, Report::HeldUp { by: 7 }),
        Event::Report(0, Report::Exit { status: 3 }),
        ended(0, 3),
    ];
    let (end, said, _) = follow(3, events);
    let line = |node: u16, process: &str| {
        format!(
            "node 0 waits for node {node}, which holds one of its pages: if that node is stopped, let it go on with \
             `kill -CONT {process}`"
        )
    };
    assert_eq!((end, said), (End::Exited(3), vec![line(2, "4711"), line(1, "PID"), line(7, "PID")]));
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
    let mut script = Script { running: vec![0, 2], ..script(3, vec![lost(0, 1), lost(2, 1)]) };
    let start = Instant::now();
    let outcome = Supervisor::new(3, true, ProgressLine::hidden(), &mut say).run(&mut script).unwrap();
    assert!(start.elapsed() < CAUSE);
    assert_eq!(outcome.end, End::Exited(i32::from(CANNOT)));
    assert_eq!(said, ["node 0 has lost its connection to node 1: no answer"]);
}

/// Keeps a recording in which the monitor of one node fails, before it is to end or while it is awaited, and ends it.
fn stopped(fails_first: bool) -> String {
    let file = std::env::temp_dir().join(format!("gondwana-failed-{}-{fails_first}.gwr", std::process::id()));
    let run = gondwana_recording::RunRecord { nodes: 2, ..gondwana_recording::RunRecord::default() };
    let mut monitored = Monitored::new(run, None);
    let mut machine = script(2, vec![]);
    let ask = |monitored: &mut Monitored, machine: &mut Script, request| {
        let (asker, answer) = UnixStream::pair().unwrap();
        answer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        monitored.asked(Asked { request, asker }, false, machine);
        BufReader::new(answer)
    };
    let _recording =
        ask(&mut monitored, &mut machine, Request::Record { file: file.clone(), filters: vec![] });
    if fails_first {
        monitored.failed(1, &mut machine);
    }
    let mut stopped = ask(&mut monitored, &mut machine, Request::Stop);
    if !fails_first {
        monitored.failed(1, &mut machine);
    }
    let end = gondwana_recording::encode(0, &gondwana_recording::End::default());
    monitored.chunk(0, end, &mut machine);
    let mut answer = String::new();
    stopped.read_line(&mut answer).unwrap();
    assert!(monitored.finish().is_none());
    std::fs::remove_file(file).unwrap();
    answer
}

#[test]
fn a_program_that_records_goes_on_when_all_nodes_record() {
    fn begun() -> Vec<u8> {
        gondwana_recording::encode(0, &gondwana_recording::Started::default())
    }
    let folder = std::env::temp_dir();
    let last_steps: [fn(&mut Monitored, &mut Script); 4] = [
        |monitored, machine| assert!(monitored.chunk(1, begun(), machine).is_none()),
        |monitored, machine| monitored.failed(1, machine),
        |monitored, machine| monitored.ended(1, machine),
        |monitored, machine| monitored.asked_by_node(1, None, false, machine),
    ];
    for (number, last_step) in last_steps.into_iter().enumerate() {
        let file = folder.join(format!("gondwana-started-{}-{number}.gwr", std::process::id()));
        let run = gondwana_recording::RunRecord { nodes: 2, ..gondwana_recording::RunRecord::default() };
        let mut monitored = Monitored::new(run, None);
        let mut machine = script(2, vec![]);
        monitored.asked_by_node(0, Some(&file), false, &mut machine);
        assert!(monitored.chunk(0, begun(), &mut machine).is_none());
        assert!(machine.answered.is_empty(), "node 1 does not record yet");
        last_step(&mut monitored, &mut machine);
        assert_eq!(machine.answered.first(), Some(&0));
        assert_eq!(machine.answered.iter().filter(|&&node| node == 0).count(), 1);
        assert!(monitored.finish().is_none());
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_monitor_that_fails_costs_neither_the_run_nor_the_rest_of_the_recording() {
    let why = "no reason, a.rs:1".to_owned();
    let (end, said, _) =
        follow(2, vec![Event::Report(1, Report::Unrecorded { why }), ended(0, 3), ended(1, 0)]);
    let sentence = "node 1: its monitor has failed, so that no more is recorded of it, while the program goes on (no reason, a.rs:1)";
    assert_eq!((end, said), (End::Exited(3), vec![sentence.to_owned()]));
    for fails_first in [true, false] {
        let answer = stopped(fails_first);
        assert!(answer.starts_with("{\"Ok\":") && answer.contains("gondwana-failed-"), "{answer}");
    }
}
