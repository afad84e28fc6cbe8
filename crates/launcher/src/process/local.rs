//! The nodes of a run that are processes of this computer.

use super::descriptors::{COUNT, Reserved};
use super::events::{End, Event, Nodes};
use super::exchange::Collection;
use super::lookers::Lookers;
use super::preload::preloaded;
use super::signals::Signals;
use super::spawn::{ProcessImage, Setup, spawn};
use super::stops::{Change, Stops};
use crate::stacks::look::LookRequest;
use gondwana_console::failure::Failure;
use gondwana_console::rlimit::explained;
use gondwana_control::{BOOT_VARIABLE, Boot, Control, Exchange, FabricBoot, MOMENT, News, Order, Report};
use gondwana_host::{Ended, OutOfMemory};
use gondwana_memory::{ThreadMemory, empty_frames};
use gondwana_recording::chunks;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Variables that the launcher sets for the dynamic loader, for the runtime library, and for OpenMP's own runtime: on each node that
/// would show settings that are not in force, and bind the node's first thread, and so all that it starts, to a processor.
const HIDDEN: [&str; 6] =
    ["LD_PRELOAD", "LD_BIND_NOW", TUNABLES, BOOT_VARIABLE, "OMP_DISPLAY_ENV", "OMP_PROC_BIND"];

/// Settings of the C library.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// The setting that leaves room beside the thread-local variables of each thread, where those of libraries go that are opened later;
/// and how many bytes.
const ROOM: &str = "glibc.rtld.optional_static_tls=524288";

struct NodeProcess {
    number: u16,
    pid: libc::pid_t,
    ended: bool,
    /// True once this process has sent it SIGKILL.
    killed: bool,
    control: Option<Control>,
    /// The contents of its pages.
    frames: Option<OwnedFd>,
}

/// Processes of this computer, each with its control channel.
pub struct LocalNodes {
    signals: Signals,
    reserved: Reserved,
    /// The file that all of them have in common, once there is one.
    common: Option<OwnedFd>,
    nodes: Vec<NodeProcess>,
    ready: VecDeque<Event>,
    watched: Option<RawFd>,
    /// The exchange of descriptors at the start.
    handed: Collection,
    stops: Stops,
    /// Threads that look at nodes; they end by themselves.
    lookers: Lookers,
    /// The buffer for reports.
    buffer: Vec<u8>,
    /// Detects processes that the kernel killed for memory.
    memory: Ended,
}

/// Where the standard streams of a node lead; `None` is the launcher's own.
pub type Streams = [Option<OwnedFd>; 3];

impl LocalNodes {
    /// No node yet. The calling thread must live as long as the nodes are to live.
    pub fn new(signals: Signals) -> Result<Self, Failure> {
        let reserved = Reserved::new()
            .map_err(|error| Failure::system("reserving descriptors for the nodes", &error))?;
        let (nodes, ready, buffer) = (vec![], VecDeque::new(), vec![]);
        let (handed, stops, memory) = (Collection::default(), Stops::default(), Ended::watch());
        let lookers = Lookers::new().map_err(|error| Failure::system("looking at nodes", &error))?;
        Ok(Self {
            signals,
            reserved,
            common: None,
            nodes,
            ready,
            watched: None,
            handed,
            stops,
            lookers,
            buffer,
            memory,
        })
    }

    /// Starts the program without the runtime library: one node needs no coherence.
    pub fn start_plain(&mut self, image: &ProcessImage) -> Result<(), Failure> {
        let setup = Setup {
            mask: self.signals.mask_before(),
            inherited: None,
            streams: [None, None, None],
            apart: false,
        };
        let pid = spawn(image, &setup).map_err(|error| cannot_start(0, &explained(&error)))?;
        self.nodes.push(NodeProcess {
            number: 0,
            pid,
            ended: false,
            killed: false,
            control: None,
            frames: None,
        });
        Ok(())
    }

