//! What an agent finds out about its host for `gondwana doctor`.

use super::agent::address;
use super::protocol::{Examine, HostFacts, digest, to_os};
use crate::{capabilities, limits, objects, probes, program};
use gondwana_console::failure::Failure;
use gondwana_console::rlimit;
use gondwana_topology::MAX_NODES;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a connection to another host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Examines this host. The other hosts can connect as long as the listener exists.
pub(super) fn find(examine: Examine) -> (HostFacts, Option<TcpListener>) {
    let said = |result: io::Result<()>| result.map_err(|error| error.to_string());
    let message = |failure: Failure| failure.message;
    let listener = listen(&examine);
    let listens = listener
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|listener| listener.local_addr().map_err(|error| error.to_string()));
    let library = capabilities::runtime_library().map_err(message);
    let contents = library
        .clone()
        .and_then(|path| fs::read(&path).map_err(|error| format!("{}: {error}", path.display())));
    let facts = HostFacts {
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        userfaultfd: probes::userfaultfd(),
        pagemap_scan: said(probes::pagemap_scan()),
        memory_files: said(probes::memory_files()),
        fixed_addresses: said(probes::fixed_addresses()),
        span: capabilities::choose_span(None, limits::beside_span(2, 0)).map_err(message),
        stack_limit: rlimit::limit(libc::RLIMIT_STACK),
        library: contents.map(|contents| digest(&contents)),
        objects: library.and_then(|library| mapped(examine, library)),
        listens,
    };
    (facts, listener.ok())
}

fn listen(examine: &Examine) -> Result<TcpListener, String> {
    let address =
        address(&examine.host, examine.address, examine.loopback).map_err(|failure| failure.message)?;
    gondwana_fabric::listen((address, 0).into(), MAX_NODES)
        .map_err(|error| format!("listening at {address}: {error}"))
}

/// What the loader maps for the program.
fn mapped(examine: Examine, library: PathBuf) -> Result<Vec<objects::MappedObject>, String> {
    let find = || {
        let path = match examine.path {
            None => {
                std::env::current_exe().map_err(|error| Failure::system("finding this executable", &error))?
            }
            Some(path) => {
                let folder = PathBuf::from(to_os(examine.folder));
                std::env::set_current_dir(&folder)
                    .map_err(|error| Failure::cannot(format!("the folder {}: {error}", folder.display())))?;
                let path = to_os(path);
                let program = program::find(&path)?;
                program::loadable(&path.to_string_lossy(), &program.image)?;
                program.path
            }
        };
        let environment: Vec<_> =
            examine.environment.into_iter().map(|(key, value)| (to_os(key), to_os(value))).collect();
        objects::of_program(&path, &library, &environment)
    };
    find().map_err(|failure: Failure| failure.message)
}

/// The time of this host, in microseconds since 1970.
pub(super) fn clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Why another host cannot be reached; `None` if it can.
pub(super) fn reach(address: SocketAddr) -> Option<String> {
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).err().map(|error| error.to_string())
}
