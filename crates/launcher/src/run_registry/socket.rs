//! The sockets of launchers: files in a [`SocketDirectory`] that are named by process and purpose.

use super::socket_directory::SocketDirectory;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// The purpose of a launcher's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Queries about the run.
    Run,
    /// Taking requests.
    Requests,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Run, Self::Requests];

    fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Requests => "requests",
        }
    }
}

/// The prefix of the name of a socket that does not listen yet.
const EARLY: char = '.';

/// The timeout for a launcher with a full queue, to learn whether it exists.
pub(super) const KNOCK: Duration = Duration::from_millis(10);

/// The name of a socket.
pub(super) fn name(process: u32, purpose: Purpose) -> String {
    format!("{process}.{}", purpose.name())
}

/// The process and the purpose of a socket of this name, and whether it listens.
fn parse(name: &OsStr) -> Option<(u32, Purpose, bool)> {
    let text = name.to_str()?;
    let listens = !text.starts_with(EARLY);
    let (digits, purpose) = text.trim_start_matches(EARLY).split_once('.')?;
    let process = digits.parse().ok().filter(|process: &u32| process.to_string() == digits)?;
    let purpose = Purpose::ALL.into_iter().find(|candidate| candidate.name() == purpose)?;
    Some((process, purpose, listens))
}

/// The launchers with a socket for queries; some may have been killed.
pub(super) fn processes(place: &SocketDirectory) -> impl Iterator<Item = u32> {
    place.names().filter_map(|name| match parse(&name)? {
        (process, Purpose::Run, true) => Some(process),
        _ => None,
    })
}

/// Listens. Removes a socket that an earlier process with the same number has left behind.
///
/// Cleaning removes sockets that refuse connections, so a socket gets its final name only when it listens.
pub(super) fn listen(place: &SocketDirectory, process: u32, purpose: Purpose) -> io::Result<UnixListener> {
    let name = name(process, purpose);
    match call(place, &name, KNOCK) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind()) => {}
        // Of a process with this number in another container.
        _ => return Err(ErrorKind::AddrInUse.into()),
    }
    let early = place.file(&format!("{EARLY}{name}"));
    let _ = fs::remove_file(&early);
    let listener = UnixListener::bind(&early)?;
    fs::rename(early, place.file(&name))?;
    Ok(listener)
}

/// Takes a launcher's sockets away.
pub(super) fn remove(place: &SocketDirectory, process: u32) {
    for purpose in Purpose::ALL {
        let _ = fs::remove_file(place.file(&name(process, purpose)));
    }
}

/// Connects to a socket; an error of the kind [`ErrorKind::WouldBlock`] if its queue stays full until the timeout.
pub(super) fn call(place: &SocketDirectory, name: &str, timeout: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    connect(&socket, &SocketAddrUnix::new(place.file(name))?)?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket.into())
}

/// Removes the sockets of killed launchers.
pub(super) fn clear(place: &SocketDirectory) {
    for name in place.names() {
        let Some((process, ..)) = parse(&name) else { continue };
        // In another container the process may have another number, but its socket does not refuse.
        if !Path::new(&format!("/proc/{process}")).exists()
            && let Some(name) = name.to_str()
            && call(place, name, KNOCK).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        {
            let _ = fs::remove_file(place.file(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_process_and_purpose() {
        assert_eq!(name(4711, Purpose::Requests), "4711.requests");
        assert_eq!(parse(OsStr::new("4711.run")), Some((4711, Purpose::Run, true)));
        assert_eq!(parse(OsStr::new(".4711.requests")), Some((4711, Purpose::Requests, false)));
        for other in ["", ".", "..", "4711", "4711.", "+1.run", "01.run", "1.run.x", "x.run", "1.stop"] {
            assert_eq!(parse(OsStr::new(other)), None, "{other}");
        }
    }
}
