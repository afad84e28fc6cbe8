//! The asker's side: which runs there are, and what each says of itself.

use super::requests::{Answer, Request};
use super::{Launcher, Running, credentials};
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a launcher may take to answer. It does nothing but that; only one that does not run takes long.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a request may take. A recording that ends waits for all nodes, and for the disk.
const LONG_PATIENCE: Duration = Duration::from_secs(30);

/// The runs that this user may ask, in the order of their processes.
pub fn own() -> Result<Vec<Launcher>, Failure> {
    let user = credentials::this_user();
    Ok(all()?.into_iter().filter(|run| user == 0 || run.user == user).collect())
}

/// What the run of a process says of itself.
pub fn ask(process: u32) -> Result<Running, Failure> {
    tell(find(process)?)
}

/// Makes a request of the run of a process. What is behind the answer is read from the connection that this gives too.
pub fn request(process: u32, request: &Request) -> Result<(Option<PathBuf>, BufReader<UnixStream>), Failure> {
    let run = find(process)?;
    let failed = |error: std::io::Error| not_asked(process, &error);
    let mut stream = connect(run, &run.counter_name())?;
    stream.set_read_timeout(Some(LONG_PATIENCE)).map_err(failed)?;
    let text = serde_json::to_vec(request).map_err(|error| failed(error.into()))?;
    stream.write_all(&text).and_then(|()| stream.shutdown(Shutdown::Write)).map_err(failed)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).map_err(failed)?;
    if line.is_empty() {
        return Err(Failure::cannot(ended(process)));
    }
    let answer: Answer = serde_json::from_str(&line).map_err(|_| other_version(process))?;
    match answer {
        Ok(file) => Ok((file, stream)),
        Err(why) => Err(Failure::cannot(format!("the run of process {process} {why}"))),
    }
}

/// The launcher of a process, if it is one and this user may ask it.
fn find(process: u32) -> Result<Launcher, Failure> {
    let runs: Vec<Launcher> = all()?.into_iter().filter(|run| run.process == process).collect();
    let user = credentials::this_user();
    match runs.iter().find(|run| user == 0 || run.user == user) {
        Some(run) => Ok(*run),
        None => Err(Failure::cannot(match runs.first() {
            Some(run) => format!(
                "the run of process {process} is user {}'s: only that user and root can see it",
                run.user
            ),
            None if !Path::new(&format!("/proc/{process}")).exists() => {
                format!("there is no process {process}: its run has ended, if it was one")
            }
            None => format!(
                "process {process} is no run on several nodes: name the process of gondwana run (with one node that \
                 is the program itself)"
            ),
        })),
    }
}

/// All launchers that listen.
fn all() -> Result<BTreeSet<Launcher>, Failure> {
    let sockets = fs::read("/proc/net/unix").map_err(|error| Failure::system("/proc/net/unix", &error))?;
    Ok(listening(&String::from_utf8_lossy(&sockets)))
}

/// The launchers in the kernel's list of sockets.
fn listening(sockets: &str) -> BTreeSet<Launcher> {
    /// The flag of sockets that listen, as the list has it; connected ones have their name, too.
    const LISTENS: &str = "00010000";
    let launcher = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        (fields.nth(3)? == LISTENS).then_some(())?;
        Launcher::named(fields.nth(3)?.strip_prefix('@')?)
    };
    sockets.lines().filter_map(launcher).collect()
}

fn tell(run: Launcher) -> Result<Running, Failure> {
    let process = run.process;
    let failed = |error: std::io::Error| not_asked(process, &error);
    let mut stream = connect(run, &run.name())?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut answer = vec![];
    stream.read_to_end(&mut answer).map_err(failed)?;
    if answer.is_empty() {
        return Err(Failure::cannot(ended(process)));
    }
    serde_json::from_slice(&answer).map_err(|_| other_version(process))
}

/// Connects to a socket of a launcher.
fn connect(run: Launcher, name: &str) -> Result<UnixStream, Failure> {
    let process = run.process;
    if is_stopped(process) {
        return Err(Failure::cannot(format!(
            "the run of process {process} is stopped and cannot answer: continue it first (kill -CONT {process})"
        )));
    }
    let failed = |error: std::io::Error| not_asked(process, &error);
    let address = SocketAddr::from_abstract_name(name).map_err(failed)?;
    let stream = UnixStream::connect_addr(&address).map_err(failed)?;
    // Anybody may take any name.
    if credentials::of_peer(&stream).map_err(failed)? != run {
        return Err(Failure::cannot(format!(
            "somebody else listens in the name of process {process}, which is no run"
        )));
    }
    Ok(stream)
}

fn not_asked(process: u32, error: &std::io::Error) -> Failure {
    Failure::cannot(match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ended(process),
        ErrorKind::WouldBlock => format!("the run of process {process} does not answer"),
        _ => format!("asking the run of process {process}: {error}"),
    })
}

fn other_version(process: u32) -> Failure {
    Failure::cannot(format!(
        "the run of process {process} is of another version of Gondwana: ask with the command that has started it"
    ))
}

fn ended(process: u32) -> String {
    format!("the run of process {process} has just ended")
}

/// True while a process is stopped, as by the stop key of its terminal.
fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name of the command may contain anything; the state follows its closing parenthesis.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_launchers_are_in_the_list_of_sockets() {
        let sockets = "\
Num       RefCount Protocol Flags    Type St Inode Path
000000005b2dcb20: 00000003 00000000 00000000 0001 03 22344555
00000000aaaaaaaa: 00000002 00000000 00010000 0001 01 22698948 @gondwana-run-1000-77
00000000bbbbbbbb: 00000003 00000000 00000000 0001 03 22698949 @gondwana-run-1000-78
00000000cccccccc: 00000002 00000000 00010000 0001 01 22698950 /run/gondwana-run-1000-79
00000000dddddddd: 00000002 00000000 00010000 0001 01 22698951 @gondwana-run-0-5
";
        let expected = [Launcher { process: 5, user: 0 }, Launcher { process: 77, user: 1000 }];
        assert_eq!(listening(sockets).into_iter().collect::<Vec<_>>(), expected);
    }
}
