//! The launcher's side: nodes that agents on other computers start and follow.

use super::agent_threads::{
    Incoming, ToAgent, pass_on, read_agent, read_signals, send_input, start_command, wait_for, write,
};
use super::list::Host;
use super::printers::Printers;
use super::protocol::{AgentAnswer, AgentCommand, Frame, Prepare, Ready, Stream};
use super::template;
use crate::exit;
use crate::process::events::{End, Event, Nodes};
use crate::process::signal_name;
use crate::process::signals::Signals;
use crate::stacks::look::LookRequest;
use gondwana_console::failure::{CANNOT, Failure};
use gondwana_console::output::tell;
use gondwana_control::{Boot, Order};
use gondwana_locks::try_lock;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long agents may take to end after the launcher has closed its end. Then the commands that reach them are ended,
/// which agents notice too.
const FAREWELL: Duration = Duration::from_millis(300);

/// The wait for readers of the program's output, so that messages about its end come behind it.
const ORDER: Duration = Duration::from_millis(100);

/// Signals that ask the launcher to end.
const IMPATIENT: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

struct Agent {
    host: String,
    child: Child,
    to: ToAgent,
    gone: bool,
}

/// Nodes on other computers.
pub(super) struct RemoteNodes {
    agents: Vec<Agent>,
    /// Whether each node has ended; node N is on host N modulo their number.
    ended: Vec<bool>,
    /// Nodes that have ended, while more of their output will come.
    unwritten: Vec<bool>,
    printers: Arc<Printers>,
    incoming: Receiver<Incoming>,
    ready: VecDeque<Event>,
    /// Makes the thread that reads standard input continue.
    want_input: Sender<()>,
    sender: Sender<Incoming>,
}

impl RemoteNodes {
    /// Starts an agent on each host.
    pub(super) fn start(hosts: &[Host], nodes: u16, launcher: &str) -> Result<Self, Failure> {
        // Before any thread: all of them must leave the signals alone.
        let signals = Signals::new(true)?;
        let exe =
            std::env::current_exe().map_err(|error| Failure::system("finding this executable", &error))?;
        let command = [exe.to_string_lossy().into_owned(), "agent".to_owned()];
        let (sender, incoming) = channel();
        let mut agents: Vec<Agent> = vec![];
        let mut streams = vec![];
        for (index, host) in hosts.iter().enumerate() {
            let words = template::expand(launcher, &host.name, &command)?;
            let mut child = start_command(&words, signals.mask_before()).map_err(|error| {
                Failure::cannot(format!("--launcher: {} cannot be started: {error}", words[0]))
            })?;
            let (to, from) = (child.stdin.take(), child.stdout.take());
            streams.extend(from.map(|from| (index, from)));
            agents.push(Agent { host: host.name.clone(), child, to: Arc::new(Mutex::new(to)), gone: false });
        }
        let ways: Vec<ToAgent> = agents.iter().map(|agent| Arc::clone(&agent.to)).collect();
        let of_printers = sender.clone();
        let printers = Printers::start(move |printed| pass_on(printed, &ways, &of_printers));
        let printers =
            Arc::new(printers.map_err(|error| Failure::system("writing the program's output", &error))?);
        for (index, from) in streams {
            let (sender, printers) = (sender.clone(), Arc::clone(&printers));
            thread::spawn(move || read_agent(index, from, &sender, &printers));
        }
        let (want_input, wanted) = channel();
        if let Some(first) = agents.first() {
            let to = Arc::clone(&first.to);
            thread::spawn(move || send_input(&to, &wanted));
        }
        let of_signals = sender.clone();
        thread::spawn(move || read_signals(&signals, &of_signals));
        Ok(Self {
            agents,
            ended: vec![false; usize::from(nodes)],
            unwritten: vec![false; usize::from(nodes)],
            printers,
            incoming,
            ready: VecDeque::new(),
            want_input,
            sender,
        })
    }

    /// Sends an agent the program.
    pub(super) fn prepare(&mut self, host: usize, prepare: &Prepare) {
        self.send(host, &AgentCommand::Prepare(prepare.clone()));
    }

