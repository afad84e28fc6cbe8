//! The fabric between computers: one authenticated connection for each two nodes.

mod calls;
mod connection;
mod epoll;
mod frame;
pub mod fuzzing;
mod handshake;
mod mesh;
mod process_clock;
mod queue;
mod shake;
pub mod socket;
#[cfg(test)]
mod tests;

use crate::{
    ConnectError, Counters, Deliver, Event, Fabric, Gathering, LostReason, SendError, check_message,
};
use connection::{Connection, Receiver};
use epoll::{Alarm, Epoll, READABLE, WRITABLE};
use gondwana_locks::{lock, try_lock};
use gondwana_racing::RacingBytes;
use gondwana_topology::{MAX_NODES, NodeId};
pub use mesh::listen;
use process_clock::{ProcessClock, Silence};
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The most bytes that one poll takes from one connection before the next.
const BATCH: usize = 256 << 10;

/// Of the time between two calls of [`Fabric::look_after_peers`] at most this much counts: somewhat more than their
/// interval on an idle computer.
const LOOK: Duration = Duration::from_millis(300);

/// Tokens in the outer epoll.
const SOCKETS: usize = 0;
const ALARM: usize = 1;

/// The protection of the connections.
#[derive(Clone)]
pub enum Security {
    /// Authentication and encryption with the secret of the run.
    Encrypted([u8; 32]),
    /// None: for networks that no other host can reach. A host that reaches the port during the start, or changes
    /// packets, can take part in the run.
    Plain,
}

impl std::fmt::Debug for Security {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Encrypted(_) => "Encrypted",
            Self::Plain => "Plain",
        })
    }
}

/// The configuration of a node's connections.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// This node.
    pub node: NodeId,
    /// Where each node listens, by number; as many as there are nodes.
    pub peers: Vec<SocketAddr>,
    /// The unique number of the run, to recognise nodes of other runs.
    pub run: [u8; 16],
    /// The protection of the connections; the same on all nodes.
    pub security: Security,
    /// The timeout for the other nodes to connect. Time in which this process waits for a processor does not count.
    pub timeout: Duration,
    /// How long another computer may leave data or a probe (there is one after each idle second) without an
    /// acknowledgement before the peer counts as lost: a computer that lost its power closes no connection. A peer that
    /// is stopped acknowledges. Found by [`Fabric::look_after_peers`]; time in which this process waits for a processor
    /// does not count. Peers with this node's address cannot be silent in this way.
    pub silence: Duration,
}

/// One node's connections to all others.
///
/// A peer whose connection closes, for any reason, is reported as lost. So before a node ends, no peer may expect
/// messages from it, and [`Fabric::unsent`] must be 0.
pub struct TcpFabric {
    node: NodeId,
    /// By node; `None` for this node itself.
    connections: Vec<Option<Connection>>,
    /// Watches the sockets. Polling threads look here.
    sockets: Epoll,
    /// Watches the alarm and, while no thread polls, `sockets`. The service thread sleeps here.
    sleep: Epoll,
    alarm: Alarm,
    /// How many threads poll.
    pollers: Mutex<usize>,
    receiving: Mutex<Receiving>,
    events: Mutex<VecDeque<Event>>,
    /// See [`TcpConfig::silence`].
    silence: Duration,
    looks: Mutex<Looks>,
}

/// The results of [`Fabric::look_after_peers`].
struct Looks {
    time: ProcessClock,
    last: Instant,
    /// By node.
    silences: Vec<Silence>,
}

struct Receiving {
    /// By node.
    receivers: Vec<Receiver>,
    buffer: Box<[u8]>,
}

thread_local! {
    /// The fabric that this thread gathers messages for, as a number.
    static GATHERING: Cell<usize> = const { Cell::new(0) };
    /// It has gathered some.
    static HAS_GATHERED: Cell<bool> = const { Cell::new(false) };
}

impl TcpFabric {
    /// Connects this node to all others, and returns when all connections are made. The listener is closed then: a
    /// running node accepts no connections.
    ///
    /// Of two nodes the one with the higher number connects to the other. Connections of strangers are closed without
    /// effect.
    ///
    /// # Errors
    /// If not all nodes connect in time, if one refuses (another version, another run), or if a system call fails.
    pub fn connect(listener: TcpListener, config: &TcpConfig) -> Result<Self, ConnectError> {
        let nodes = config.peers.len();
        if !(2..=MAX_NODES).contains(&nodes) || config.node.index() >= nodes {
            return Err(ConnectError::Parameters { node: config.node, nodes });
        }
        let links = mesh::establish(listener, config)?;
        Self::new(config.node, nodes, links, config.silence)
            .map_err(|source| ConnectError::System { what: "epoll of the connections", source })
    }

    fn new(node: NodeId, nodes: usize, links: Vec<mesh::Link>, silence: Duration) -> std::io::Result<Self> {
        let (sockets, sleep, alarm) = (Epoll::new()?, Epoll::new()?, Alarm::new()?);
        sleep.add(&sockets, READABLE, SOCKETS)?;
        sleep.add(&alarm, READABLE, ALARM)?;
        let mut connections: Vec<_> = (0..nodes).map(|_| None).collect();
        for link in links {
            let index = link.peer.index();
            connections[index] = Some(Connection::new(link, &sockets)?);
        }
        let receivers = (0..nodes).map(|_| Receiver::new()).collect();
        let now = Instant::now();
        Ok(Self {
            node,
            connections,
            sockets,
            sleep,
            alarm,
            pollers: Mutex::new(0),
            receiving: Mutex::new(Receiving { receivers, buffer: vec![0; BATCH].into() }),
            events: Mutex::default(),
            silence,
            looks: Mutex::new(Looks {
                time: ProcessClock::new(now, LOOK),
                last: now,
                silences: vec![Silence::default(); nodes],
            }),
        })
    }

