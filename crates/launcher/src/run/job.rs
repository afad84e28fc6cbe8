//! A run with checked options: the boot descriptions of its nodes, and the answer to queries.

use super::monitored::Monitored;
use super::options::{Fabric, RunOptions};
use super::policies::Policies;
use super::recording_writer::RecordingWriter;
use super::supervise::{Outcome, Supervisor};
use crate::capabilities::{self, Capabilities, mechanism_name, say_degraded};
use crate::limits;
use crate::probes;
use crate::process::descriptors::null;
use crate::process::events::Nodes;
use crate::process::local::LocalNodes;
use crate::process::signals::Signals;
use crate::process::spawn::ProcessImage;
use crate::progress_line::ProgressLine;
use crate::random::random;
use crate::run_registry::answer::{RegistryService, RunRegistry};
use crate::run_registry::{Running, RunningNode};
use gondwana_console::failure::Failure;
use gondwana_console::output::tell;
use gondwana_console::rlimit::explained;
use gondwana_control::{Boot, CommonAfter, FabricBoot, Monitoring, ProtocolInfo, VERSION, Watch};
use gondwana_fabric::{DEFAULT_RING_BYTES, SegmentError, ShmSegment};
use gondwana_page::PAGE_BITS;
use gondwana_recording::RunRecord;
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run whose options have been checked.
pub struct Job<'a> {
    /// The user's options.
    pub options: &'a RunOptions,
    /// Distinguishes this run from others.
    pub run: u64,
    /// How many nodes.
    pub nodes: u16,
    /// How they talk.
    pub fabric: Fabric,
    /// The protocol that keeps memory coherent.
    pub protocol: &'static ProtocolInfo,
    /// Atomic instructions that are executed under a lock.
    pub locked: Vec<u64>,
    /// Instructions with which threads synchronise.
    pub watched: Vec<Watch>,
    /// Why its consistency.
    pub reason: String,
    /// When pages become common.
    pub common_after: Option<CommonAfter>,
    /// Where threads and pages go.
    pub policies: Policies,
    /// The program's file.
    pub path: &'a Path,
    /// What to record.
    pub monitoring: Option<Monitoring>,
    /// Where the recording goes, until the nodes are followed.
    pub writer: Cell<Option<RecordingWriter>>,
}