    /// Waits until all agents have found everything in order.
    pub(super) fn wait_ready(&mut self, deadline: Instant) -> Result<Vec<Ready>, Failure> {
        let mut ready: Vec<Option<Ready>> = self.agents.iter().map(|_| None).collect();
        loop {
            let waiting: Vec<usize> = (0..ready.len()).filter(|&host| ready[host].is_none()).collect();
            if waiting.is_empty() {
                return Ok(ready.into_iter().flatten().collect());
            }
            let names =
                || waiting.iter().map(|&host| self.agents[host].host.as_str()).collect::<Vec<_>>().join(", ");
            let message = match self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(Incoming::AgentAnswer(host, AgentAnswer::Ready(answer))) => {
                    ready[host] = Some(*answer);
                    continue;
                }
                Ok(Incoming::AgentAnswer(host, AgentAnswer::Failed(why))) => {
                    format!("host {}: {why}", self.agents[host].host)
                }
                Ok(Incoming::AgentAnswer(host, _)) => {
                    format!("host {}: its agent speaks out of turn", self.agents[host].host)
                }
                Ok(Incoming::Gone(host, why)) => {
                    // The launcher does not wait for it any more.
                    self.agents[host].gone = true;
                    let host = &self.agents[host].host;
                    format!("host {host} does not answer: {why} (--launcher says how to reach a host)")
                }
                // Nothing is recorded or printed before nodes are started.
                Ok(
                    Incoming::Chunk(..) | Incoming::Watched | Incoming::Unwritable(..) | Incoming::Printed,
                ) => continue,
                Ok(Incoming::Signal(signal)) => {
                    let message = format!("stopped by {} before all hosts had answered", signal_name(signal));
                    return Err(Failure { status: exit::status_of(signal), message });
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    format!("no answer in time from {} (--host-timeout gives more)", names())
                }
            };
            return Err(Failure::cannot(message));
        }
    }

    /// Makes an agent start its nodes.
    pub(super) fn start_nodes(&mut self, host: usize, boots: Vec<Boot>) {
        self.send(host, &AgentCommand::Start(boots));
    }

    /// Sends a command. An agent that is gone is noticed where its answers are read.
    fn send(&self, host: usize, command: &AgentCommand) {
        if let Ok(frame) = Frame::message(command) {
            write(&self.agents[host].to, &frame);
        }
    }

    fn incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Signal(signal) => self.ready.push_back(Event::Signal { signal, from_terminal: false }),
            Incoming::Chunk(node, chunk) => self.ready.push_back(Event::Chunk(node, chunk)),
            Incoming::Watched => self.ready.push_back(Event::Watched),
            Incoming::AgentAnswer(_, AgentAnswer::Started(node, process)) => {
                self.ready.push_back(Event::Started(node, process));
            }
            Incoming::AgentAnswer(_, AgentAnswer::Report(node, report)) => {
                self.ready.push_back(Event::Report(node, report))
            }
            Incoming::AgentAnswer(_, AgentAnswer::Ended(node, end)) => {
                self.printers.settle(ORDER);
                if let Some(unwritten) = self.unwritten.get_mut(usize::from(node)) {
                    *unwritten = true;
                }
                self.node_ended(usize::from(node), end);
            }
            Incoming::AgentAnswer(_, AgentAnswer::Written(node)) => {
                if let Some(unwritten) = self.unwritten.get_mut(usize::from(node)) {
                    *unwritten = false;
                }
            }
            Incoming::AgentAnswer(host, AgentAnswer::Stopped(stop)) => {
                let host = self.agents[host].host.clone();
                self.ready.push_back(Event::Stopped(stop, Some(host)));
            }
            Incoming::AgentAnswer(_, AgentAnswer::Unwound(id)) => self.ready.push_back(Event::Unwound(id)),
            Incoming::AgentAnswer(_, AgentAnswer::Looked(found)) => {
                self.ready.push_back(Event::Looked(found))
            }
            Incoming::AgentAnswer(_, AgentAnswer::Continued(node)) => {
                self.ready.push_back(Event::Continued(node))
            }
            Incoming::Unwritable(stream, error) => self.unwritable(stream, &error),
            Incoming::Printed => {}
            Incoming::AgentAnswer(_, AgentAnswer::WantInput) => {
                // The reading thread is gone when there is no more input.
                let _ = self.want_input.send(());
            }
            Incoming::AgentAnswer(
                _,
                AgentAnswer::Ready(_)
                | AgentAnswer::Examined(_)
                | AgentAnswer::Clock(_)
                | AgentAnswer::Reached(_),
            ) => {}
            Incoming::AgentAnswer(host, AgentAnswer::Failed(why)) => self.gone(host, &why),
            Incoming::Gone(host, why) => {
                self.agents[host].gone = true;
                self.gone(host, &format!("the connection is lost: {why}"));
            }
        }
    }

    /// The program cannot get this error, but that of a pipe without a reader.
    fn unwritable(&mut self, stream: Stream, error: &io::Error) {
        for host in 0..self.agents.len() {
            self.send(host, &AgentCommand::Close(stream));
        }
        if error.kind() != io::ErrorKind::BrokenPipe {
            let sentence = format!("{} cannot be written: {error}; the rest of it is lost", stream.name());
            self.ready.push_back(Event::OutputLost(sentence));
        }
    }

    fn node_ended(&mut self, node: usize, end: End) {
        if let Some(ended) = self.ended.get_mut(node).filter(|ended| !**ended)
            && let Ok(node) = u16::try_from(node)
        {
            *ended = true;
            self.ready.push_back(Event::Ended(node, end));
        }
    }

    /// Without its agent a host's nodes end.
    fn gone(&mut self, host: usize, why: &str) {
        let here = || (host..self.ended.len()).step_by(self.agents.len());
        here().for_each(|node| self.unwritten[node] = false);
        let left: Vec<usize> = here().filter(|&node| !self.ended[node]).collect();
        if !left.is_empty() {
            self.printers.settle(ORDER);
            tell(&format!("host {}: {why}", self.agents[host].host));
        }
        for node in left {
            self.node_ended(node, End::Exited(i32::from(CANNOT)));
        }
    }
}

