//! `gondwana run`: a program on several nodes.

mod boards;
pub mod capabilities;
pub mod check;
pub mod exit;
mod expected;
mod homes;
pub mod limits;
mod monitored;
pub mod options;
mod plan;
mod policies;
mod supervise;
mod tape;

use crate::atomics;
use crate::clean;
use crate::create::Readers;
use crate::failure::Failure;
use crate::hosts;
use crate::live::Live;
use crate::output::{self, Output, tell};
use crate::process::events::Nodes;
use crate::process::local::LocalNodes;
use crate::process::signals::Signals;
use crate::process::spawn::Image;
use crate::running::answer::{Desk, Register};
use crate::running::{Running, RunningNode};
use crate::stats::Summary;
use capabilities::Capabilities;
use gondwana_control::{Boot, Consistency, FabricBoot, Mechanism, Monitoring, VERSION};
use gondwana_fabric::{DEFAULT_RING_BYTES, SegmentError, ShmSegment};
use gondwana_memory::PAGE_SIZE;
use gondwana_recording::Run;
use monitored::Monitored;
use options::{Fabric, RunOptions};
use policies::Policies;
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
pub use supervise::Outcome;
use supervise::Supervisor;
use tape::Tape;

/// Runs a program as the options say, and ends as the program does.
pub fn run(options: RunOptions) -> Result<ExitCode, Failure> {
    let nodes = options.nodes()?;
    let fabric = options.fabric()?;
    let policies = Policies::of(&options)?;
    let monitoring = options.monitoring()?;
    let name = options.program_name()?;
    let program = check::find(name)?;
    check::loadable(&name.to_string_lossy(), &program.image)?;
    let image = Image::new(&program.path, &options.program, std::env::vars_os().collect())
        .map_err(|error| Failure::system("passing on arguments and environment", &error))?;
    let alone = nodes == 1 && options.hosts.is_empty();
    if alone && options.monitor.is_some() {
        eprintln!("gondwana: --monitor: a run on one node has no remote accesses to record");
    }
    if alone && options.stats.is_none() {
        let error = image.replace_process();
        return Err(Failure::not_runnable(format!("{}: {error}", name.display())));
    }
    limits::survive_full_files();
    if !alone && options.hosts.is_empty() {
        limits::check(usize::from(nodes))?;
    }
    let policies = policies.with_plan(&options, &program)?;
    let (consistency, reason) = if alone {
        (Consistency::Sc, "one node: the program runs as it is".to_owned())
    } else {
        consistency(&options, &program)?
    };
    let file = options.stats.iter().flatten().next();
    let file = file.map(|path| Output::open("--stats", path, Readers::User)).transpose()?;
    let tape =
        options.recording(name).filter(|_| !alone).map(|path| Tape::open("--monitor", &path)).transpose()?;
    let start = Instant::now();
    let run = u64::from_ne_bytes(random()?);
    let job = Job {
        options: &options,
        run,
        nodes,
        fabric,
        consistency,
        reason: reason.clone(),
        policies,
        path: &program.path,
        monitoring,
        tape: Cell::new(tape),
    };
    let (outcome, mechanism) = if alone {
        (job.alone(&image)?, "native")
    } else if options.hosts.is_empty() {
        job.here(&image)?
    } else {
        hosts::run(&job, &program)?
    };
    if let Some(before) = job.policies.before() {
        match expected::traffic(&outcome.stats) {
            Some(now) => {
                eprintln!("gondwana: {}", expected::comparison(now, before, job.policies.expected()))
            }
            None => eprintln!("gondwana: plan: not every node has counted what it asked for"),
        }
    }
    if options.stats.is_some() {
        let summary = Summary {
            program: options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            fabric: fabric.name(),
            consistency: consistency_name(consistency),
            reason,
            mechanism,
            seconds: start.elapsed().as_secs_f64(),
            nodes: homes::by_node(outcome.stats),
        };
        eprint!("{}", clean::text(&summary.to_table()));
        if let Some(file) = file {
            file.write(&output::json(&summary.to_json()))?;
        }
    }
    Ok(exit::like(outcome.end))
}

/// Which consistency the program gets, and why.
fn consistency(options: &RunOptions, program: &check::Program) -> Result<(Consistency, String), Failure> {
    Ok(match options.consistency {
        options::Consistency::Rc => (Consistency::Rc, "asked for".to_owned()),
        options::Consistency::Sc => (Consistency::Sc, "asked for".to_owned()),
        options::Consistency::Auto => {
            let atomics = atomics::of_program(program)?;
            let consistency = if atomics.is_empty() { Consistency::Rc } else { Consistency::Sc };
            (consistency, atomics.to_string())
        }
    })
}

/// The name of a mechanism that the user knows.
pub fn mechanism_name(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Userfaultfd => "userfaultfd",
        Mechanism::Mprotect => "mprotect",
    }
}

/// The name of a consistency that the user knows.
fn consistency_name(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Rc => "rc",
        Consistency::Sc => "sc",
    }
}

/// Says on standard error that faults will be slow.
pub fn say_degraded(place: &str, why: &str) {
    eprintln!("gondwana: {place}{why}: using mprotect, which is slower (gondwana doctor says more)");
}

/// A random number that distinguishes or protects a run.
pub fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Failure::cannot(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

/// A run whose options have been checked.
pub struct Job<'a> {
    /// What the user has said.
    pub options: &'a RunOptions,
    /// Distinguishes this run from others.
    pub run: u64,
    /// How many nodes.
    pub nodes: u16,
    /// How they talk.
    pub fabric: Fabric,
    /// Which consistency.
    pub consistency: Consistency,
    /// Why.
    pub reason: String,
    /// Where threads and pages go.
    pub policies: Policies,
    /// The program's file.
    path: &'a Path,
    /// What is to be recorded.
    monitoring: Option<Monitoring>,
    /// Where the recording goes, until the nodes are followed.
    tape: Cell<Option<Tape>>,
}