impl Job<'_> {
    /// Runs the native program as a child, to measure its time.
    pub fn alone(&self, image: &ProcessImage) -> Result<Outcome, Failure> {
        let mut machine = LocalNodes::new(Signals::new(true)?)?;
        machine.start_plain(image)?;
        let mut outcome = self.supervise(&mut machine, ProgressLine::hidden(), None)?;
        outcome.stats = vec![Some(serde_json::json!({}))];
        Ok(outcome)
    }

    /// All nodes on this computer.
    pub fn here(&self, image: &ProcessImage) -> Result<(Outcome, &'static str), Failure> {
        let nodes = usize::from(self.nodes);
        let messages = match self.fabric {
            Fabric::Shm => ShmSegment::bytes(nodes, DEFAULT_RING_BYTES),
            Fabric::Tcp => 0,
        };
        let can = capabilities::find(self.options.span()?, limits::beside_span(nodes, messages))?;
        if let Some(why) = &can.degraded {
            say_degraded("", why);
        }
        let live = ProgressLine::new(self.nodes);
        let mut machine = LocalNodes::new(Signals::new(true)?)?;
        let mut service = RegistryService::open();
        for (node, (fabric, fd)) in (0..).zip(self.fabrics()?) {
            let boot = self.boot(node, fabric, &can, live.is_shown())?;
            let streams = [(node > 0).then(null).transpose()?, None, None];
            machine.start(image, &can.library, boot, &fd, streams)?;
        }
        let registry = service.serve(self.running(can.span, &[]));
        Ok((self.supervise(&mut machine, live, Some(registry))?, mechanism_name(can.mechanism)))
    }

    /// The contents of each node's fabric descriptor.
    fn fabrics(&self) -> Result<Vec<(FabricBoot, OwnedFd)>, Failure> {
        match self.fabric {
            Fabric::Shm => {
                let segment = ShmSegment::create(usize::from(self.nodes), DEFAULT_RING_BYTES)
                    .map_err(|error| match error {
                        SegmentError::System { what, source } => {
                            format!("{what}: {}", explained(&source))
                        }
                        error => error.to_string(),
                    })
                    .map_err(|why| Failure::cannot(format!("memory for messages: {why}")))?;
                let copy = || segment.try_clone().map_err(|error| Failure::system("sharing memory", &error));
                (0..self.nodes).map(|_| Ok((FabricBoot::Shm { fd: -1 }, copy()?))).collect()
            }
            Fabric::Tcp => {
                let failed = |error| Failure::system("listening on the loopback interface", &error);
                let listeners = (0..self.nodes)
                    .map(|_| {
                        gondwana_fabric::listen((Ipv4Addr::LOCALHOST, 0).into(), usize::from(self.nodes))
                    })
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(failed)?;
                let peers: Vec<SocketAddr> = listeners
                    .iter()
                    .map(TcpListener::local_addr)
                    .collect::<Result<_, _>>()
                    .map_err(failed)?;
                let secret = self.secret()?;
                let boot = |listener: TcpListener| {
                    (FabricBoot::Tcp { listener_fd: -1, peers: peers.clone(), secret }, listener.into())
                };
                Ok(listeners.into_iter().map(boot).collect())
            }
        }
    }

    /// The secret of the run, unless the user does without.
    pub fn secret(&self) -> Result<Option<[u8; 32]>, Failure> {
        if self.options.no_encryption { Ok(None) } else { Ok(Some(random()?)) }
    }

    /// The boot description of a node, without descriptor numbers.
    pub fn boot(
        &self,
        node: u16,
        fabric: FabricBoot,
        can: &Capabilities,
        progress: bool,
    ) -> Result<Boot, Failure> {
        let nodes_there = usize::from(self.nodes).div_ceil(self.options.hosts.len().max(1));
        let share = probes::share(can.processors, nodes_there);
        Ok(Boot {
            version: VERSION.to_owned(),
            run: self.run,
            node,
            nodes: self.nodes,
            processors: self.options.processors()?.unwrap_or(share),
            protocol: self.protocol.name.to_owned(),
            consistency: self.protocol.consistency,
            chosen: self.options.chooses_consistency(),
            reason: self.reason.clone(),
            locked: self.locked.clone(),
            watched: self.watched.clone(),
            mechanism: can.mechanism,
            common_after: self.common_after,
            span: can.span,
            processors_each: self.policies.processors_each,
            threads: self.policies.threads.clone(),
            groups: self.policies.groups.clone(),
            homes: self.policies.homes.clone(),
            stats: self.options.stats.is_some() || self.policies.before().is_some(),
            progress,
            monitor: self.monitoring.clone(),
            control_fd: -1,
            frames_fd: -1,
            common_fd: -1,
            exchange_fd: None,
            fabric,
            outputs_apart: !self.options.hosts.is_empty(),
            hidden_env: vec![],
        })
    }

    /// The answer to queries before any node has reported. Nodes are on these hosts in turn, or on this computer if
    /// there are none.
    pub fn running(&self, span: u64, hosts: &[&str]) -> Running {
        let host =
            |node: u16| hosts.get(usize::from(node) % hosts.len().max(1)).map(|host| (*host).to_owned());
        Running {
            program: self.options.program[0].to_string_lossy().into_owned(),
            seconds: 0.0,
            fabric: self.fabric.name().to_owned(),
            consistency: self.protocol.consistency.name().to_owned(),
            processors_each: self.policies.processors_each,
            span,
            monitored: self.options.monitor.is_some(),
            common: self.common_after.is_some(),
            nodes: (0..self.nodes).map(|node| RunningNode::starting(host(node))).collect(),
        }
    }

    /// Follows the nodes to their ends. Nodes with the runtime library report, and the run can be queried.
    pub fn supervise(
        &self,
        machine: &mut dyn Nodes,
        live: ProgressLine,
        registry: Option<Arc<RunRegistry>>,
    ) -> Result<Outcome, Failure> {
        let mut say = tell;
        let reporting = registry.is_some();
        let supervisor = Supervisor::new(self.nodes, reporting, live, &mut say).keeping(registry);
        supervisor.monitored(Monitored::new(self.described(), self.writer.take())).run(machine)
    }

    /// The recording's record about the run.
    fn described(&self) -> RunRecord {
        let path = std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned());
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        RunRecord {
            version: VERSION.to_owned(),
            executable: path.to_string_lossy().into_owned(),
            command: self.options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            nodes: self.nodes,
            consistency: self.protocol.consistency.name().to_owned(),
            fabric: self.fabric.name().to_owned(),
            threads: self.options.threads.clone(),
            memory: self.options.memory.clone(),
            plan: self.options.plan.as_ref().map_or_else(String::new, |plan| plan.display().to_string()),
            began: began.as_secs(),
            page_bytes: 1 << PAGE_BITS,
        }
    }
}
