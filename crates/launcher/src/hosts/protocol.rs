//! The protocol between launcher and agent.
//!
//! Both directions are streams of frames: a length of four bytes (little endian), a byte for the kind, and the
//! contents. Before its first frame the agent sends [`GREETING`]: the launcher skips what a login shell may have
//! printed before.

use crate::capabilities::Capabilities;
use crate::objects::MappedObject;
use crate::process::events::{End, Stop};
use crate::stacks::look::{LookRequest, LookResult};
use gondwana_control::{Boot, Order, Report};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The first bytes of the agent.
pub const GREETING: &[u8] = b"\x01gondwana agent\n";

/// The most that may come before the greeting, in bytes.
const MOST_NOISE: usize = 1 << 20;

/// The longest frame, in bytes. Arguments and environment of a program can be long.
const MAX_FRAME: usize = 64 << 20;

/// The most bytes of a stream of the program in one frame.
pub const CHUNK: usize = 64 << 10;

/// The credit of each output of each node: so many bytes may be under way or wait for the reader. So an output that
/// is not read delays nothing else, and the program writes no further ahead than into a large pipe.
pub const WINDOW: usize = 4 * CHUNK;

/// An output of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

impl Stream {
    /// Both, in the order of [`Stream::index`].
    pub const ALL: [Self; 2] = [Self::Output, Self::Errors];

    /// 0 or 1.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name that the user knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Output => "standard output",
            Self::Errors => "standard error",
        }
    }
}

/// From the launcher to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AgentCommand {
    /// The first message: the program.
    Prepare(Prepare),
    /// The first message of `gondwana doctor`: examine the host.
    Examine(Examine),
    /// After [`AgentCommand::Examine`]: say the time.
    Clock,
    /// After [`AgentCommand::Examine`]: connect to these addresses, where other hosts listen.
    Reach(Vec<SocketAddr>),
    /// Start these nodes, in the order of the addresses reported.
    Start(Vec<Boot>),
    /// Send a signal to the process of a node.
    Signal {
        /// The node.
        node: u16,
        /// Number of the signal.
        signal: i32,
    },
    /// Send an order to a node.
    Order {
        /// The node.
        node: u16,
        /// What.
        order: Order,
    },
    /// Look at the stacks of nodes there.
    Look(LookRequest),
    /// End all nodes at once.
    Kill,
    /// There is no more standard input.
    InputEnd,
    /// So many bytes of an output of a node have been written; the credit is returned.
    Taken {
        /// The node.
        node: u16,
        /// Which output.
        stream: Stream,
        /// How many.
        bytes: usize,
    },
    /// This output cannot be written any more; the program's next write must fail, as natively.
    Close(Stream),
}

/// The program and its environment for a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// The launcher's version.
    pub version: String,
    /// The program's path, absolute.
    pub path: Vec<u8>,
    /// Its arguments, including its name.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its working directory.
    pub folder: Vec<u8>,
    /// How many nodes this host gets.
    pub nodes: usize,
    /// The user's name of this host.
    pub host: String,
    /// The address to listen at, if the user has given one.
    pub address: Option<IpAddr>,
    /// True if all nodes are on one computer, so that the loopback interface suffices.
    pub loopback: bool,
    /// The requested span, in bytes.
    pub span: Option<u64>,
}

/// What `gondwana doctor` wants to know of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Examine {
    /// The version of the command.
    pub version: String,
    /// The program whose libraries are compared, by its absolute path; without one the host's own `gondwana` is taken.
    pub path: Option<Vec<u8>>,
    /// The environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// The working directory, if a program is named.
    pub folder: Vec<u8>,
    /// The user's name of this host.
    pub host: String,
    /// The address to listen at, if the user has given one.
    pub address: Option<IpAddr>,
    /// True if all hosts are this computer.
    pub loopback: bool,
}

