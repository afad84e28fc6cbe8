//! The host's side: `gondwana agent` starts and follows nodes for a launcher on another host. It takes commands from
//! its standard input only, and at the end of that it ends with all that it has started.

use super::facts;
use super::list::resolve;
use super::protocol::{
    AgentAnswer, AgentCommand, Examine, Frame, GREETING, Prepare, Ready, VersionOnly, digest, parse, to_os,
};
use super::relays::Relays;
use super::upwards::{LauncherLink, Vigil};
use crate::process::events::{Event, Nodes};
use crate::process::local::LocalNodes;
use crate::process::signals::Signals;
use crate::process::spawn::ProcessImage;
use crate::{capabilities, limits, objects, program};
use gondwana_console::failure::Failure;
use gondwana_control::{Report, VERSION};
use gondwana_topology::MAX_NODES;
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The time that the launcher has to end a run in which a node here has lost a connection. After that the agent
/// assumes that the launcher cannot be reached.
const ORPHANED: Duration = Duration::from_millis(1200);

/// Serves one launcher.
pub fn serve() -> Result<ExitCode, Failure> {
    let failed = |error| Failure::system("the launcher", &error);
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
    let launcher = LauncherLink::new(output);
    launcher.raw(GREETING).map_err(failed)?;
    if let Err(failure) = converse(&mut input, &launcher) {
        launcher.answer(&AgentAnswer::Failed(failure.message));
    }
    Ok(ExitCode::SUCCESS)
}

fn converse(input: &mut File, launcher: &LauncherLink) -> Result<(), Failure> {
    // Before any thread starts: only this thread must receive SIGCHLD.
    let mut machine = LocalNodes::new(Signals::new(false)?)?;
    let prepare = match receive_first(input)? {
        None => return Ok(()),
        Some(First::Examine(examine)) => return examined(input, launcher, examine),
        Some(First::Prepare(prepare)) => prepare,
    };
    // To read a large program takes a while.
    let vigil = Vigil::begin(input.as_raw_fd());
    let (image, ready, listeners) = prepared(prepare)?;
    drop(vigil);
    let library = ready.can.library.clone();
    launcher.answer(&AgentAnswer::Ready(Box::new(ready)));
    let boots = match receive(input)? {
        Some(Received::AgentCommand(AgentCommand::Start(boots))) => boots,
        Some(_) => return Err(Failure::cannot("the launcher speaks out of turn")),
        None => return Ok(()),
    };
    let mut relays = Relays::new(launcher)?;
    for (boot, listener) in boots.into_iter().zip(listeners) {
        let streams = relays.add(boot.node)?.map(Some);
        machine.start(&image, &library, boot, &listener.into(), streams)?;
    }
    machine.watch(input.as_raw_fd());
    let mut deadline = None;
    loop {
        match machine.next(deadline)? {
            Some(Event::Started(node, process)) => launcher.answer(&AgentAnswer::Started(node, process)),
            Some(Event::Report(node, report)) => {
                if matches!(report, Report::Lost { .. }) && deadline.is_none() {
                    deadline = Some(Instant::now() + ORPHANED);
                }
                launcher.answer(&AgentAnswer::Report(node, report));
            }
            Some(Event::Chunk(node, chunk)) => launcher.frame(&Frame::Chunk(node, chunk)),
            Some(Event::Ended(node, end)) => relays.ended(node, end),
            Some(Event::Stopped(stop, _)) => launcher.answer(&AgentAnswer::Stopped(stop)),
            Some(Event::Unwound(id)) => launcher.answer(&AgentAnswer::Unwound(id)),
            Some(Event::Looked(found)) => launcher.answer(&AgentAnswer::Looked(found)),
            Some(Event::Continued(node)) => launcher.answer(&AgentAnswer::Continued(node)),
            Some(Event::Watched) => match receive(input)? {
                None => return Ok(()),
                Some(Received::Input(bytes)) => relays.input(bytes),
                Some(Received::AgentCommand(AgentCommand::InputEnd)) => relays.end_input(),
                Some(Received::AgentCommand(AgentCommand::Taken { node, stream, bytes })) => {
                    relays.taken(node, stream, bytes);
                }
                Some(Received::AgentCommand(AgentCommand::Close(stream))) => relays.close(stream),
                Some(Received::AgentCommand(AgentCommand::Kill)) => machine.kill(),
                Some(Received::AgentCommand(AgentCommand::Look(request))) => machine.look(&request),
                Some(Received::AgentCommand(AgentCommand::Signal { node, signal })) => {
                    machine.signal(node, signal)
                }
                Some(Received::AgentCommand(AgentCommand::Order { node, order })) => {
                    machine.order(node, &order)
                }
                Some(Received::AgentCommand(
                    AgentCommand::Prepare(_)
                    | AgentCommand::Start(_)
                    | AgentCommand::Examine(_)
                    | AgentCommand::Clock
                    | AgentCommand::Reach(_),
                )) => return Err(Failure::cannot("the launcher speaks out of turn")),
            },
            Some(Event::Signal { .. } | Event::OutputLost(_)) => {}
            // The nodes end with this value.
            None => return Ok(()),
        }
    }
}

enum Received {
    AgentCommand(AgentCommand),
    Input(Vec<u8>),
}