    /// Starts a node with the runtime library. The node finds `fabric` under the descriptor in [`Boot::fabric`]; this
    /// function fills in the descriptor numbers of `boot`.
    pub fn start(
        &mut self,
        image: &ProcessImage,
        library: &Path,
        mut boot: Boot,
        fabric: &OwnedFd,
        streams: Streams,
    ) -> Result<(), Failure> {
        let number = boot.node;
        let failed = |error: io::Error| cannot_start(number, &explained(&error));
        let variables = self.variables(image, library)?;
        boot.control_fd = self.reserved.control();
        boot.frames_fd = self.reserved.frames();
        boot.common_fd = self.reserved.common();
        boot.hidden_env = hidden(image)?;
        match &mut boot.fabric {
            FabricBoot::Shm { fd } | FabricBoot::Tcp { listener_fd: fd, .. } => *fd = self.reserved.fabric(),
        }
        let (ours, theirs) = Control::pair().map_err(failed)?;
        let exchange = boot.has_peers().then(Exchange::pair).transpose().map_err(failed)?;
        boot.exchange_fd = exchange.is_some().then(|| self.reserved.exchange());
        let memfd = boot.to_memfd().map_err(failed)?;
        let frames = empty_frames().map_err(|error| cannot_start(number, &error))?;
        let common = match &mut self.common {
            Some(common) => common,
            none => none.insert(
                ThreadMemory::file(boot.nodes, boot.span).map_err(|error| cannot_start(number, &error))?,
            ),
        };
        let sources: [Option<RawFd>; COUNT] = [
            Some(theirs.as_raw_fd()),
            Some(memfd.as_raw_fd()),
            Some(fabric.as_raw_fd()),
            Some(frames.as_raw_fd()),
            Some(common.as_raw_fd()),
            exchange.as_ref().map(|(_, theirs)| theirs.as_raw_fd()),
        ];
        let setup = Setup {
            mask: self.signals.mask_before(),
            inherited: Some((&self.reserved, sources)),
            streams,
            apart: number != 0,
        };
        let pid = spawn(&image.with_variables(&variables), &setup).map_err(failed)?;
        let (control, frames) = (Some(ours), Some(frames));
        self.nodes.push(NodeProcess { number, pid, ended: false, killed: false, control, frames });
        if let Some((ours, _)) = exchange {
            self.handed.add(number, ours);
        }
        self.stops.add(number, pid.unsigned_abs());
        self.ready.push_back(Event::Started(number, pid.unsigned_abs()));
        Ok(())
    }

