//! Examining hosts before a run, for `gondwana doctor`.

use super::agent_threads::start_command;
use super::list::{self, Host};
use super::protocol::{
    AgentAnswer, AgentCommand, Examine, Frame, HostFacts, from_os, parse, skip_to_greeting,
};
use super::{facts, template};
use crate::process::signals::blocked_now;
use crate::program;
use gondwana_console::failure::Failure;
use gondwana_control::VERSION;
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long hosts that have answered may take for clocks and ways: a way that leads nowhere takes three seconds.
const ASKED_ON: Duration = Duration::from_secs(10);

/// How long the commands that reach hosts may take to end.
const FAREWELL: Duration = Duration::from_millis(300);

/// What is known of a host.
#[derive(Debug)]
pub struct Examined {
    /// The user's name of it.
    pub host: String,
    /// Its facts, or a sentence that says why there are none.
    pub facts: Result<HostFacts, String>,
    /// How far its clock is ahead of this computer's, and how far that may be wrong, in microseconds.
    pub clock: Option<(i64, u64)>,
    /// The hosts, by their places in the list, that it cannot connect to, each with the reason.
    pub unreached: Vec<(usize, String)>,
}

/// Examines all hosts at once; each has this time to answer.
///
/// # Errors
/// If the options are wrong; what is wrong with a host is in the answer.
pub fn examine(
    hosts: &[String],
    launcher: &str,
    time: Duration,
    program: Option<&OsStr>,
) -> Result<Vec<Examined>, Failure> {
    let hosts = list::parse(hosts)?;
    let failed = |error| Failure::system("finding this folder", &error);
    let path = program.map(program::locate).transpose()?;
    let path = path.map(std::path::absolute).transpose().map_err(failed)?;
    let folder = std::env::current_dir().map_err(failed)?;
    let deadline = Instant::now() + time;
    let loopback = hosts.len() == 1 || hosts.iter().all(Host::is_this_computer);
    let mut agents = vec![];
    for host in &hosts {
        agents.push(Agent::start(host, launcher)?);
    }
    for (host, agent) in hosts.iter().zip(&mut agents) {
        agent.send(&AgentCommand::Examine(Examine {
            version: VERSION.to_owned(),
            path: path.as_ref().map(|path| from_os(path.as_os_str())),
            environment: std::env::vars_os().map(|(key, value)| (from_os(&key), from_os(&value))).collect(),
            folder: from_os(folder.as_os_str()),
            host: host.name.clone(),
            address: host.address,
            loopback,
        }));
    }
    let mut examined: Vec<Examined> = hosts
        .iter()
        .zip(&mut agents)
        .map(|(host, agent)| Examined {
            host: host.name.clone(),
            facts: match agent.receive(deadline) {
                Ok(AgentAnswer::Examined(facts)) => Ok(*facts),
                Ok(_) => Err("its agent speaks out of turn".to_owned()),
                Err(why) => Err(why),
            },
            clock: None,
            unreached: vec![],
        })
        .collect();
    // A host that is silent has used up all of the time, and the others are not to blame.
    let deadline = deadline.max(Instant::now() + ASKED_ON);
    for (agent, found) in agents.iter_mut().zip(&mut examined).filter(|(_, found)| found.facts.is_ok()) {
        found.clock = agent.clock(deadline);
    }
    reach(&mut agents, &mut examined, deadline);
    agents.into_iter().for_each(Agent::end);
    Ok(examined)
}