impl Job<'_> {
    /// The program as it is, as a child, so that the launcher can say how long it took.
    fn alone(&self, image: &Image) -> Result<Outcome, Failure> {
        let mut machine = LocalNodes::new(signals(true)?)?;
        machine.start_plain(image)?;
        let mut outcome = self.supervise(&mut machine, Live::hidden(), None)?;
        outcome.stats = vec![Some(serde_json::json!({}))];
        Ok(outcome)
    }

    /// All nodes on this computer.
    fn here(&self, image: &Image) -> Result<(Outcome, &'static str), Failure> {
        let nodes = usize::from(self.nodes);
        let messages = match self.fabric {
            Fabric::Shm => ShmSegment::bytes(nodes, DEFAULT_RING_BYTES),
            Fabric::Tcp => 0,
        };
        let can = capabilities::find(self.options.span()?, limits::beside_span(nodes, messages))?;
        if let Some(why) = &can.degraded {
            say_degraded("", why);
        }
        let live = Live::new(self.nodes);
        let mut machine = LocalNodes::new(signals(true)?)?;
        let mut desk = Desk::open();
        for (node, (fabric, fd)) in self.fabrics()?.into_iter().enumerate() {
            let boot = self.boot(node as u16, fabric, &can, live.is_shown())?;
            let streams = [(node > 0).then(null).transpose()?, None, None];
            machine.start(image, &can.library, boot, &fd, streams)?;
        }
        let register = desk.serve(self.running(can.span, &[]));
        Ok((self.supervise(&mut machine, live, Some(register))?, mechanism_name(can.mechanism)))
    }

    /// What each node finds under its fabric descriptor.
    fn fabrics(&self) -> Result<Vec<(FabricBoot, OwnedFd)>, Failure> {
        match self.fabric {
            Fabric::Shm => {
                let segment = ShmSegment::create(usize::from(self.nodes), DEFAULT_RING_BYTES)
                    .map_err(|error| match error {
                        SegmentError::System { what, source } => {
                            format!("{what}: {}", limits::explained(&source))
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

    /// What a node is told. Descriptor numbers are left open.
    pub fn boot(
        &self,
        node: u16,
        fabric: FabricBoot,
        can: &Capabilities,
        progress: bool,
    ) -> Result<Boot, Failure> {
        let nodes_there = usize::from(self.nodes).div_ceil(self.options.hosts.len().max(1));
        let share = (can.processors / nodes_there).clamp(1, 4096) as u16;
        Ok(Boot {
            version: VERSION.to_owned(),
            run: self.run,
            node,
            nodes: self.nodes,
            processors: self.options.processors()?.unwrap_or(share),
            fabric,
            consistency: self.consistency,
            chosen: matches!(self.options.consistency, options::Consistency::Auto),
            reason: self.reason.clone(),
            mechanism: can.mechanism,
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
            exchange_fd: None,
            hidden_env: vec![],
        })
    }

    /// What others can know about the run before anything has been heard of its nodes; they are on these hosts in turn,
    /// or on this computer if there are none.
    pub fn running(&self, span: u64, hosts: &[&str]) -> Running {
        let host =
            |node: u16| hosts.get(usize::from(node) % hosts.len().max(1)).map(|host| (*host).to_owned());
        Running {
            program: self.options.program[0].to_string_lossy().into_owned(),
            seconds: 0.0,
            fabric: self.fabric.name().to_owned(),
            consistency: consistency_name(self.consistency).to_owned(),
            processors_each: self.policies.processors_each,
            span,
            monitored: self.options.monitor.is_some(),
            nodes: (0..self.nodes).map(|node| RunningNode::starting(host(node))).collect(),
        }
    }

    /// Follows the nodes to their ends. Nodes with the runtime library report, and others can ask about them.
    pub fn supervise(
        &self,
        machine: &mut dyn Nodes,
        live: Live,
        register: Option<Arc<Register>>,
    ) -> Result<Outcome, Failure> {
        let mut say = tell;
        let reporting = register.is_some();
        let supervisor = Supervisor::new(self.nodes, reporting, live, &mut say).keeping(register);
        supervisor.monitored(Monitored::new(self.described(), self.tape.take())).run(machine)
    }

    /// What a recording says about the run.
    fn described(&self) -> Run {
        let path = std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned());
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Run {
            version: VERSION.to_owned(),
            executable: path.to_string_lossy().into_owned(),
            command: self.options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            nodes: self.nodes,
            consistency: consistency_name(self.consistency).to_owned(),
            fabric: self.fabric.name().to_owned(),
            threads: self.options.threads.clone(),
            memory: self.options.memory.clone(),
            plan: self.options.plan.as_ref().map_or_else(String::new, |plan| plan.display().to_string()),
            began: began.as_secs(),
            page_bytes: PAGE_SIZE as u32,
        }
    }
}

/// The signals of this process, made readable; with `forwarded` false the ends of children only.
pub fn signals(forwarded: bool) -> Result<Signals, Failure> {
    Signals::new(forwarded).map_err(|error| Failure::system("receiving signals", &error))
}

/// What nodes other than node 0 read.
pub fn null() -> Result<OwnedFd, Failure> {
    std::fs::File::open("/dev/null").map(OwnedFd::from).map_err(|error| Failure::system("/dev/null", &error))
}
