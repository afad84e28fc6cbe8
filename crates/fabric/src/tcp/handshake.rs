//! The handshake: two nodes prove that they belong to the same run. It does no I/O: it takes and returns flights of
//! bytes.
//!
//! | flight | from | contents |
//! |---|---|---|
//! | hello | initiator | who it is and whom it wants, in the clear; first Noise message |
//! | answer | responder | verdict and version, in the clear; second Noise message |
//! | confirmation | initiator | an empty transport message |
//! | welcome | responder | an empty transport message |
//!
//! Noise pattern NN with the run's secret as pre-shared key (psk0): without the secret nobody can make the first
//! message or read the second. The hello is the prologue, so a changed hello is noticed. The confirmation proves that
//! the initiator is there now: a recorded hello can be replayed, but nobody can confirm it. Without encryption the
//! same flights pass, without the Noise messages.

use super::frame::{Channel, TAG};
use gondwana_topology::NodeId;
use snow::{Builder, HandshakeState};

/// The version of everything that passes between nodes over TCP.
pub(super) const VERSION: u16 = 1;

const MAGIC: [u8; 8] = *b"GONDWANA";
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
const HELLO: usize = 34;
/// Bytes of each of the two Noise messages: a public key and a tag.
const NOISE: usize = 32 + TAG;
const VERDICT: usize = 4;
/// The number of the first frame after the handshake. The confirmation and the welcome have number 0.
pub(super) const FIRST_FRAME: u64 = 1;
/// Confirmation and welcome of a connection without encryption; as long as those with.
const UNPROTECTED: [u8; TAG] = *b"without-secrets.";

/// Who a node is, and in which run.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a> {
    pub node: NodeId,
    pub nodes: usize,
    /// Identifies the run.
    pub run: [u8; 16],
    /// The secret of the run; `None` for no protection.
    pub secret: Option<&'a [u8; 32]>,
}

/// Why a handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The bytes are not a flight of this protocol, or the sender does not know the secret.
    NotAuthentic,
    /// The responder's refusal; at the responder, the refusal to send.
    Refused(Refusal),
}

/// The property that does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The versions; the other side's.
    Version(u16),
    /// One side wants encryption, the other does not.
    Security,
    /// The run, the count of nodes, or the nodes' numbers.
    Run,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(theirs) => write!(f, "it speaks version {theirs} of the protocol, not {VERSION}"),
            Self::Security => write!(f, "only one of the two is told to encrypt"),
            Self::Run => write!(f, "it belongs to another run"),
        }
    }
}

/// What to do next.
pub(super) enum Step {
    /// Send these bytes and go on.
    Send(Vec<u8>),
    /// Go on: wait for more.
    Wait,
    /// Send these bytes; then the connection is made.
    Done(Vec<u8>, NodeId, Channel),
}

enum State {
    HelloAwaited,
    /// The hello was correct; the Noise message that follows it is awaited.
    MessageAwaited(Box<HandshakeState>),
    VerdictAwaited(Option<Box<HandshakeState>>),
    AnswerAwaited(Box<HandshakeState>),
    ConfirmationAwaited(Channel),
    WelcomeAwaited(Channel),
    Over,
}

/// One side of a handshake.
pub(super) struct Handshake<'a> {
    me: Identity<'a>,
    peer: NodeId,
    state: State,
}

impl<'a> Handshake<'a> {
    /// Begins a handshake with `peer`, and returns the hello to send.
    pub(super) fn initiate(me: Identity<'a>, peer: NodeId) -> (Self, Vec<u8>) {
        let mut flight = hello(me, me.node, peer).to_vec();
        let noise = me.secret.map(|secret| {
            let mut noise =
                builder(secret, &flight).build_initiator().expect("the pattern needs only the psk");
            flight.extend(next_message(&mut noise));
            Box::new(noise)
        });
        (Self { me, peer, state: State::VerdictAwaited(noise) }, flight)
    }

    /// Waits for a hello.
    pub(super) fn respond(me: Identity<'a>) -> Self {
        Self { me, peer: me.node, state: State::HelloAwaited }
    }

    /// How many bytes [`Handshake::advance`] needs next.
    pub(super) fn needs(&self) -> usize {
        match &self.state {
            State::HelloAwaited => HELLO,
            State::VerdictAwaited(_) => VERDICT,
            State::MessageAwaited(_) | State::AnswerAwaited(_) => NOISE,
            State::ConfirmationAwaited(_) | State::WelcomeAwaited(_) => TAG,
            State::Over => 0,
        }
    }

