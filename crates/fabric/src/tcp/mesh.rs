//! The start: makes one authenticated connection with each other node.

use super::epoll::{EDGE, Epoll, READABLE, WRITABLE};
use super::frame::Channel;
use super::handshake::{Failure, Handshake, Identity, Step};
use super::process_clock::ProcessClock;
use super::{Security, TcpConfig};
use crate::ConnectError;
use gondwana_topology::{Id, NodeId};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The timeout of a handshake, and of one attempt to connect, in process time.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The additional timeout for each node of the run: a listening node makes as many handshakes, and the nodes of one
/// computer share its processors.
const TIMEOUT_EACH: Duration = Duration::from_millis(100);
/// The most process time between two readings of the clock.
const STEP: Duration = Duration::from_millis(250);
/// How long to wait before another attempt.
const PAUSE: Duration = Duration::from_millis(20);
/// Besides one for each node, so many connections may be in their handshake. Beyond that the oldest is closed; a node
/// connects again.
const STRANGERS: usize = 64;

/// The token of the listener; connections have larger ones.
const LISTENER: usize = 0;

/// A connection to a peer that is authenticated.
pub(super) struct Link {
    pub peer: NodeId,
    pub stream: TcpStream,
    pub channel: Channel,
    /// True if the peer is on another computer.
    pub elsewhere: bool,
}

/// Listens for the other nodes of the run, which may all connect at once.
///
/// # Errors
/// Of the system.
pub fn listen(address: SocketAddr, nodes: usize) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // A node that finds the queue full tries again after a second.
    SockRef::from(&listener).listen(i32::try_from(nodes + STRANGERS).unwrap_or(i32::MAX))?;
    Ok(listener)
}

/// Connects to all lower nodes and lets all higher nodes connect.
pub(super) fn establish(listener: TcpListener, config: &TcpConfig) -> Result<Vec<Link>, ConnectError> {
    let system = |what| move |source| ConnectError::System { what, source };
    listener.set_nonblocking(true).map_err(system("the listening socket"))?;
    let epoll = Epoll::new().map_err(system("epoll of the handshakes"))?;
    epoll.add(&listener, READABLE, LISTENER).map_err(system("epoll of the handshakes"))?;
    let nodes = config.peers.len();
    let mut mesh = Mesh {
        config,
        listener,
        epoll,
        time: ProcessClock::new(Instant::now(), STEP),
        timeout: HANDSHAKE_TIMEOUT + TIMEOUT_EACH * u32::try_from(nodes).expect("up to MAX_NODES"),
        calls: (0..config.node.0).map(|peer| Call { peer: NodeId(peer), next: Duration::ZERO }).collect(),
        halves: BTreeMap::new(),
        next: LISTENER + 1,
        links: Vec::new(),
        linked: vec![false; nodes],
        last: "nobody called".to_owned(),
    };
    while mesh.links.len() + 1 < nodes {
        mesh.time.look(Instant::now());
        if mesh.time.now() >= config.timeout {
            return Err(mesh.timed_out());
        }
        mesh.call()?;
        mesh.sleep_and_go_on()?;
    }
    Ok(mesh.links)
}

struct Mesh<'a> {
    config: &'a TcpConfig,
    listener: TcpListener,
    /// Watches the listener and all connections of `halves`, by their numbers.
    epoll: Epoll,
    time: ProcessClock,
    /// How long an attempt may take.
    timeout: Duration,
    /// Calls to make.
    calls: Vec<Call>,
    /// Connections that are not authenticated yet, by their numbers, the oldest first.
    halves: BTreeMap<usize, Half<'a>>,
    /// The number of the next connection.
    next: usize,
    links: Vec<Link>,
    /// By node: true if it has a link.
    linked: Vec<bool>,
    /// The last error.
    last: String,
}

/// A peer to be called.
struct Call {
    peer: NodeId,
    /// Not before then, in process time.
    next: Duration,
}

/// A connection whose handshake is under way.
struct Half<'a> {
    stream: TcpStream,
    /// The node that this node connects to; `None` for an accepted connection.
    called: Option<NodeId>,
    handshake: Handshake<'a>,
    /// The received part of the next flight.
    arrived: Vec<u8>,
    /// Bytes to send.
    to_send: Vec<u8>,
    /// In process time.
    deadline: Duration,
}

/// The result of a connection.
enum Outcome {
    Waiting,
    Made(NodeId, Channel),
    Failed(String),
    Refused(String),
}

