//! Detects stopped nodes. A run waits for them without a timeout: after a while the user is told why.

use super::events::{Stop, Tracer};
use std::fs;
use std::time::{Duration, Instant};

/// How long a node may be stopped before it is reported.
const REPORTED_AFTER: Duration = Duration::from_secs(5);

/// The interval of checks. SIGCHLD would cost nothing, but does not come for stops by a tracer.
const PERIOD: Duration = Duration::from_secs(1);

/// If the time between two checks is longer than this, this process was stopped as well.
const GAP: Duration = Duration::from_secs(2);

/// Nodes, and since when they are stopped.
#[derive(Debug, Default)]
pub(super) struct Stops {
    nodes: Vec<Stoppable>,
    last: Option<Instant>,
}

#[derive(Debug)]
struct Stoppable {
    node: u16,
    process: u32,
    since: Option<Instant>,
    told: bool,
    /// The launcher itself has stopped it, with the rest of the job.
    on_purpose: bool,
}

/// A change of a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has been stopped for a while.
    Stopped(Stop),
    /// It runs again after a report.
    Continued(u16),
}

impl Stops {
    /// Adds a node.
    pub(super) fn add(&mut self, node: u16, process: u32) {
        self.nodes.push(Stoppable { node, process, since: None, told: false, on_purpose: false });
    }

    /// A node has ended.
    pub(super) fn remove(&mut self, node: u16) {
        self.nodes.retain(|other| other.node != node);
    }

    /// The launcher sends a node a signal.
    pub(super) fn signalled(&mut self, node: u16, signal: i32) {
        let on_purpose = match signal {
            libc::SIGSTOP | libc::SIGTSTP => true,
            libc::SIGCONT => false,
            _ => return,
        };
        for node in self.nodes.iter_mut().filter(|other| other.node == node) {
            node.on_purpose = on_purpose;
            node.since = None;
        }
    }

    /// The time of the next check; `None` without nodes.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        (!self.nodes.is_empty()).then(|| self.last.map_or(now, |last| last + PERIOD))
    }

    /// Checks, if it is time to.
    pub(super) fn look(&mut self, now: Instant) -> Vec<Change> {
        self.look_with(now, held)
    }

    fn look_with(&mut self, now: Instant, held: impl Fn(u32) -> Option<Option<Tracer>>) -> Vec<Change> {
        if self.due(now).is_none_or(|due| now < due) {
            return vec![];
        }
        let begin_anew = self.last.is_some_and(|last| now - last > GAP);
        self.last = Some(now);
        let mut changes = vec![];
        for node in &mut self.nodes {
            let held = held(node.process);
            if begin_anew || held.is_none() {
                node.since = None;
            }
            let Some(tracer) = held else {
                if std::mem::take(&mut node.told) {
                    changes.push(Change::Continued(node.node));
                }
                continue;
            };
            let silent = node.told || node.on_purpose;
            if !silent && now - *node.since.get_or_insert(now) >= REPORTED_AFTER {
                node.told = true;
                changes.push(Change::Stopped(Stop { node: node.node, process: node.process, tracer }));
            }
        }
        changes
    }
}

/// Whether a process is stopped, and who traces it if a tracer has stopped it.
fn held(process: u32) -> Option<Option<Tracer>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the command may contain anything; the state follows its closing parenthesis.
    match stat.rsplit_once(')')?.1.trim_start().as_bytes().first()? {
        b'T' => Some(None),
        b't' => Some(tracer_of(process)),
        _ => None,
    }
}

fn tracer_of(process: u32) -> Option<Tracer> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let tracer: u32 = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
    // A process may give itself any name.
    let name = name.trim_end().chars().filter(|letter| !letter.is_control()).collect();
    (tracer != 0).then_some(Tracer { process: tracer, name })
}