/// What a host has for runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostFacts {
    /// The release of its kernel.
    pub kernel: String,
    /// Whether userfaultfd works, or why not.
    pub userfaultfd: Result<(), String>,
    /// Whether `PAGEMAP_SCAN` works, or why not.
    pub pagemap_scan: Result<(), String>,
    /// Whether memory files can be made, or why not.
    pub memory_files: Result<(), String>,
    /// Whether address space randomisation can be turned off, or why not.
    pub fixed_addresses: Result<(), String>,
    /// The longest span that fits, in bytes, or why none does.
    pub span: Result<u64, String>,
    /// The limit of stacks in bytes; `u64::MAX` for none.
    pub stack_limit: u64,
    /// Digest of the runtime library, or why there is none.
    pub library: Result<String, String>,
    /// What the loader maps when the program starts, the program first, or why that is unknown.
    pub objects: Result<Vec<MappedObject>, String>,
    /// Where it listens for the other hosts, or why it does not.
    pub listens: Result<SocketAddr, String>,
}

/// From an agent to the launcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AgentAnswer {
    /// To [`AgentCommand::Examine`].
    Examined(Box<HostFacts>),
    /// To [`AgentCommand::Clock`]: microseconds since 1970.
    Clock(u64),
    /// To [`AgentCommand::Reach`]: for each address why it cannot be reached; `None` if it can.
    Reached(Vec<Option<String>>),
    /// To [`AgentCommand::Prepare`]: all is well.
    Ready(Box<Ready>),
    /// The check failed; the agent ends.
    Failed(String),
    /// A node has got a process, with this number there.
    Started(u16, u32),
    /// A node has reported something.
    Report(u16, Report),
    /// A node has ended. Its output has been sent as far as there was credit.
    Ended(u16, End),
    /// All the output of a node that has ended has been sent.
    Written(u16),
    /// The process of a node does not run.
    Stopped(Stop),
    /// Stacks have been read for the request with this number; their names follow.
    Unwound(u64),
    /// The stacks.
    Looked(LookResult),
    /// A stopped node runs again.
    Continued(u16),
    /// Node 0 has taken all the standard input that was sent.
    WantInput,
}

/// An agent's report about its host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Digest of the program.
    pub program: String,
    /// Digest of the runtime library.
    pub library: String,
    /// What the loader maps there when the program starts.
    pub objects: Vec<MappedObject>,
    /// What a run can have there.
    pub can: Capabilities,
    /// Where its nodes listen.
    pub addresses: Vec<SocketAddr>,
}

/// The version alone, readable in all versions.
#[derive(Deserialize)]
pub struct VersionOnly {
    /// The launcher's version.
    pub version: String,
}

/// One frame: a message, or bytes of a stream of the program.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A [`AgentCommand`] or an [`AgentAnswer`], as JSON.
    Message(Vec<u8>),
    /// Output of a node.
    Output(u16, Stream, Vec<u8>),
    /// Standard input of node 0.
    Input(Vec<u8>),
    /// A chunk of the recording, of this node.
    Chunk(u16, Vec<u8>),
}

impl Frame {
    /// A frame with a message.
    pub fn message(message: &impl Serialize) -> io::Result<Self> {
        Ok(Self::Message(serde_json::to_vec(message)?))
    }

