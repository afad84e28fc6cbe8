//! The description of its part in the run that a node process gets at its start.
//!
//! The description travels in a memfd, so that neither the command line nor the environment of the user's program
//! ever shows it. Only the number of that memfd is in the environment, and the node takes it out again.

use crate::placement::{Homes, ThreadGroup};
use gondwana_atomics::Synchronising;
use gondwana_coherence::{CommonAfter, Consistency, ProtocolInfo};
use gondwana_memory::Mechanism;
use gondwana_monitor::FilterText;
use gondwana_rset::ThreadPolicy;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// Name of the environment variable that holds the number of the memfd with the [`Boot`].
pub const BOOT_VARIABLE: &str = "GONDWANA_BOOT";

/// The version that launcher and node must have in common.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that a node process needs to know when it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Version of the launcher, see [`VERSION`].
    pub version: String,
    /// Identifies the run; the same on all nodes.
    pub run: u64,
    /// Number of this node.
    pub node: u16,
    /// How many nodes the run has.
    pub nodes: u16,
    /// How many processors this node may use.
    pub processors: u16,
    /// How the nodes talk to each other.
    pub fabric: FabricBoot,
    /// The name of the coherence protocol that runs.
    pub protocol: String,
    /// What it gives.
    pub consistency: Consistency,
    /// Whether the launcher has chosen it, from the code of the program: libraries that are loaded later may have atomic
    /// instructions that it has not seen.
    pub chosen: bool,
    /// Why that consistency was chosen, for people.
    pub reason: String,
    /// Atomic instructions of the program, in its file's numbering, each of which a lock makes one under release consistency.
    pub locked: Vec<u64>,
    /// Instructions with which threads synchronise, of which the node is to know.
    pub watched: Vec<Watch>,
    /// How faults are raised and resolved.
    pub mechanism: Mechanism,
    /// When a page becomes common; never if that is `None`.
    pub common_after: Option<CommonAfter>,
    /// Length of the span in bytes, a multiple of the page size.
    pub span: u64,
    /// How many processors each node counts as having where sets of processors are concerned; the same on all nodes.
    pub processors_each: u16,
    /// Where new threads go.
    pub threads: ThreadPolicy,
    /// Threads that go to the same node, whatever is said about the others.
    pub groups: Vec<ThreadGroup>,
    /// Where the homes of pages are.
    pub homes: Homes,
    /// Whether the node sends a [`Report::Stats`](crate::Report::Stats) at the end.
    pub stats: bool,
    /// Whether the node sends [`Report::Progress`](crate::Report::Progress) now and then.
    pub progress: bool,
    /// How the run is monitored; `None` if it is not.
    pub monitor: Option<Monitoring>,
    /// The node's end of the control channel.
    pub control_fd: RawFd,
    /// A file in memory for the contents of the node's pages. The launcher holds it too, until the run is over.
    pub frames_fd: RawFd,
    /// The file that the nodes of this computer have in common: [thread memory](gondwana_memory::ThreadMemory), and behind it common
    /// pages.
    pub common_fd: RawFd,
    /// The node's end of an [`Exchange`](crate::Exchange), if it is to hand over its descriptors.
    pub exchange_fd: Option<RawFd>,
    /// What each node prints reaches the launcher by a way of its own, through an agent: nothing keeps the order.
    pub outputs_apart: bool,
    /// The former values of the environment variables that the launcher has set, to be put back before the program
    /// reads them.
    pub hidden_env: Vec<(String, Option<String>)>,
}

/// Instructions of one file with which threads synchronise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The file, with all links followed; `None` for the program itself.
    pub file: Option<PathBuf>,
    /// The instructions.
    pub instructions: Vec<Synchronising>,
}

/// What the monitor of a node does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitoring {
    /// Look more closely at the data that crosses most, and less closely at the rest.
    pub auto: bool,
    /// What it counts besides.
    pub filters: Vec<FilterText>,
}

/// How the nodes talk to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FabricBoot {
    /// Rings in one shared memory segment.
    Shm {
        /// The segment.
        fd: RawFd,
    },
    /// TCP connections.
    Tcp {
        /// A bound and listening socket of this node.
        listener_fd: RawFd,
        /// Where each node listens, by node number; this node's own address included.
        peers: Vec<SocketAddr>,
        /// The secret of this run that authenticates and encrypts every connection; `None` only when the user
        /// has asked for bare connections.
        secret: Option<[u8; 32]>,
    },
}

