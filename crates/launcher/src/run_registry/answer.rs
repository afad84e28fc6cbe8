//! The launcher's side: a thread that answers queries.

use super::requests::{self, Inbox};
use super::socket::{self, Purpose};
use super::socket_directory::SocketDirectory;
use super::{Running, State, credentials};
use gondwana_locks::lock;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

/// The attempts to find a directory: the launcher that made one may just remove it.
const ATTEMPTS: usize = 3;

/// The sockets of a run; it can be queried while this exists.
#[derive(Debug)]
pub struct RegistryService {
    /// `None` if no private sockets can be made: then the run cannot be queried.
    place: Option<SocketDirectory>,
    /// For queries, and for requests.
    listeners: Option<[UnixListener; 2]>,
    opened: Instant,
}

impl RegistryService {
    /// Accepts connections; they wait until [`RegistryService::serve`].
    pub fn open() -> Self {
        let opened = Instant::now();
        let found = (0..ATTEMPTS).find_map(|_| SocketDirectory::own().find_map(listen));
        let (place, listeners) = found.unzip();
        Self { place, listeners, opened }
    }

    /// Answers from now on. Signals that this process reads must be blocked already.
    pub fn serve(&mut self, run: Running) -> Arc<RunRegistry> {
        let (about, requests) = self.listeners.take().map(|[about, requests]| (about, requests)).unzip();
        let requests = requests.and_then(requests::take);
        let registry = Arc::new(RunRegistry { started: self.opened, run: Mutex::new(run), requests });
        if let Some(listener) = about {
            let registry = Arc::clone(&registry);
            let thread = thread::Builder::new().name("answers".to_owned());
            // If there is no thread, the run continues without.
            let _ = thread.spawn(move || serve(&listener, &registry));
        }
        registry
    }
}

impl Drop for RegistryService {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            socket::remove(place, std::process::id());
            place.remove_if_empty();
        }
    }
}

/// Makes both sockets in a directory, if possible.
fn listen(place: SocketDirectory) -> Option<(SocketDirectory, [UnixListener; 2])> {
    let this = std::process::id();
    socket::clear(&place);
    place.hold();
    let [about, requests] =
        [Purpose::Run, Purpose::Requests].map(|purpose| socket::listen(&place, this, purpose));
    match (about, requests) {
        (Ok(about), Ok(requests)) => Some((place, [about, requests])),
        _ => {
            socket::remove(&place, this);
            None
        }
    }
}

/// The present answer to queries.
#[derive(Debug)]
pub struct RunRegistry {
    started: Instant,
    run: Mutex<Running>,
    /// The requests to the run, if they are possible.
    requests: Option<Arc<Inbox>>,
}

impl RunRegistry {
    /// A node has got a process.
    pub fn started(&self, node: u16, process: u32) {
        if let Some(node) = self.lock().nodes.get_mut(usize::from(node)) {
            node.process = Some(process);
        }
    }

    /// Records a node's new state.
    pub fn reached(&self, node: u16, state: State) {
        if let Some(node) = self.lock().nodes.get_mut(usize::from(node)) {
            node.state = state;
        }
    }

    /// The nodes record from now on, or do not.
    pub fn monitored(&self, monitored: bool) {
        self.lock().monitored = monitored;
    }

    /// The program, as the user named it.
    pub fn program(&self) -> String {
        self.lock().program.clone()
    }

    /// The requests to the run, if they are possible.
    pub fn requests(&self) -> Option<&Arc<Inbox>> {
        self.requests.as_ref()
    }

    fn now(&self) -> Running {
        Running { seconds: self.started.elapsed().as_secs_f64(), ..self.lock().clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        lock(&self.run)
    }
}

fn serve(listener: &UnixListener, registry: &RunRegistry) {
    loop {
        match listener.accept() {
            // Errors of the reader are ignored.
            Ok((stream, _)) => drop(answer(stream, registry)),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            // A retry, as with no descriptors left, might loop for ever.
            Err(_) => return,
        }
    }
}

/// Sends the document, which fits into the socket's buffer.
fn answer(mut stream: UnixStream, registry: &RunRegistry) -> io::Result<()> {
    let asker = credentials::of_peer(&stream)?;
    if ![credentials::this_user(), 0].contains(&asker.user) {
        return Ok(());
    }
    stream.set_nonblocking(true)?;
    stream.write_all(&serde_json::to_vec(&registry.now())?)
}

#[cfg(test)]
mod tests {
    use super::super::RunningNode;
    use super::*;
    use std::io::Read;

    #[test]
    fn the_largest_run_is_told_to_somebody_who_does_not_read() {
        let node = RunningNode::starting(Some("h".repeat(64)));
        let run = Running {
            program: "p".repeat(4096),
            seconds: 0.0,
            fabric: "tcp".to_owned(),
            consistency: "sc".to_owned(),
            processors_each: 1,
            span: 1 << 40,
            monitored: false,
            common: false,
            nodes: vec![node; gondwana_topology::MAX_NODES],
        };
        let registry = RunRegistry { started: Instant::now(), run: Mutex::new(run), requests: None };
        registry.started(255, u32::MAX);
        registry.reached(255, State::Up);
        registry.reached(256, State::Up);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        answer(ours, &registry).unwrap();
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        let told: Running = serde_json::from_str(&text).unwrap();
        assert_eq!((told.nodes[255].process, told.nodes[255].state), (Some(u32::MAX), State::Up));
        assert_eq!(told.nodes[0].state, State::Starting);
    }

    #[test]
    fn somebody_who_has_gone_away_does_no_harm() {
        let run = Running {
            program: "p".to_owned(),
            seconds: 0.0,
            fabric: "shm".to_owned(),
            consistency: "rc".to_owned(),
            processors_each: 1,
            span: 1 << 40,
            monitored: false,
            common: false,
            nodes: vec![],
        };
        let registry = RunRegistry { started: Instant::now(), run: Mutex::new(run), requests: None };
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(answer(ours, &registry).unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