impl<'a> Mesh<'a> {
    fn identity(&self) -> Identity<'a> {
        Identity {
            node: self.config.node,
            nodes: self.config.peers.len(),
            run: self.config.run,
            secret: match &self.config.security {
                Security::Encrypted(secret) => Some(secret),
                Security::Plain => None,
            },
        }
    }

    /// Makes the calls that are due.
    fn call(&mut self) -> Result<(), ConnectError> {
        let now = self.time.now();
        let identity = self.identity();
        for call in self.calls.extract_if(.., |call| call.next <= now).collect::<Vec<_>>() {
            match dial(self.config, call.peer) {
                Ok(stream) => {
                    let (handshake, hello) = Handshake::initiate(identity, call.peer);
                    self.begin(Half {
                        stream,
                        called: Some(call.peer),
                        handshake,
                        arrived: Vec::new(),
                        to_send: hello,
                        deadline: now + self.timeout,
                    })?;
                }
                Err(error) => self.try_later(call.peer, format!("node {}: {error}", call.peer)),
            }
        }
        Ok(())
    }

    /// Watches a connection from now on. Events that are pending already are reported too.
    fn begin(&mut self, half: Half<'a>) -> Result<(), ConnectError> {
        self.epoll
            .add(&half.stream, READABLE | WRITABLE | EDGE, self.next)
            .map_err(|source| ConnectError::System { what: "epoll of the handshakes", source })?;
        self.halves.insert(self.next, half);
        self.next += 1;
        Ok(())
    }

    fn try_later(&mut self, peer: NodeId, why: String) {
        self.last = why;
        self.calls.push(Call { peer, next: self.time.now() + PAUSE });
    }

    /// Sleeps until a socket is ready or a deadline passes, and handles it.
    fn sleep_and_go_on(&mut self) -> Result<(), ConnectError> {
        let now = self.time.now();
        let due =
            self.halves.values().map(|half| half.deadline).chain(self.calls.iter().map(|call| call.next));
        let due = due.fold(self.config.timeout, Duration::min).saturating_sub(now).min(STEP / 2);
        let mut is_called = false;
        for (token, _) in self.epoll.look(Some(due)) {
            match token {
                LISTENER => is_called = true,
                number => self.go_on(number)?,
            }
        }
        if is_called {
            self.accept()?;
        }
        let late: Vec<_> =
            self.halves.iter().filter(|(_, half)| half.deadline <= now).map(|(&number, _)| number).collect();
        late.into_iter().try_for_each(|number| {
            let half = self.halves.remove(&number).expect("found just now");
            self.settle(half, Outcome::Failed("no answer to the handshake".to_owned()))
        })
    }

    /// Takes calls.
    fn accept(&mut self) -> Result<(), ConnectError> {
        // Bounded, so that a flood of callers does not keep this node from its own calls.
        for _ in 0..STRANGERS {
            // Such errors concern one caller that has closed, or a temporary lack of resources.
            let Ok((stream, _)) = self.listener.accept() else { return Ok(()) };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let strangers = self.halves.iter().filter(|(_, half)| half.called.is_none());
            if strangers.clone().count() >= STRANGERS + self.config.peers.len()
                && let Some(oldest) = strangers.map(|(&number, _)| number).next()
            {
                self.halves.remove(&oldest);
            }
            self.begin(Half {
                stream,
                called: None,
                handshake: Handshake::respond(self.identity()),
                arrived: Vec::new(),
                to_send: Vec::new(),
                deadline: self.time.now() + self.timeout,
            })?;
        }
        Ok(())
    }

    /// Advances a handshake as far as possible.
    fn go_on(&mut self, number: usize) -> Result<(), ConnectError> {
        let Some(mut half) = self.halves.remove(&number) else { return Ok(()) };
        match half.advance(self.config.timeout, &self.linked) {
            Outcome::Waiting => {
                self.halves.insert(number, half);
                Ok(())
            }
            outcome => self.settle(half, outcome),
        }
    }

    /// Handles the result of a handshake.
    fn settle(&mut self, half: Half<'_>, outcome: Outcome) -> Result<(), ConnectError> {
        match (outcome, half.called) {
            (Outcome::Made(peer, channel), _) => {
                let system = |what| move |source| ConnectError::System { what, source };
                self.epoll.remove(&half.stream).map_err(system("epoll of the handshakes"))?;
                let address = |node: NodeId| self.config.peers[node.index()].ip();
                let elsewhere = address(peer) != address(self.config.node);
                prepare(&half.stream, elsewhere.then_some(self.config.silence))
                    .map_err(system("options of a connection"))?;
                self.linked[peer.index()] = true;
                self.links.push(Link { peer, stream: half.stream, channel, elsewhere });
            }
            (Outcome::Refused(why), Some(node)) => {
                return Err(ConnectError::Refused { node, address: self.config.peers[node.index()], why });
            }
            (Outcome::Failed(why), Some(peer)) => self.try_later(peer, format!("node {peer}: {why}")),
            // A stranger, or a node that will connect again.
            (Outcome::Failed(why) | Outcome::Refused(why), None) => self.last = format!("a caller: {why}"),
            (Outcome::Waiting, _) => {}
        }
        Ok(())
    }

    fn timed_out(&self) -> ConnectError {
        let all = (0..self.config.peers.len()).map(NodeId::from_index);
        ConnectError::Timeout {
            missing: all.filter(|node| *node != self.config.node && !self.linked[node.index()]).collect(),
            waited: self.config.timeout,
            last: self.last.clone(),
        }
    }
}