    fn variables(
        &self,
        image: &ProcessImage,
        library: &Path,
    ) -> Result<[(&'static str, OsString); HIDDEN.len()], Failure> {
        let preload = preloaded(library, image.variable(HIDDEN[0]))?;
        let boot = self.reserved.boot().to_string();
        let [loader, bind, tunables, runtime, display, place] = HIDDEN;
        // The last one of equal settings counts.
        let mut settings = image.variable(tunables).cloned().unwrap_or_default();
        if !settings.is_empty() {
            settings.push(":");
        }
        settings.push(ROOM);
        let no = OsString::from("FALSE");
        Ok([
            (loader, preload),
            (bind, "1".into()),
            (tunables, settings),
            (runtime, boot.into()),
            (display, no.clone()),
            (place, no),
        ])
    }

    /// Takes the reports that have arrived from one node.
    fn drain(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        while let Some(control) = &node.control {
            match control.receive_news(false, &mut self.buffer) {
                Ok(Some(News::Report(report))) => self.ready.push_back(Event::Report(node.number, report)),
                Ok(Some(News::Chunks(together))) => {
                    let event = |chunk: &[u8]| Event::Chunk(node.number, chunk.to_vec());
                    self.ready.extend(chunks(together).map(event));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => {
                    node.control = None;
                    self.ready.push_back(Event::Report(node.number, Report::Silent));
                }
            }
        }
    }

    /// Finds out which processes have ended.
    fn reap(&mut self) {
        for index in 0..self.nodes.len() {
            if self.nodes[index].ended {
                continue;
            }
            // Stops for a thread that looks at the node must be left to that thread.
            if !has_ended(self.nodes[index].pid) {
                continue;
            }
            let mut status = 0;
            // SAFETY: the kernel writes one status.
            let result = unsafe { libc::waitpid(self.nodes[index].pid, &raw mut status, libc::WNOHANG) };
            if result != self.nodes[index].pid {
                continue;
            }
            // First takes all reports: the end of one node may be the consequence of another's report.
            for other in 0..self.nodes.len() {
                self.drain(other);
            }
            let node = &mut self.nodes[index];
            node.ended = true;
            node.control = None;
            let end = if libc::WIFSIGNALED(status) {
                End::Signalled(libc::WTERMSIG(status))
            } else {
                End::Exited(libc::WEXITSTATUS(status))
            };
            if end == End::Signalled(libc::SIGKILL)
                && !node.killed
                && let Some(whose) = self.memory.found()
            {
                self.ready.push_back(Event::Report(node.number, Report::Starved { why: why_starved(whose) }));
            }
            self.ready.push_back(Event::Ended(node.number, end));
            self.handed.ended(self.nodes[index].number);
            self.stops.remove(self.nodes[index].number);
        }
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), Failure> {
        let poll = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let with_control: Vec<usize> =
            (0..self.nodes.len()).filter(|&index| self.nodes[index].control.is_some()).collect();
        // The kernel skips negative numbers.
        let mut fds = vec![
            poll(self.signals.as_raw_fd()),
            poll(self.watched.unwrap_or(-1)),
            poll(self.lookers.as_raw_fd()),
        ];
        let first = fds.len();
        fds.extend(
            with_control
                .iter()
                .map(|&index| poll(self.nodes[index].control.as_ref().map_or(-1, Control::as_raw_fd))),
        );
        let exchange = fds.len();
        fds.extend(self.handed.channels().map(poll));
        let soon = self.handed.is_held_up().then(|| Instant::now() + MOMENT);
        let timeout = [deadline, soon, self.stops.due(Instant::now())].into_iter().flatten().min().map_or(
            -1,
            |deadline| {
                let left = deadline.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000);
                i32::try_from(left).unwrap_or(i32::MAX)
            },
        );
        // SAFETY: the kernel reads and writes the array given.
        if unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(Failure::system("waiting for the nodes", &error));
            }
            return Ok(());
        }
        if fds[1].revents != 0 {
            self.ready.push_back(Event::Watched);
        }
        if fds[2].revents != 0 {
            self.ready.extend(self.lookers.take());
        }
        if self.handed.is_held_up() || fds[exchange..].iter().any(|fd| fd.revents != 0) {
            self.handed.go_on();
        }
        for (fd, index) in fds[first..exchange].iter().zip(with_control) {
            if fd.revents != 0 {
                self.drain(index);
            }
        }
        let mut child = false;
        while let Some(arrived) = self.signals.read() {
            if arrived.signal == libc::SIGCHLD {
                child = true;
            } else {
                let event = Event::Signal { signal: arrived.signal, from_terminal: arrived.from_kernel };
                self.ready.push_back(event);
            }
        }
        if child {
            self.reap();
        }
        self.ready.extend(self.stops.look(Instant::now()).into_iter().map(|change| match change {
            Change::Stopped(stop) => Event::Stopped(stop, None),
            Change::Continued(node) => Event::Continued(node),
        }));
        Ok(())
    }
}

