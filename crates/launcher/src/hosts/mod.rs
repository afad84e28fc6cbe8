//! Runs on several computers.
//!
//! On each host an *agent* (`gondwana agent`) starts and follows the nodes there. The launcher reaches it through the
//! standard streams of a command that the user can choose, `ssh` by default; neither needs a port of its own, and the
//! secret of the run travels only there.

pub mod agent;
mod agent_threads;
pub mod examination;
mod facts;
mod list;
mod printers;
pub mod protocol;
mod relays;
mod remote;
mod template;
mod upwards;

use crate::capabilities::{mechanism_name, say_degraded};
use crate::objects;
use crate::program::Program;
use crate::progress_line::ProgressLine;
use crate::run::job::Job;
use crate::run::supervise::Outcome;
use crate::run_registry::answer::RegistryService;
use gondwana_console::failure::Failure;
use gondwana_control::{FabricBoot, VERSION};
use gondwana_memory::Mechanism;
use list::Host;
use protocol::{Prepare, Ready, digest, from_os};
use remote::RemoteNodes;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The command that reaches a host, unless the user names another one.
pub const SSH: &str = "ssh -o BatchMode=yes {host} {command}";

/// Runs a job on the hosts that its options name.
pub fn run(job: &Job<'_>, program: &Program) -> Result<(Outcome, &'static str), Failure> {
    let mut hosts = list::parse(&job.options.hosts)?;
    hosts.truncate(usize::from(job.nodes));
    let deadline = Instant::now() + Duration::from_secs(job.options.host_timeout.clamp(1, 86_400));
    let mut machine = RemoteNodes::start(&hosts, job.nodes, &job.options.launcher)?;
    let loopback = hosts.len() == 1 || hosts.iter().all(Host::is_this_computer);
    for (index, host) in hosts.iter().enumerate() {
        let nodes = (0..job.nodes).filter(|node| usize::from(*node) % hosts.len() == index).count();
        machine.prepare(index, &prepare(job, program, host, nodes, loopback)?);
    }
    let mut ready = machine.wait_ready(deadline)?;
    check_equal(&hosts, &ready, program)?;
    // Addresses must be the same on all hosts, so the shortest span counts.
    let span = ready.iter().map(|host| host.can.span).min().unwrap_or(0);
    for (host, ready) in hosts.iter().zip(&mut ready) {
        ready.can.span = span;
        if let Some(why) = &ready.can.degraded {
            say_degraded(&format!("host {}: ", host.name), why);
        }
    }
    let live = ProgressLine::new(job.nodes);
    let mut service = RegistryService::open();
    start(job, &mut machine, &ready, &live)?;
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let registry = service.serve(job.running(span, &names));
    let weakest = if ready.iter().all(|host| host.can.mechanism == Mechanism::Userfaultfd) {
        Mechanism::Userfaultfd
    } else {
        Mechanism::Mprotect
    };
    Ok((job.supervise(&mut machine, live, Some(registry))?, mechanism_name(weakest)))
}

fn prepare(
    job: &Job<'_>,
    program: &Program,
    host: &Host,
    nodes: usize,
    loopback: bool,
) -> Result<Prepare, Failure> {
    let failed = |error| Failure::system("finding this folder", &error);
    let path = std::path::absolute(&program.path).map_err(failed)?;
    let folder = std::env::current_dir().map_err(failed)?;
    Ok(Prepare {
        version: VERSION.to_owned(),
        path: from_os(path.as_os_str()),
        arguments: job.options.program.iter().map(|word| from_os(word)).collect(),
        environment: std::env::vars_os().map(|(key, value)| (from_os(&key), from_os(&value))).collect(),
        folder: from_os(folder.as_os_str()),
        nodes,
        host: host.name.clone(),
        address: host.address,
        loopback,
        span: job.options.span()?,
    })
}

/// Refuses hosts with different files: their addresses would differ.
fn check_equal(hosts: &[Host], ready: &[Ready], program: &Program) -> Result<(), Failure> {
    let here = digest(&program.image);
    for (host, there) in hosts.iter().zip(ready) {
        let (differs, mend) = if there.program != here {
            (program.path.display().to_string(), "copy it to all hosts")
        } else if there.library != ready[0].library {
            (there.can.library.display().to_string(), "install the same build of Gondwana on all hosts")
        } else {
            continue;
        };
        let other =
            if there.program != here { "here".to_owned() } else { format!("on host {}", hosts[0].name) };
        return Err(Failure::cannot(format!(
            "{differs} on host {} is not the same file as {other}: {mend}",
            host.name
        )));
    }
    for (host, there) in hosts.iter().zip(ready).skip(1) {
        if let Some(found) = objects::difference(&ready[0].objects, &there.objects) {
            return Err(Failure::cannot(found.sentence(&hosts[0].name, &host.name)));
        }
    }
    Ok(())
}

/// Sends each agent the boot descriptions of its nodes.
fn start(
    job: &Job<'_>,
    machine: &mut RemoteNodes,
    ready: &[Ready],
    live: &ProgressLine,
) -> Result<(), Failure> {
    let place = |node: u16| (usize::from(node) % ready.len(), usize::from(node) / ready.len());
    let peers: Vec<SocketAddr> = (0..job.nodes)
        .map(|node| {
            let (host, index) = place(node);
            ready[host].addresses[index]
        })
        .collect();
    let secret = job.secret()?;
    let mut boots = vec![vec![]; ready.len()];
    for node in 0..job.nodes {
        let fabric = FabricBoot::Tcp { listener_fd: -1, peers: peers.clone(), secret };
        let (host, _) = place(node);
        boots[host].push(job.boot(node, fabric, &ready[host].can, live.is_shown())?);
    }
    for (host, boots) in boots.into_iter().enumerate() {
        machine.start_nodes(host, boots);
    }
    Ok(())
}