impl Half<'_> {
    /// Sends and receives without waiting. `linked` says which peers already have a connection: a second one is
    /// refused. `end` is the deadline of a connection that the peer considers established.
    fn advance(&mut self, end: Duration, linked: &[bool]) -> Outcome {
        loop {
            match self.step(end, linked) {
                Ok(Outcome::Waiting) => {}
                Ok(outcome) => return outcome,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return Outcome::Waiting;
                }
                Err(error) => return Outcome::Failed(error.to_string()),
            }
        }
    }

    fn step(&mut self, end: Duration, linked: &[bool]) -> io::Result<Outcome> {
        while !self.to_send.is_empty() {
            let written = self.stream.write(&self.to_send)?;
            self.to_send.drain(..written);
        }
        let missing = self.handshake.needs() - self.arrived.len();
        let mut room = vec![0; missing];
        let count = self.stream.read(&mut room)?;
        if count == 0 {
            let why = "the connection was closed during the handshake; do both have the same secret?";
            return Ok(Outcome::Failed(why.to_owned()));
        }
        self.arrived.extend(&room[..count]);
        if count < missing {
            return Ok(Outcome::Waiting);
        }
        let flight = std::mem::take(&mut self.arrived);
        match self.handshake.advance(&flight) {
            Ok(Step::Wait) => {}
            Ok(Step::Send(bytes)) => {
                self.to_send = bytes;
                if self.called.is_some() && !self.handshake.is_unanswered() {
                    // The peer considers this connection established: connecting again would fail.
                    self.deadline = end;
                }
            }
            Ok(Step::Done(_, peer, _)) if linked[peer.index()] => {
                return Ok(Outcome::Failed(format!("node {peer} is connected already")));
            }
            Ok(Step::Done(last, peer, channel)) => {
                // So few bytes fit into the buffer of a socket into which little was written before.
                self.stream.write_all(&last)?;
                return Ok(Outcome::Made(peer, channel));
            }
            Err(Failure::Refused(refusal)) => {
                if self.called.is_none() {
                    // The reply may be lost. The caller's bytes are read first: closing a connection with unread data
                    // would discard the reply.
                    let _ = self.stream.read(&mut [0; 256]);
                    let _ = self.stream.write(&Failure::Refused(refusal).reply());
                }
                return Ok(Outcome::Refused(refusal.to_string()));
            }
            Err(Failure::NotAuthentic) => {
                return Ok(Outcome::Failed("the handshake is not authentic".to_owned()));
            }
        }
        Ok(Outcome::Waiting)
    }
}

/// The kernel's own timeout is this multiple of [`TcpConfig::silence`]: it also counts time without a processor.
const KERNELS: u32 = 8;

/// Sets the options of a connection that is made; `silence` is that of a peer on another computer.
fn prepare(stream: &TcpStream, silence: Option<Duration>) -> io::Result<()> {
    // The peer often waits for each message, so they must not be delayed to be joined.
    stream.set_nodelay(true)?;
    let Some(silence) = silence else { return Ok(()) };
    let socket = SockRef::from(stream);
    // Probes of an idle connection; the time after which a probe or data without an answer ends the connection.
    let second = Duration::from_secs(1);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(second).with_interval(second))?;
    socket.set_tcp_user_timeout(Some(silence * KERNELS))
}

/// Begins to connect.
fn dial(config: &TcpConfig, peer: NodeId) -> io::Result<TcpStream> {
    let address = config.peers[peer.index()];
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}