    fn peers(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().flatten()
    }

    /// Abandons a connection if `result` is an error.
    fn settle(&self, connection: &Connection, result: Result<(), LostReason>) {
        if let Err(reason) = result
            && connection.abandon(&self.sockets)
        {
            lock(&self.events).push_back(Event::Lost(connection.peer, reason));
            self.alarm.raise();
        }
    }

    fn watch_sockets(&self, interest: i32) {
        self.sleep.change(&self.sockets, interest, SOCKETS).expect("both descriptors are open and related");
    }

    /// A number unique among the present fabrics.
    fn key(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

impl Fabric for TcpFabric {
    fn node(&self) -> NodeId {
        self.node
    }

    fn nodes(&self) -> usize {
        self.connections.len()
    }

    fn send(&self, to: NodeId, head: &[u8], bulk: &[RacingBytes<'_>]) -> Result<(), SendError> {
        check_message((self.node, self.nodes()), to, head, bulk)?;
        let connection = self.connections[to.index()].as_ref().expect("there is a connection to every peer");
        if connection.is_lost() {
            return Err(SendError::Lost(to));
        }
        let later = GATHERING.get() == self.key();
        if later {
            HAS_GATHERED.set(true);
        }
        self.settle(connection, connection.send(&self.sockets, head, bulk, later));
        Ok(())
    }

    fn begin_gathering(&self) -> Gathering {
        Gathering { outer: GATHERING.replace(self.key()), has_gathered: HAS_GATHERED.get() }
    }

    fn end_gathering(&self, Gathering { outer, has_gathered }: Gathering) {
        GATHERING.set(outer);
        if outer != self.key() && HAS_GATHERED.replace(has_gathered) {
            for connection in self.peers() {
                self.settle(connection, connection.flush(&self.sockets));
            }
        }
    }

    fn poll(&self, deliver: &mut Deliver<'_>) -> usize {
        let Some(mut receiving) = try_lock(&self.receiving) else { return 0 };
        let Receiving { receivers, buffer } = &mut *receiving;
        // What `deliver` sends leaves together at the end.
        let gathering = self.begin_gathering();
        let mut total = 0;
        let mut serve = |index: usize, ready: i32| {
            let connection = self.connections[index].as_ref().filter(|one| !one.is_lost());
            let Some(connection) = connection else { return };
            if ready & WRITABLE != 0 {
                self.settle(connection, connection.flush(&self.sockets));
            }
            // All other events (data, end of stream, error) are handled by reading.
            if ready & !WRITABLE != 0 {
                let deliver = &mut |head: &[u8], bulk: &[u8]| deliver(connection.peer, head, bulk);
                let (count, result) = connection.receive(&mut receivers[index], buffer, deliver);
                total += count;
                self.settle(connection, result);
            }
        };
        let mut peers = self.peers();
        match (peers.next(), peers.next()) {
            // To read takes no longer than to ask whether there is something to read.
            (Some(only), None) => {
                let room = if only.waits_for_room() { WRITABLE } else { 0 };
                serve(only.peer.index(), READABLE | room);
            }
            _ => self.sockets.look(Some(Duration::ZERO)).for_each(|(index, ready)| serve(index, ready)),
        }
        self.end_gathering(gathering);
        total
    }

    fn wait(&self, timeout: Option<Duration>) {
        if self.sleep.look(timeout).any(|(token, _)| token == ALARM) {
            self.alarm.clear();
        }
    }

    fn interrupt(&self) {
        self.alarm.raise();
    }

    fn begin_polling(&self) {
        let mut pollers = lock(&self.pollers);
        *pollers += 1;
        if *pollers == 1 {
            self.watch_sockets(0);
        }
    }

    fn end_polling(&self) {
        let mut pollers = lock(&self.pollers);
        *pollers -= 1;
        if *pollers == 0 {
            // The kernel checks the sockets when the interest changes, so data that has arrived by then wakes the
            // service thread.
            self.watch_sockets(READABLE);
        }
    }

    fn is_polled(&self) -> bool {
        *lock(&self.pollers) > 0
    }

    fn look_after_peers(&self) {
        let now = Instant::now();
        let mut looks = lock(&self.looks);
        let Looks { time, last, silences } = &mut *looks;
        let since = now.saturating_duration_since(std::mem::replace(last, now));
        let passed = time.look(now);
        for connection in self.peers().filter(|peer| peer.elsewhere && !peer.is_lost()) {
            let Some((waits, ago)) = connection.acknowledged() else { continue };
            let silent = silences[connection.peer.index()].look(passed, waits, ago < since);
            if silent >= self.silence {
                let why = format!("nothing was acknowledged for {} ms", silent.as_millis());
                self.settle(connection, Err(LostReason::Silent(why)));
            }
        }
    }

    fn next_event(&self) -> Option<Event> {
        lock(&self.events).pop_front()
    }

    fn unsent(&self) -> usize {
        self.peers().map(Connection::unsent).sum()
    }

    fn counters(&self) -> Counters {
        Counters::sum(self.peers().map(|peer| &peer.sent), self.peers().map(|peer| &peer.received))
    }
}
