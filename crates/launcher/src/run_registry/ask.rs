//! The command's side: finds runs and queries them.

use super::requests::{Request, RequestAnswer};
use super::socket::{self, Purpose};
use super::socket_directory::SocketDirectory;
use super::{Launcher, Running, credentials};
use crate::stacks::StackReport;
use gondwana_console::failure::Failure;
use gondwana_topology::MAX_NODES;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The timeout of an answer. The answering thread does nothing else, so only a stopped launcher takes long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request may take. A recording that ends waits for all nodes, and for the disk.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer, in bytes. Root also queries processes of other users.
const LONGEST: u64 = 1 << 20;

/// The longest report of stacks, in bytes: some hundred frames of each of many thousand threads.
const LONGEST_STACKS: u64 = 1 << 30;

/// Bytes of an answer that are read at a time.
const PART: usize = 4096;

/// The runs that this user may query, in the order of their processes. Removes sockets of this user's killed
/// launchers.
pub fn own() -> BTreeSet<Launcher> {
    let user = credentials::this_user();
    let mut runs = BTreeSet::new();
    for place in SocketDirectory::all() {
        if place.user() == user {
            socket::clear(&place);
        }
        let listens = |process: &u32| match reach(&place, *process, Purpose::Run, socket::KNOCK) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        runs.extend(
            socket::processes(&place).filter(listens).map(|process| Launcher { process, user: place.user() }),
        );
    }
    runs
}

/// Queries the run of a process.
pub fn ask(process: u32) -> Result<Running, Failure> {
    let stream = connect(process, Purpose::Run)?;
    let answer = read(&stream).map_err(|error| not_asked(process, &error))?;
    if answer.is_empty() {
        return Err(Failure::cannot(ended(process)));
    }
    let told = serde_json::from_slice(&answer).ok();
    let is_run = |run: &Running| (1..=MAX_NODES).contains(&run.nodes.len());
    told.filter(is_run).ok_or_else(|| other_version(process))
}

/// Reads an answer to its end, for at most [`ANSWER_TIMEOUT`].
fn read(mut stream: &UnixStream) -> io::Result<Vec<u8>> {
    let end = Instant::now() + ANSWER_TIMEOUT;
    let mut answer = vec![];
    let mut part = [0; PART];
    while (answer.len() as u64) < LONGEST {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(length) => answer.extend(&part[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Makes a request to the run of a process. Data behind the answer is read from the returned connection.
pub fn request(process: u32, request: &Request) -> Result<(Option<PathBuf>, BufReader<UnixStream>), Failure> {
    let failed = |error: io::Error| not_asked(process, &error);
    let mut stream = connect(process, Purpose::Requests)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT)).map_err(failed)?;
    let text = serde_json::to_vec(request).map_err(|error| failed(error.into()))?;
    stream.write_all(&text).and_then(|()| stream.shutdown(Shutdown::Write)).map_err(failed)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.by_ref().take(LONGEST).read_line(&mut line).map_err(failed)?;
    if line.is_empty() {
        return Err(Failure::cannot(ended(process)));
    }
    let answer: RequestAnswer = serde_json::from_str(&line).map_err(|_| other_version(process))?;
    match answer {
        Ok(file) => Ok((file, stream)),
        Err(why) => Err(Failure::cannot(format!("the run of process {process} {why}"))),
    }
}

/// The stacks of all threads of the run of a process.
pub fn stacks(process: u32) -> Result<StackReport, Failure> {
    let (_, stream) = request(process, &Request::Stacks)?;
    let mut text = vec![];
    stream.take(LONGEST_STACKS).read_to_end(&mut text).map_err(|error| not_asked(process, &error))?;
    if text.is_empty() {
        return Err(Failure::cannot(ended(process)));
    }
    serde_json::from_slice(&text).map_err(|_| other_version(process))
}

/// Connects to a socket of a launcher.
fn connect(process: u32, purpose: Purpose) -> Result<UnixStream, Failure> {
    let name = socket::name(process, purpose);
    let places = SocketDirectory::all().into_iter().chain(SocketDirectory::of_process(process));
    let places: Vec<_> = places.filter(|place| place.file(&name).exists()).collect();
    if !places.is_empty() && is_stopped(process) {
        return Err(Failure::cannot(format!(
            "the run of process {process} is stopped and cannot answer: continue it first (kill -CONT {process})"
        )));
    }
    let mut failure = None;
    for place in places {
        match reach(&place, process, purpose, ANSWER_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(not_asked(process, &error)),
        }
    }
    Err(failure.unwrap_or_else(|| Failure::cannot(why_not_found(process))))
}

/// Connects to a socket in a directory; an error of the kind [`ErrorKind::PermissionDenied`] if it is not that
/// process's.
fn reach(
    place: &SocketDirectory,
    process: u32,
    purpose: Purpose,
    timeout: Duration,
) -> io::Result<UnixStream> {
    let stream = socket::call(place, &socket::name(process, purpose), timeout)?;
    if credentials::of_peer(&stream)? != (Launcher { process, user: place.user() }) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(stream)
}

/// Why a process has no socket that this user sees.
fn why_not_found(process: u32) -> String {
    let user = credentials::this_user();
    let Ok(found) = fs::metadata(format!("/proc/{process}")) else {
        return format!("there is no process {process}: its run has ended, if it was one");
    };
    let owner = found.uid();
    if user != 0 && owner != user {
        return format!(
            "process {process} is user {owner}'s: if it is a run, only that user and root can see it"
        );
    }
    if is_launcher(process) {
        return format!(
            "the run of process {process} cannot be asked: it found no directory for its sockets that only user {owner} \
             can look into, or none that is seen from here; XDG_RUNTIME_DIR can name one"
        );
    }
    format!(
        "process {process} is no run on several nodes: name the process of gondwana run (with one node that is the \
         program itself)"
    )
}

/// True for a process of `gondwana run`.
fn is_launcher(process: u32) -> bool {
    let of_process = |name: &str| PathBuf::from(format!("/proc/{process}/{name}"));
    let program = fs::read_link(of_process("exe")).unwrap_or_default();
    let command = fs::read(of_process("cmdline")).unwrap_or_default();
    program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"gondwana"))
        && command.split(|&byte| byte == 0).nth(1) == Some(b"run")
}

fn not_asked(process: u32, error: &io::Error) -> Failure {
    Failure::cannot(match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ended(process),
        ErrorKind::PermissionDenied => {
            format!("somebody else listens in the name of process {process}, which is no run")
        }
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