impl Nodes for LocalNodes {
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(None);
            }
            self.wait(deadline)?;
        }
    }

    fn order(&mut self, node: u16, order: &Order) {
        let nodes = self.nodes.iter().filter(|candidate| candidate.number == node);
        for control in nodes.filter_map(|node| node.control.as_ref()) {
            // An ended node is detected elsewhere. A stopped node whose buffer is full of orders is not waited for.
            let _ = control.send_now(order);
        }
    }

    fn watch(&mut self, fd: RawFd) {
        self.watched = Some(fd);
    }

    fn look(&mut self, request: &LookRequest) {
        let wanted = self.nodes.iter().filter(|node| !node.ended && request.nodes.contains(&node.number));
        let nodes = wanted.map(|node| (node.number, node.pid.unsigned_abs())).collect();
        self.lookers.look(request.clone(), nodes);
    }

    fn signal(&mut self, node: u16, signal: i32) {
        self.stops.signalled(node, signal);
        for node in self.nodes.iter_mut().filter(|candidate| candidate.number == node && !candidate.ended) {
            node.killed |= signal == libc::SIGKILL;
            // SAFETY: kill touches no memory; the process has not been waited for, so the number is still its own.
            unsafe { libc::kill(node.pid, signal) };
        }
    }

    fn holds_back(&mut self, node: u16, signal: i32) -> bool {
        let Some(node) = self.nodes.iter().find(|candidate| candidate.number == node && !candidate.ended)
        else {
            return false;
        };
        let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid)).unwrap_or_default();
        let holds = |field: &str| {
            let text = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
            u64::from_str_radix(text.trim(), 16).is_ok_and(|set| set >> (signal - 1) & 1 == 1)
        };
        holds("ShdPnd:") && holds("SigBlk:")
    }

    fn kill(&mut self) {
        for number in self.nodes.iter().map(|node| node.number).collect::<Vec<_>>() {
            self.signal(number, libc::SIGKILL);
        }
    }
}

impl Drop for LocalNodes {
    /// The kernel takes long to free the memory of nodes. Otherwise the process that ends last would do it for all
    /// nodes, because each maps the memory of the others.
    fn drop(&mut self) {
        self.kill();
        let frames: Vec<_> = self.nodes.iter_mut().filter_map(|node| node.frames.take()).collect();
        thread::scope(|scope| {
            for frames in frames.into_iter().filter(is_large) {
                // If there is no thread, it is dropped here.
                let _ = thread::Builder::new().spawn_scoped(scope, || drop(frames));
            }
        });
    }
}

/// True if a child has ended, which is left to be waited for.
fn has_ended(child: libc::pid_t) -> bool {
    // SAFETY: plain memory, for which zero is valid; the kernel writes one description.
    let (result, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        (libc::waitid(libc::P_PID, child.unsigned_abs(), &raw mut info, options), info)
    };
    let ends = [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED];
    result == 0 && info.si_signo == libc::SIGCHLD && ends.contains(&info.si_code)
}

/// True if a file in memory is so large that another thread should free it.
fn is_large(frames: &OwnedFd) -> bool {
    const LARGE: u64 = 4 << 20;
    const BLOCK: u64 = 512;
    let metadata = frames.try_clone().and_then(|frames| File::from(frames).metadata());
    metadata.is_ok_and(|metadata| metadata.blocks() * BLOCK >= LARGE)
}

/// Which memory limit made the kernel kill a node, and what to do.
fn why_starved(whose: OutOfMemory) -> String {
    const MIB: u64 = 1 << 20;
    match whose {
        OutOfMemory::Group(Some(limit)) => format!(
            "the control group's limit of {} MiB of memory, for all nodes together, was reached: raise it, or run fewer nodes",
            limit.0 / MIB
        ),
        OutOfMemory::Group(None) => {
            "the memory limit of the control group was reached: raise it, or run fewer nodes".to_owned()
        }
        OutOfMemory::Computer => {
            "the computer had no memory left: run fewer nodes, or on more computers (--hosts)".to_owned()
        }
    }
}

/// The present values of the variables that the launcher sets.
fn hidden(image: &ProcessImage) -> Result<Vec<(String, Option<String>)>, Failure> {
    HIDDEN
        .iter()
        .map(|name| {
            let value = image.variable(name).map(|value| {
                value.to_str().map(str::to_owned).ok_or_else(|| {
                    Failure::cannot(format!("the environment variable {name} is not UTF-8 text: unset it"))
                })
            });
            Ok(((*name).to_owned(), value.transpose()?))
        })
        .collect()
}

fn cannot_start(node: u16, error: &dyn Display) -> Failure {
    Failure::cannot(format!("the process of node {node} cannot be started: {error}"))
}