    /// Writes the frame and flushes.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, node, contents) = match self {
            Self::Message(contents) => (0u8, None, contents),
            Self::Output(node, Stream::Output, contents) => (1, Some(node.to_le_bytes()), contents),
            Self::Output(node, Stream::Errors, contents) => (2, Some(node.to_le_bytes()), contents),
            Self::Input(contents) => (3, None, contents),
            Self::Chunk(node, contents) => (4, Some(node.to_le_bytes()), contents),
        };
        let node = node.as_ref().map_or(&[][..], |node| &node[..]);
        let length =
            u32::try_from(node.len() + contents.len()).ok().filter(|&length| length as usize <= MAX_FRAME);
        let length = length.ok_or_else(|| io::Error::other("arguments and environment are too long"))?;
        let mut bytes = Vec::with_capacity(contents.len() + 7);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.push(kind);
        bytes.extend_from_slice(node);
        bytes.extend_from_slice(contents);
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Reads a frame; `None` at the end of the stream.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; 5];
        let mut have = 0;
        while have < header.len() {
            match from.read(&mut header[have..]) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => have += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        if length > MAX_FRAME {
            return Err(io::Error::other("a frame is too long"));
        }
        // Read piece by piece: the length must not be trusted for an allocation.
        let mut contents = vec![];
        if from.take(length as u64).read_to_end(&mut contents)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let of_node = |mut contents: Vec<u8>| {
            let rest = contents.split_off(2);
            (u16::from_le_bytes([contents[0], contents[1]]), rest)
        };
        Ok(Some(match header[4] {
            0 => Self::Message(contents),
            kind @ (1 | 2) if length >= 2 => {
                let (node, bytes) = of_node(contents);
                Self::Output(node, Stream::ALL[usize::from(kind) - 1], bytes)
            }
            3 => Self::Input(contents),
            4 if length >= 2 => {
                let (node, chunk) = of_node(contents);
                Self::Chunk(node, chunk)
            }
            _ => return Err(io::Error::other("a frame of unknown kind")),
        }))
    }
}

/// Reads the message of a frame.
pub fn parse<M: DeserializeOwned>(contents: &[u8]) -> io::Result<M> {
    Ok(serde_json::from_slice(contents)?)
}

/// Skips everything up to and including the greeting; false if the stream ends without it.
pub fn skip_to_greeting(from: &mut impl Read) -> io::Result<bool> {
    let mut matched = 0;
    let mut byte = [0];
    for _ in 0..MOST_NOISE {
        // One at a time, so that nothing behind the greeting is lost.
        match from.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // The first byte of the greeting occurs in it only once, so a mismatch can only be a new start.
        matched =
            if byte[0] == GREETING[matched] { matched + 1 } else { usize::from(byte[0] == GREETING[0]) };
        if matched == GREETING.len() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A digest that differs when files do.
pub fn digest(contents: &[u8]) -> String {
    hexadecimal(&Sha256::digest(contents))
}

/// Two digits for each byte.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a string of the system.
pub fn from_os(text: &OsStr) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// The string of the system with these bytes.
pub fn to_os(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_way() {
        let frames = [
            Frame::message(&AgentAnswer::WantInput).unwrap(),
            Frame::Output(258, Stream::Output, vec![0, 255, 10]),
            Frame::Output(0, Stream::Errors, vec![]),
            Frame::Input(vec![7; 100_000]),
            Frame::Chunk(258, vec![1, 2, 3]),
            Frame::Chunk(0, vec![]),
        ];
        let mut bytes = vec![];
        for frame in &frames {
            frame.write(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        for frame in frames {
            assert_eq!(Frame::read(&mut rest).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut rest).unwrap(), None);
    }

    #[test]
    fn damaged_frames_are_errors() {
        for bytes in [
            &[1, 0][..],
            &[2, 0, 0, 0, 0, 1],
            &[0, 0, 0, 0, 9],
            &[255, 255, 255, 255, 0],
            &[1, 0, 0, 0, 4, 0],
            &[1, 0, 0, 0, 1, 0],
            &[0, 0, 0, 0, 2],
        ] {
            assert!(Frame::read(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn whatever_a_login_prints_is_skipped() {
        let mut stream = b"Welcome!\n\x01gon\x01gondwana agent\nrest".as_slice();
        assert!(skip_to_greeting(&mut stream).unwrap());
        assert_eq!(stream, b"rest");
        assert!(!skip_to_greeting(&mut b"no such command".as_slice()).unwrap());
    }

    #[test]
    fn digests_tell_files_apart() {
        assert_eq!(digest(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_ne!(digest(b"a"), digest(b"b"));
    }
}