    /// True until the other side has answered.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.state, State::HelloAwaited | State::MessageAwaited(_) | State::VerdictAwaited(_))
    }

    /// Takes the next [`Handshake::needs`] bytes from the other side.
    ///
    /// # Errors
    /// If the connection must be closed. [`Failure::reply`] has the bytes to send before.
    pub(super) fn advance(&mut self, flight: &[u8]) -> Result<Step, Failure> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::HelloAwaited => self.hear_hello(flight),
            State::MessageAwaited(noise) => self.answer(*noise, flight),
            State::VerdictAwaited(noise) => {
                parse_verdict(flight)?;
                match noise {
                    Some(noise) => {
                        self.state = State::AnswerAwaited(noise);
                        Ok(Step::Wait)
                    }
                    None => Ok(self.confirm(Channel::Plain)),
                }
            }
            State::AnswerAwaited(mut noise) => {
                noise.read_message(flight, &mut []).map_err(|_| Failure::NotAuthentic)?;
                Ok(self.confirm(encrypted(*noise)))
            }
            State::ConfirmationAwaited(channel) => {
                check_token(&channel, flight)?;
                Ok(Step::Done(token(&channel), self.peer, channel))
            }
            State::WelcomeAwaited(channel) => {
                check_token(&channel, flight)?;
                Ok(Step::Done(Vec::new(), self.peer, channel))
            }
            State::Over => Err(Failure::NotAuthentic),
        }
    }

    fn hear_hello(&mut self, hello: &[u8]) -> Result<Step, Failure> {
        self.peer = check_hello(self.me, hello)?;
        match self.me.secret {
            Some(secret) => {
                let noise = builder(secret, hello).build_responder().expect("the pattern needs only the psk");
                self.state = State::MessageAwaited(Box::new(noise));
                Ok(Step::Wait)
            }
            None => {
                self.state = State::ConfirmationAwaited(Channel::Plain);
                Ok(Step::Send(verdict(None).to_vec()))
            }
        }
    }

    fn answer(&mut self, mut noise: HandshakeState, message: &[u8]) -> Result<Step, Failure> {
        noise.read_message(message, &mut []).map_err(|_| Failure::NotAuthentic)?;
        let mut answer = verdict(None).to_vec();
        answer.extend(next_message(&mut noise));
        self.state = State::ConfirmationAwaited(encrypted(noise));
        Ok(Step::Send(answer))
    }

    fn confirm(&mut self, channel: Channel) -> Step {
        let confirmation = token(&channel);
        self.state = State::WelcomeAwaited(channel);
        Step::Send(confirmation)
    }
}

impl Failure {
    /// The bytes that a responder sends before it closes the connection; none to a peer that does not speak the
    /// protocol.
    pub(super) fn reply(self) -> Vec<u8> {
        match self {
            Self::NotAuthentic => Vec::new(),
            Self::Refused(refusal) => verdict(Some(refusal)).to_vec(),
        }
    }
}

/// Magic, version, encryption, initiator, responder, count of nodes, run.
fn hello(me: Identity<'_>, from: NodeId, to: NodeId) -> [u8; HELLO] {
    let mut hello = [0; HELLO];
    hello[..8].copy_from_slice(&MAGIC);
    let nodes = u16::try_from(me.nodes).expect("up to MAX_NODES");
    let fields = [VERSION, u16::from(me.secret.is_some()), from.0, to.0, nodes];
    for (place, field) in hello[8..18].chunks_exact_mut(2).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    hello[18..].copy_from_slice(&me.run);
    hello
}

/// The sender of the hello, if it may connect.
fn check_hello(me: Identity<'_>, theirs: &[u8]) -> Result<NodeId, Failure> {
    let field = |index: usize| u16::from_le_bytes([theirs[8 + 2 * index], theirs[9 + 2 * index]]);
    if theirs.len() != HELLO || theirs[..8] != MAGIC {
        return Err(Failure::NotAuthentic);
    }
    if field(0) != VERSION {
        return Err(Failure::Refused(Refusal::Version(field(0))));
    }
    if field(1) != u16::from(me.secret.is_some()) {
        return Err(Failure::Refused(Refusal::Security));
    }
    let from = NodeId(field(2));
    // The higher number calls the lower, so that there is one connection between two nodes.
    let may_call = from > me.node && from.index() < me.nodes;
    if !may_call || theirs != hello(me, from, me.node) {
        return Err(Failure::Refused(Refusal::Run));
    }
    Ok(from)
}

/// Verdict and version.
fn verdict(refusal: Option<Refusal>) -> [u8; VERDICT] {
    let code: u16 = match refusal {
        None => 0,
        Some(Refusal::Version(_)) => 1,
        Some(Refusal::Security) => 2,
        Some(Refusal::Run) => 3,
    };
    let ([a, b], [c, d]) = (code.to_le_bytes(), VERSION.to_le_bytes());
    [a, b, c, d]
}

fn parse_verdict(flight: &[u8]) -> Result<(), Failure> {
    let [a, b, c, d] = *flight else { return Err(Failure::NotAuthentic) };
    match u16::from_le_bytes([a, b]) {
        0 => Ok(()),
        1 => Err(Failure::Refused(Refusal::Version(u16::from_le_bytes([c, d])))),
        2 => Err(Failure::Refused(Refusal::Security)),
        3 => Err(Failure::Refused(Refusal::Run)),
        _ => Err(Failure::NotAuthentic),
    }
}

fn builder<'b>(secret: &'b [u8; 32], hello: &'b [u8]) -> Builder<'b> {
    Builder::new(PATTERN.parse().expect("the pattern is one that the library knows"))
        .psk(0, secret)
        .and_then(|builder| builder.prologue(hello))
        .expect("psk and prologue are given once each")
}

fn next_message(noise: &mut HandshakeState) -> [u8; NOISE] {
    let mut message = [0; NOISE];
    let written = noise.write_message(&[], &mut message).expect("it is this side's turn");
    assert_eq!(written, NOISE);
    message
}

fn encrypted(noise: HandshakeState) -> Channel {
    let keys = noise.into_stateless_transport_mode().expect("both messages have passed");
    Channel::Encrypted(Box::new(keys))
}

/// The confirmation or the welcome.
fn token(channel: &Channel) -> Vec<u8> {
    match channel {
        Channel::Plain => UNPROTECTED.to_vec(),
        Channel::Encrypted(keys) => {
            let mut token = vec![0; TAG];
            let written = keys.write_message(FIRST_FRAME - 1, &[], &mut token);
            debug_assert_eq!(written, Ok(TAG));
            token
        }
    }
}

fn check_token(channel: &Channel, flight: &[u8]) -> Result<(), Failure> {
    let authentic = match channel {
        Channel::Plain => flight == UNPROTECTED,
        Channel::Encrypted(keys) => keys.read_message(FIRST_FRAME - 1, flight, &mut []) == Ok(0),
    };
    authentic.then_some(()).ok_or(Failure::NotAuthentic)
}