impl Nodes for RemoteNodes {
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let incoming = match deadline {
                None => self.incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => {
                    self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                }
            };
            match incoming {
                Ok(incoming) => self.incoming(incoming),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::cannot("all hosts are lost")),
            }
        }
    }

    fn order(&mut self, node: u16, order: &Order) {
        self.send(usize::from(node) % self.agents.len(), &AgentCommand::Order { node, order: order.clone() });
    }

    fn watch(&mut self, fd: RawFd) {
        let sender = self.sender.clone();
        thread::spawn(move || while wait_for(fd) && sender.send(Incoming::Watched).is_ok() {});
    }

    fn signal(&mut self, node: u16, signal: i32) {
        self.send(usize::from(node) % self.agents.len(), &AgentCommand::Signal { node, signal });
    }

    fn look(&mut self, request: &LookRequest) {
        let count = self.agents.len();
        let hosts: BTreeSet<usize> = request.nodes.iter().map(|node| usize::from(*node) % count).collect();
        for host in hosts {
            self.send(host, &AgentCommand::Look(request.clone()));
        }
    }

    fn kill(&mut self) {
        for host in 0..self.agents.len() {
            self.send(host, &AgentCommand::Kill);
        }
    }

    fn last_words(&mut self) -> Option<Event> {
        loop {
            let is_done = self.printers.is_done() && !self.unwritten.contains(&true);
            // Events that arrived meanwhile may change that.
            let mut news = false;
            while let Ok(incoming) = self.incoming.try_recv() {
                self.incoming(incoming);
                news = true;
            }
            match self.ready.pop_front() {
                // The program has ended, and a signal ends the wait for a reader.
                Some(Event::Signal { signal, .. }) if IMPATIENT.contains(&signal) => return None,
                Some(event) => return Some(event),
                None if news => {}
                None if is_done => return None,
                None => {
                    let incoming = self.incoming.recv().ok()?;
                    self.incoming(incoming);
                }
            }
        }
    }
}

impl Drop for RemoteNodes {
    /// Closes the ways to the agents, which makes them end their nodes and themselves.
    fn drop(&mut self) {
        self.printers.settle(FAREWELL);
        for agent in &self.agents {
            // If a thread blocks in writing, killing the command below closes the stream as well.
            if let Some(mut to) = try_lock(&agent.to) {
                *to = None;
            }
        }
        let deadline = Instant::now() + FAREWELL;
        while !self.agents.iter().all(|agent| agent.gone) {
            match self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Incoming::Gone(host, _)) => self.agents[host].gone = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        for agent in &mut self.agents {
            // It has ended already, or ends now; its status is not needed.
            if !agent.gone {
                let _ = agent.child.kill();
            }
            let _ = agent.child.wait();
        }
    }
}