/// Why a node could not read its [`Boot`].
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The variable does not hold the number of a memfd.
    #[error("{BOOT_VARIABLE} is not the number of a readable descriptor")]
    Descriptor,
    /// The memfd could not be read.
    #[error("reading the node's description: {0}")]
    Read(#[from] io::Error),
    /// The contents are not a description.
    #[error("the node's description is damaged: {0}")]
    Parse(#[from] serde_json::Error),
    /// The launcher is another version.
    #[error("the launcher is version {0}, the runtime library is version {VERSION}")]
    Version(String),
}

impl Boot {
    /// True if the node hands over its memory to the other nodes of its computer, and gets theirs.
    #[must_use]
    pub fn has_peers(&self) -> bool {
        self.is_one_sided() && self.mechanism == Mechanism::Userfaultfd
    }

    /// The protocol that runs, if there is one of its name.
    #[must_use]
    pub fn protocol(&self) -> Option<&'static ProtocolInfo> {
        gondwana_coherence::protocol(&self.protocol)
    }

    /// True if nodes of the run may read each other's memory, which they need not where all of it is common.
    #[must_use]
    pub fn is_one_sided(&self) -> bool {
        self.protocol().is_some_and(|protocol| protocol.one_sided)
            && matches!(self.fabric, FabricBoot::Shm { .. })
            && self.common_after != Some(CommonAfter::Touch)
    }

    /// Reads the description that the launcher has left, and closes its memfd. All descriptors named in it are
    /// marked close-on-exec, so that programs started by the program do not inherit them. The environment is left
    /// as it is: the caller restores [`Boot::hidden_env`], when no other thread reads the environment.
    ///
    /// `None` if the process was not started by the launcher.
    ///
    /// # Errors
    /// If there is something, but not a description made by the same version.
    pub fn from_env() -> Result<Option<Self>, BootError> {
        let Some(number) = std::env::var_os(BOOT_VARIABLE) else { return Ok(None) };
        let fd: RawFd = number.to_str().and_then(|text| text.parse().ok()).ok_or(BootError::Descriptor)?;
        // SAFETY: F_GETFD touches no memory.
        if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            return Err(BootError::Descriptor);
        }
        // SAFETY: the descriptor is open, and by the contract with the launcher nobody else owns it.
        let boot = Self::read(unsafe { OwnedFd::from_raw_fd(fd) })?;
        boot.close_on_exec()?;
        Ok(Some(boot))
    }

    /// Reads a description from the memfd that [`Boot::to_memfd`] has made.
    ///
    /// # Errors
    /// As for [`Boot::from_env`].
    pub fn read(memfd: OwnedFd) -> Result<Self, BootError> {
        let mut file = File::from(memfd);
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        // The version comes first: another version may well have other fields.
        let version = serde_json::from_str::<VersionOnly>(&text)?.version;
        if version != VERSION {
            return Err(BootError::Version(version));
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes the description into a fresh memfd, which is close-on-exec.
    ///
    /// # Errors
    /// Of the system.
    pub fn to_memfd(&self) -> io::Result<OwnedFd> {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"gondwana-boot".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(file.into())
    }

    fn close_on_exec(&self) -> io::Result<()> {
        let fabric = match self.fabric {
            FabricBoot::Shm { fd } => fd,
            FabricBoot::Tcp { listener_fd, .. } => listener_fd,
        };
        for fd in
            [self.control_fd, self.frames_fd, self.common_fd, fabric].into_iter().chain(self.exchange_fd)
        {
            // SAFETY: F_SETFD touches no memory.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct VersionOnly {
    version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot() -> Boot {
        Boot {
            version: VERSION.to_owned(),
            run: u64::MAX,
            node: 1,
            nodes: 2,
            processors: 1,
            fabric: FabricBoot::Tcp {
                listener_fd: 202,
                peers: vec!["127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap()],
                secret: Some([7; 32]),
            },
            protocol: "csm".to_owned(),
            consistency: Consistency::Rc,
            chosen: true,
            reason: "no inline atomic instruction".to_owned(),
            locked: vec![0x1234],
            watched: vec![Watch {
                file: Some("/usr/lib/libx.so".into()),
                instructions: vec![Synchronising { address: 0x1234, before: None }],
            }],
            mechanism: Mechanism::Userfaultfd,
            span: 1 << 38,
            processors_each: 1,
            threads: ThreadPolicy::RoundRobin,
            groups: vec![ThreadGroup { threads: vec![1, 3], node: None }],
            homes: Homes::default(),
            stats: true,
            progress: false,
            monitor: Some(Monitoring::default()),
            control_fd: 200,
            frames_fd: 203,
            common_fd: 204,
            common_after: None,
            exchange_fd: Some(205),
            outputs_apart: false,
            hidden_env: vec![
                ("LD_PRELOAD".to_owned(), None),
                ("LD_BIND_NOW".to_owned(), Some(String::new())),
            ],
        }
    }

    #[test]
    fn a_description_survives_its_memfd() {
        assert_eq!(Boot::read(boot().to_memfd().unwrap()).unwrap(), boot());
    }

    #[test]
    fn another_version_is_named() {
        let other = Boot { version: "0.0.0".to_owned(), ..boot() };
        let error = Boot::read(other.to_memfd().unwrap()).unwrap_err();
        assert!(matches!(&error, BootError::Version(version) if version == "0.0.0"), "{error}");
    }
}