fn receive(input: &mut File) -> Result<Option<Received>, Failure> {
    let failed = |error| Failure::system("the launcher", &error);
    Ok(match Frame::read(input).map_err(failed)? {
        None => None,
        Some(Frame::Message(contents)) => Some(Received::AgentCommand(parse(&contents).map_err(failed)?)),
        Some(Frame::Input(contents)) => Some(Received::Input(contents)),
        Some(Frame::Output(..) | Frame::Chunk(..)) => {
            return Err(Failure::cannot("the launcher has sent output"));
        }
    })
}

/// The first command, for a run or for `gondwana doctor`.
#[derive(Deserialize)]
enum First<P, E> {
    Prepare(P),
    Examine(E),
}

/// Reads the first command. Its version decides whether the rest can be understood.
fn receive_first(input: &mut File) -> Result<Option<First<Prepare, Examine>>, Failure> {
    let failed = |error| Failure::system("the launcher", &error);
    let Some(frame) = Frame::read(input).map_err(failed)? else { return Ok(None) };
    let Frame::Message(contents) = frame else {
        return Err(Failure::cannot("the launcher speaks out of turn"));
    };
    let (First::Prepare(VersionOnly { version }) | First::Examine(VersionOnly { version })) =
        parse(&contents).map_err(failed)?;
    if version != VERSION {
        return Err(Failure::cannot(format!(
            "Gondwana is version {VERSION} there and {version} here: install the same on all hosts"
        )));
    }
    Ok(Some(parse(&contents).map_err(failed)?))
}

/// Serves `gondwana doctor` until it closes its end.
fn examined(input: &mut File, launcher: &LauncherLink, examine: Examine) -> Result<(), Failure> {
    let vigil = Vigil::begin(input.as_raw_fd());
    let (facts, _listener) = facts::find(examine);
    drop(vigil);
    launcher.answer(&AgentAnswer::Examined(Box::new(facts)));
    while let Some(received) = receive(input)? {
        let Received::AgentCommand(command) = received else { continue };
        launcher.answer(&match command {
            AgentCommand::Clock => AgentAnswer::Clock(facts::clock()),
            AgentCommand::Reach(addresses) => {
                let _vigil = Vigil::begin(input.as_raw_fd());
                AgentAnswer::Reached(addresses.into_iter().map(facts::reach).collect())
            }
            _ => return Err(Failure::cannot("the launcher speaks out of turn")),
        });
    }
    Ok(())
}

/// Checks the program, and listens for the other nodes.
fn prepared(prepare: Prepare) -> Result<(ProcessImage, Ready, Vec<TcpListener>), Failure> {
    let folder = PathBuf::from(to_os(prepare.folder.clone()));
    std::env::set_current_dir(&folder)
        .map_err(|error| Failure::cannot(format!("the folder {}: {error}", folder.display())))?;
    let path = to_os(prepare.path.clone());
    let program = program::find(&path)?;
    program::loadable(&path.to_string_lossy(), &program.image)?;
    limits::survive_full_files();
    limits::check(prepare.nodes)?;
    let can = capabilities::find(prepare.span, limits::beside_span(prepare.nodes, 0))?;
    let library = std::fs::read(&can.library)
        .map_err(|error| Failure::cannot(format!("{}: {error}", can.library.display())))?;
    let address = address(&prepare.host, prepare.address, prepare.loopback)?;
    let failed = |error| Failure::system(&format!("listening at {address}"), &error);
    let listeners: Vec<TcpListener> = (0..prepare.nodes)
        .map(|_| gondwana_fabric::listen((address, 0).into(), MAX_NODES))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    let addresses =
        listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>().map_err(failed)?;
    let arguments: Vec<_> = prepare.arguments.into_iter().map(to_os).collect();
    let environment: Vec<_> =
        prepare.environment.into_iter().map(|(key, value)| (to_os(key), to_os(value))).collect();
    let objects = objects::of_program(&program.path, &can.library, &environment)?;
    let image = ProcessImage::new(&program.path, &arguments, environment)
        .map_err(|error| Failure::system("passing on arguments and environment", &error))?;
    let (program, library) = (digest(&program.image), digest(&library));
    let ready = Ready { program, library, objects, can, addresses };
    Ok((image, ready, listeners))
}

/// The address at which the other hosts reach this one: the user's, else the one that the launcher used, else that of
/// the host's name.
pub(super) fn address(host: &str, given: Option<IpAddr>, loopback: bool) -> Result<IpAddr, Failure> {
    if let Some(address) = given {
        return Ok(address);
    }
    if loopback {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let of_connection = std::env::var("SSH_CONNECTION").ok();
    let server = of_connection.as_deref().and_then(server_of_ssh);
    let named = || resolve(host)?.into_iter().find(|address| !address.is_loopback());
    server.filter(|address| !address.is_loopback()).or_else(named).ok_or_else(|| {
        Failure::cannot(format!(
            "no address to listen at is known: name it in the list of hosts, as in {host}=10.0.0.1"
        ))
    })
}

/// The server's address from `client port server port`, the variable that the ssh server sets.
fn server_of_ssh(connection: &str) -> Option<IpAddr> {
    connection.split(' ').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ssh_server_knows_its_address() {
        assert_eq!(server_of_ssh("10.0.0.9 50000 10.0.0.2 22"), Some([10, 0, 0, 2].into()));
        assert_eq!(server_of_ssh("garbage"), None);
    }
}