/// Has each host connect to all others.
fn reach(agents: &mut [Agent], examined: &mut [Examined], deadline: Instant) {
    let listening: Vec<(usize, SocketAddr)> = (0..)
        .zip(&*examined)
        .filter_map(|(place, found)| Some((place, *found.facts.as_ref().ok()?.listens.as_ref().ok()?)))
        .collect();
    let others = |own: usize| listening.iter().filter(move |(place, _)| *place != own);
    for (place, agent) in agents.iter_mut().enumerate() {
        agent.send(&AgentCommand::Reach(others(place).map(|(_, address)| *address).collect()));
    }
    for (place, (agent, found)) in agents.iter_mut().zip(examined).enumerate() {
        if found.facts.is_err() {
            continue;
        }
        match agent.receive(deadline) {
            Ok(AgentAnswer::Reached(reasons)) => {
                let pairs = others(place).zip(reasons);
                found.unreached.extend(pairs.filter_map(|((other, address), why)| {
                    Some((*other, format!("{}: {}", address.ip(), why?)))
                }));
            }
            Ok(_) => found.facts = Err("its agent speaks out of turn".to_owned()),
            Err(why) => found.facts = Err(why),
        }
    }
}

/// An agent on a host, and what it has answered.
struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    answers: Receiver<Result<(AgentAnswer, Instant), String>>,
}

impl Agent {
    fn start(host: &Host, launcher: &str) -> Result<Self, Failure> {
        let exe =
            std::env::current_exe().map_err(|error| Failure::system("finding this executable", &error))?;
        let command = [exe.to_string_lossy().into_owned(), "agent".to_owned()];
        let words = template::expand(launcher, &host.name, &command)?;
        let mut child = start_command(&words, blocked_now()).map_err(|error| {
            Failure::cannot(format!("--launcher: {} cannot be started: {error}", words[0]))
        })?;
        let (sender, answers) = channel();
        let (to, from) = (child.stdin.take(), child.stdout.take());
        if let Some(from) = from {
            thread::spawn(move || {
                let why = read(from, |answer| sender.send(Ok((answer, Instant::now()))).is_ok());
                // Without a receiver the command is ending.
                let _ = sender.send(Err(why));
            });
        }
        Ok(Self { child, to, answers })
    }

    /// Sends a command. An agent that is gone is noticed where its answers are read.
    fn send(&mut self, command: &AgentCommand) {
        let Ok(frame) = Frame::message(command) else { return };
        if self.to.as_mut().is_some_and(|to| frame.write(to).is_err()) {
            self.to = None;
        }
    }

    fn receive(&mut self, deadline: Instant) -> Result<AgentAnswer, String> {
        self.receive_at(deadline).map(|(answer, _)| answer)
    }

    /// The next answer, and when it came.
    fn receive_at(&mut self, deadline: Instant) -> Result<(AgentAnswer, Instant), String> {
        match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok((AgentAnswer::Failed(why), _))) | Ok(Err(why)) => Err(why),
            Ok(Ok(answer)) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => Err("no answer in time (--host-timeout gives more)".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err("its agent has ended".to_owned()),
        }
    }

    /// How far its clock is ahead of this computer's, and how far that may be wrong, in microseconds.
    fn clock(&mut self, deadline: Instant) -> Option<(i64, u64)> {
        let (before, asked) = (facts::clock(), Instant::now());
        self.send(&AgentCommand::Clock);
        let (AgentAnswer::Clock(there), answered) = self.receive_at(deadline).ok()? else { return None };
        let half = u64::try_from(answered.duration_since(asked).as_micros()).ok()? / 2;
        Some((there.cast_signed().checked_sub(before.checked_add(half)?.cast_signed())?, half))
    }

    /// Closes the way to it, at which it ends.
    fn end(mut self) {
        self.to = None;
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            match self.answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                // Its stream has ended, so that it ends now.
                Err(_) => break,
            }
        }
        // An agent behind it ends with its standard input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an agent's answers until `take` wants no more; returns why there are no more.
fn read(mut from: ChildStdout, mut take: impl FnMut(AgentAnswer) -> bool) -> String {
    let mut talk = || -> io::Result<String> {
        if !skip_to_greeting(&mut from)? {
            return Ok("it does not answer: the command has ended without starting an agent".to_owned());
        }
        while let Some(frame) = Frame::read(&mut from)? {
            let Frame::Message(contents) = frame else { continue };
            if !take(parse(&contents)?) {
                break;
            }
        }
        Ok("its agent has ended".to_owned())
    };
    talk().unwrap_or_else(|error| error.to_string())
}
