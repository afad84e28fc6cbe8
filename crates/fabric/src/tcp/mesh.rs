//! The start: from a listening socket to one authenticated connection with each other node.

use super::frame::Channel;
use super::handshake::{Failure, Handshake, Identity, Step};
use super::{Security, TcpConfig};
use crate::ConnectError;
use gondwana_topology::NodeId;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// How long a caller may take over its handshake, and how long one attempt to call waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before another attempt.
const PAUSE: Duration = Duration::from_millis(20);
/// How many callers may be in their handshake besides as many as there are nodes. If there are more, the oldest
/// goes; a node calls again.
const STRANGERS: usize = 64;

/// A connection to a peer that is authenticated.
pub(super) struct Link {
    pub peer: NodeId,
    pub stream: TcpStream,
    pub channel: Channel,
}

/// Connects to all lower nodes and lets all higher nodes connect.
pub(super) fn establish(listener: TcpListener, config: &TcpConfig) -> Result<Vec<Link>, ConnectError> {
    listener
        .set_nonblocking(true)
        .map_err(|source| ConnectError::System { what: "the listening socket", source })?;
    let start = Instant::now();
    let mut mesh = Mesh {
        config,
        listener,
        end: start + config.timeout,
        calls: (0..config.node.0).map(|peer| Call { peer: NodeId(peer), next: start }).collect(),
        halves: Vec::new(),
        links: Vec::new(),
        last: "nobody called".to_owned(),
    };
    while mesh.links.len() + 1 < config.peers.len() {
        if Instant::now() >= mesh.end {
            return Err(mesh.timed_out());
        }
        mesh.call();
        mesh.sleep();
        mesh.accept();
        mesh.go_on()?;
    }
    Ok(mesh.links)
}

struct Mesh<'a> {
    config: &'a TcpConfig,
    listener: TcpListener,
    end: Instant,
    /// Calls to make.
    calls: Vec<Call>,
    /// Connections that are not authenticated yet, the oldest first.
    halves: Vec<Half<'a>>,
    links: Vec<Link>,
    /// What went wrong last.
    last: String,
}

/// A peer to be called.
struct Call {
    peer: NodeId,
    /// Not before then.
    next: Instant,
}

/// A connection whose handshake is under way.
struct Half<'a> {
    stream: TcpStream,
    /// Whom this node called; `None` if it was called.
    called: Option<NodeId>,
    handshake: Handshake<'a>,
    /// What has arrived of the next flight.
    arrived: Vec<u8>,
    /// What is still to be sent.
    to_send: Vec<u8>,
    deadline: Instant,
}