impl Stop {
    /// A sentence for the user, who has named this host; `None` for the launcher's own computer.
    pub fn sentence(&self, host: Option<&str>) -> String {
        let Self { node, process, tracer } = self;
        let (on, there) = host.map_or((String::new(), ""), |host| (format!(" on host {host}"), " there"));
        let node = format!("node {node} (process {process}{on})");
        match tracer {
            None => {
                format!(
                    "{node} is stopped and the run waits for it: continue it{there} (kill -CONT {process})"
                )
            }
            Some(Tracer { process, name }) => {
                let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
                format!(
                    "{node} is stopped by its tracer, process {process}{name}, and the run waits for it: continue it{there} from its tracer"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks once a second while the node is stopped (`T`), traced (`t`) or running, or skips a check (space); `S`
    /// and `C` are signals from the launcher. Returns the reports, by the second.
    fn follow(seconds: &str) -> Vec<(u32, Change)> {
        let mut stops = Stops::default();
        stops.add(3, 77);
        let start = Instant::now();
        let mut told = vec![];
        for (second, state) in (0..).zip(seconds.chars()) {
            let now = start + PERIOD * second;
            match state {
                ' ' => continue,
                'S' => stops.signalled(3, libc::SIGSTOP),
                'C' => stops.signalled(3, libc::SIGCONT),
                _ => {}
            }
            let held = |_| match state {
                'T' | 'S' => Some(None),
                't' => Some(Some(Tracer { process: 9, name: "gdb".to_owned() })),
                _ => None,
            };
            told.extend(stops.look_with(now, held).into_iter().map(|change| (second, change)));
        }
        told
    }

    fn stopped() -> Change {
        Change::Stopped(Stop { node: 3, process: 77, tracer: None })
    }

    #[test]
    fn a_node_that_stays_stopped_is_told_of_once_and_when_it_runs_again() {
        assert_eq!(follow("rTTTTTTTTTrrr"), [(6, stopped()), (10, Change::Continued(3))]);
        assert_eq!(follow("rTTTTTTrTTTTTT"), [(6, stopped()), (7, Change::Continued(3)), (13, stopped())]);
    }

    #[test]
    fn short_stops_are_nobodys_business() {
        assert_eq!(follow("TTTTTrTTTTTrTTrrr"), []);
    }

    #[test]
    fn a_tracer_is_named() {
        let told = follow("tttttt");
        let [(5, Change::Stopped(stop))] = &told[..] else { panic!("{told:?}") };
        assert_eq!(
            stop.sentence(None),
            "node 3 (process 77) is stopped by its tracer, process 9 (gdb), and the run waits for it: continue it from its \
             tracer"
        );
    }

    #[test]
    fn a_stop_of_the_whole_job_is_no_news() {
        // By the launcher, which passes on the key of the terminal.
        assert_eq!(follow("rSTTTTTTTTTTTC"), []);
        assert_eq!(follow("rSTTTTTTTTTTCTTTTTT"), [(18, stopped())]);
        // This process was stopped together with the node, and is continued a moment before it.
        assert_eq!(follow("rT            TTTr"), []);
        assert_eq!(follow("rT            TTTTTT"), [(19, stopped())]);
    }

    #[test]
    fn a_node_that_has_ended_is_not_looked_after() {
        let mut stops = Stops::default();
        let now = Instant::now();
        assert_eq!(stops.due(now), None);
        stops.add(1, 5);
        assert_eq!(stops.due(now), Some(now));
        stops.look_with(now, |_| None);
        assert_eq!(stops.due(now), Some(now + PERIOD));
        stops.remove(1);
        assert_eq!(stops.due(now), None);
    }

    #[test]
    fn the_sentence_says_what_to_do() {
        let stop = Stop { node: 3, process: 77, tracer: None };
        assert_eq!(
            stop.sentence(Some("alpha")),
            "node 3 (process 77 on host alpha) is stopped and the run waits for it: continue it there (kill -CONT 77)"
        );
    }

    #[test]
    fn a_stopped_process_is_known_by_the_kernel() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        let signed = pid.cast_signed();
        // SAFETY: the child has not been waited for; the kernel writes one status.
        unsafe {
            assert_eq!(libc::kill(signed, libc::SIGSTOP), 0);
            let mut status = 0;
            assert_eq!(libc::waitpid(signed, &raw mut status, libc::WUNTRACED), signed);
        }
        assert_eq!(held(pid), Some(None));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(held(pid), None);
    }
}