/// What became of a connection.
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
    fn call(&mut self) {
        let now = Instant::now();
        let identity = self.identity();
        for call in self.calls.extract_if(.., |call| call.next <= now).collect::<Vec<_>>() {
            match dial(self.config, call.peer) {
                Ok(stream) => {
                    let (handshake, hello) = Handshake::initiate(identity, call.peer);
                    self.halves.push(Half {
                        stream,
                        called: Some(call.peer),
                        handshake,
                        arrived: Vec::new(),
                        to_send: hello,
                        deadline: now + PATIENCE,
                    });
                }
                Err(error) => self.try_later(call.peer, format!("node {}: {error}", call.peer)),
            }
        }
    }

    fn try_later(&mut self, peer: NodeId, why: String) {
        self.last = why;
        self.calls.push(Call { peer, next: Instant::now() + PAUSE });
    }

    /// Sleeps until a socket is ready or something is due.
    fn sleep(&self) {
        let watch = |fd: i32, events: i16| libc::pollfd { fd, events, revents: 0 };
        let mut set = vec![watch(self.listener.as_raw_fd(), libc::POLLIN)];
        set.extend(self.halves.iter().map(|half| {
            let events = if half.to_send.is_empty() { libc::POLLIN } else { libc::POLLOUT };
            watch(half.stream.as_raw_fd(), events)
        }));
        let due = self.halves.iter().map(|half| half.deadline).chain(self.calls.iter().map(|call| call.next));
        let due = due.fold(self.end, Instant::min);
        let millis = due.saturating_duration_since(Instant::now()).as_millis() as i32 + 1;
        // SAFETY: the array has as many entries as it says. Errors mean "look again".
        unsafe { libc::poll(set.as_mut_ptr(), set.len() as libc::nfds_t, millis) };
    }

    /// Takes calls.
    fn accept(&mut self) {
        // Bounded, so that a flood of callers does not keep this node from its own calls.
        for _ in 0..STRANGERS {
            // Errors are those of one caller who has gone again, or of a lack that may pass.
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let strangers = self.halves.iter().filter(|half| half.called.is_none()).count();
            if strangers >= STRANGERS + self.config.peers.len()
                && let Some(oldest) = self.halves.iter().position(|half| half.called.is_none())
            {
                self.halves.remove(oldest);
            }
            self.halves.push(Half {
                stream,
                called: None,
                handshake: Handshake::respond(self.identity()),
                arrived: Vec::new(),
                to_send: Vec::new(),
                deadline: Instant::now() + PATIENCE,
            });
        }
    }

    /// Lets every handshake advance as far as it can.
    fn go_on(&mut self) -> Result<(), ConnectError> {
        let mut index = 0;
        while index < self.halves.len() {
            let linked = |peer| self.links.iter().any(|link| link.peer == peer);
            let outcome = self.halves[index].advance(self.end, &linked);
            if matches!(outcome, Outcome::Waiting) {
                index += 1;
                continue;
            }
            let half = self.halves.remove(index);
            match (outcome, half.called) {
                (Outcome::Made(peer, channel), _) => {
                    prepare(&half.stream, self.config.silence)
                        .map_err(|source| ConnectError::System { what: "options of a connection", source })?;
                    self.links.push(Link { peer, stream: half.stream, channel });
                }
                (Outcome::Refused(why), Some(node)) => {
                    return Err(ConnectError::Refused {
                        node,
                        address: self.config.peers[node.index()],
                        why,
                    });
                }
                (Outcome::Failed(why), Some(peer)) => self.try_later(peer, format!("node {peer}: {why}")),
                // A stranger, or a node that will call again.
                (Outcome::Failed(why) | Outcome::Refused(why), None) => {
                    self.last = format!("a caller: {why}")
                }
                (Outcome::Waiting, _) => {}
            }
        }
        Ok(())
    }

    fn timed_out(&self) -> ConnectError {
        let linked = |node: &NodeId| self.links.iter().any(|link| link.peer == *node);
        let all = (0..self.config.peers.len()).map(|index| NodeId(index as u16));
        ConnectError::Timeout {
            missing: all.filter(|node| *node != self.config.node && !linked(node)).collect(),
            waited: self.config.timeout,
            last: self.last.clone(),
        }
    }
}

impl Half<'_> {
    /// Sends and receives what can be without waiting. `linked` says which peers have a connection already: a
    /// second one is not wanted.
    fn advance(&mut self, end: Instant, linked: &dyn Fn(NodeId) -> bool) -> Outcome {
        loop {
            match self.step(end, linked) {
                Ok(Outcome::Waiting) => {}
                Ok(outcome) => return outcome,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return if Instant::now() < self.deadline {
                        Outcome::Waiting
                    } else {
                        Outcome::Failed("no answer to the handshake".to_owned())
                    };
                }
                Err(error) => return Outcome::Failed(error.to_string()),
            }
        }
    }

    fn step(&mut self, end: Instant, linked: &dyn Fn(NodeId) -> bool) -> io::Result<Outcome> {
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
                    // The peer counts on this connection from now on: calling again would be in vain.
                    self.deadline = end;
                }
            }
            Ok(Step::Done(_, peer, _)) if linked(peer) => {
                return Ok(Outcome::Failed(format!("node {peer} is connected already")));
            }
            Ok(Step::Done(last, peer, channel)) => {
                // So few bytes fit into the buffer of a socket into which little was written before.
                self.stream.write_all(&last)?;
                return Ok(Outcome::Made(peer, channel));
            }
            Err(Failure::Refused(refusal)) => {
                if self.called.is_none() {
                    // Out of courtesy; if it does not arrive, so be it. What the caller has sent is read first:
                    // closing a connection with unread data would overtake the reply.
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

/// Sets the options of a connection that is made.
fn prepare(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    // A message is often answered at once; it must not wait for company.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    // Probes of an idle connection; the time after which a probe or data without an answer ends the connection.
    let second = Duration::from_secs(1);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(second).with_interval(second))?;
    socket.set_tcp_user_timeout(Some(silence))
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
