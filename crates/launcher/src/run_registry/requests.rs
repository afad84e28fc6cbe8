//! Requests of commands to a run, such as monitoring. A second socket takes them, one on each connection, and a
//! thread of the launcher passes them on to the supervisor.

use super::credentials;
use gondwana_locks::lock;
use gondwana_monitor::FilterText;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of a request after its connection. A request comes right behind its connection, unless a busy computer lets
/// the asker wait for a processor in between: whom it is closed to takes the run for ended.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The most connections without a complete request. Beyond that the oldest is closed.
const MOST: usize = 64;

/// Longest request, in bytes.
const LONGEST: usize = 1 << 20;

/// A request to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Record from now on.
    Record {
        /// The file, as an absolute path; an existing file is renamed as with `--monitor`.
        file: PathBuf,
        /// Filters that are set until the recording ends.
        filters: Vec<FilterText>,
    },
    /// Record no more.
    Stop,
    /// Send, behind the answer, a recording with the counters of filters.
    Counters,
    /// Send, behind the answer, the stacks of all threads and what they wait for: a [`StackReport`](crate::stacks::StackReport).
    Stacks,
    /// Let a process trace a node.
    LetTrace {
        /// The tracer.
        process: u32,
        /// The node.
        node: u16,
    },
    /// Send the nodes' records, behind the answer, until the connection is closed.
    Follow,
}

/// The answer: the file of the recording, if there is one, or a sentence with the reason of a refusal.
pub type RequestAnswer = Result<Option<PathBuf>, String>;

/// A request, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    /// The request.
    pub request: Request,
    /// The connection to the asker.
    pub asker: UnixStream,
}

/// Answers. The connection stays open as long as the returned stream.
pub fn answer(mut asker: UnixStream, answer: &RequestAnswer) -> UnixStream {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    // A socket holds far more than an answer, and an asker that is gone needs none.
    let _ = asker.set_nonblocking(true).and_then(|()| asker.write_all(&line));
    asker
}

/// Requests that wait for the supervisor.
#[derive(Debug)]
pub struct Inbox {
    requests: Mutex<VecDeque<Asked>>,
    /// Readable while there are requests.
    bell: OwnedFd,
}

impl Inbox {
    fn new() -> io::Result<Self> {
        // SAFETY: touches no memory.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self { requests: Mutex::default(), bell: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    fn requests(&self) -> MutexGuard<'_, VecDeque<Asked>> {
        lock(&self.requests)
    }

    fn put(&self, asked: Asked) {
        self.requests().push_back(asked);
        let one = 1_u64;
        // SAFETY: the kernel reads eight bytes. It refuses only when the descriptor is readable anyway.
        unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Takes the requests since the last call.
    pub fn take(&self) -> VecDeque<Asked> {
        let mut count = 0_u64;
        // SAFETY: the kernel writes eight bytes, or nothing if there is nothing.
        unsafe { libc::read(self.bell.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        std::mem::take(&mut *self.requests())
    }
}

impl AsRawFd for Inbox {
    fn as_raw_fd(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}

/// Takes requests from now on until this process ends, if that is possible here.
pub fn take(listener: UnixListener) -> Option<Arc<Inbox>> {
    let inbox = Arc::new(Inbox::new().ok()?);
    let thread = thread::Builder::new().name("requests".to_owned());
    let taking = Arc::clone(&inbox);
    thread.spawn(move || serve(&listener, &taking)).ok()?;
    Some(inbox)
}

/// Reads all connections in parallel, so a silent one does not delay others.
fn serve(listener: &UnixListener, inbox: &Inbox) {
    // The connection may already be closed.
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let mut callers: VecDeque<Caller> = VecDeque::new();
    loop {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = vec![poll(listener.as_raw_fd())];
        fds.extend(callers.iter().map(|caller| poll(caller.stream.as_raw_fd())));
        let left = callers.front().map(|oldest| oldest.end.saturating_duration_since(Instant::now()));
        let millis = left.map_or(-1, |left| i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX));
        // SAFETY: the kernel reads and writes the array given. An error means "look again".
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, millis) };
        callers = callers.into_iter().filter_map(|caller| caller.listen(inbox)).collect();
        if fds[0].revents == 0 {
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                callers.extend(Caller::new(stream).ok().flatten().and_then(|caller| caller.listen(inbox)));
                if callers.len() > MOST {
                    callers.pop_front();
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            // As with no descriptors left: the oldest connection is closed.
            Err(_) if !callers.is_empty() => drop(callers.pop_front()),
            // A retry might loop for ever.
            Err(_) => return,
        }
    }
}

/// A connection without a complete request.
struct Caller {
    stream: UnixStream,
    text: Vec<u8>,
    end: Instant,
}

impl Caller {
    /// A connection of a user that may make requests.
    fn new(stream: UnixStream) -> io::Result<Option<Self>> {
        let asker = credentials::of_peer(&stream)?;
        if ![credentials::this_user(), 0].contains(&asker.user) {
            return Ok(None);
        }
        stream.set_nonblocking(true)?;
        Ok(Some(Self { stream, text: vec![], end: Instant::now() + REQUEST_TIMEOUT }))
    }

    /// Reads what has arrived; returns the caller, unless the request is complete or invalid.
    fn listen(mut self, inbox: &Inbox) -> Option<Self> {
        match self.hear() {
            // A connection without a valid request in time gets no answer.
            Ok(None) => (Instant::now() < self.end).then_some(self),
            Ok(Some(request)) => {
                inbox.put(Asked { request, asker: self.stream });
                None
            }
            Err(_) => None,
        }
    }

    /// The request, if it is complete.
    fn hear(&mut self) -> io::Result<Option<Request>> {
        let left = (LONGEST - self.text.len()) as u64;
        match (&self.stream).take(left).read_to_end(&mut self.text) {
            Ok(_) => {
                let request = serde_json::from_slice(&self.text)?;
                self.stream.set_nonblocking(false)?;
                Ok(Some(request))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::Shutdown;

    #[test]
    fn requests_wait_in_the_order_in_which_they_came() {
        let inbox = Inbox::new().unwrap();
        assert!(inbox.take().is_empty());
        let mut askers = vec![];
        for request in [Request::Stop, Request::Follow] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(&serde_json::to_vec(&request).unwrap()).unwrap();
            theirs.shutdown(Shutdown::Write).unwrap();
            assert!(Caller::new(ours).unwrap().unwrap().listen(&inbox).is_none());
            askers.push(theirs);
        }
        let taken = inbox.take();
        assert!(taken.iter().map(|asked| &asked.request).eq([&Request::Stop, &Request::Follow]));
        assert!(inbox.take().is_empty());
        for (asked, asker) in taken.into_iter().zip(askers) {
            drop(answer(asked.asker, &Err("no".to_owned())));
            let mut line = String::new();
            BufReader::new(asker).read_line(&mut line).unwrap();
            assert_eq!(serde_json::from_str::<RequestAnswer>(&line).unwrap(), Err("no".to_owned()));
        }
    }

    #[test]
    fn nonsense_is_no_request() {
        let inbox = Inbox::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"\"Dance\"").unwrap();
        drop(theirs);
        assert!(Caller::new(ours).unwrap().unwrap().listen(&inbox).is_none());
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn a_request_may_come_in_pieces() {
        let inbox = Inbox::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let text = serde_json::to_vec(&Request::Counters).unwrap();
        let mut caller = Caller::new(ours).unwrap().unwrap();
        for byte in text {
            theirs.write_all(&[byte]).unwrap();
            caller = caller.listen(&inbox).unwrap();
        }
        theirs.shutdown(Shutdown::Write).unwrap();
        assert!(caller.listen(&inbox).is_none());
        assert_eq!(inbox.take().pop_front().unwrap().request, Request::Counters);
    }

    #[test]
    fn who_says_too_much_or_takes_too_long_is_not_heard() {
        let inbox = Inbox::new().unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let writing = thread::spawn(move || theirs.write_all(&vec![b' '; 2 * LONGEST]));
        let mut caller = Caller::new(ours).unwrap();
        while let Some(more) = caller {
            caller = more.listen(&inbox);
        }
        assert!(writing.join().unwrap().is_err());
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut caller = Caller::new(ours).unwrap().unwrap();
        caller.end = Instant::now();
        assert!(caller.listen(&inbox).is_none());
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn callers_who_say_nothing_keep_nobody_waiting() {
        let place = std::env::temp_dir().join(format!("gondwana-callers-{}", std::process::id()));
        let inbox = take(UnixListener::bind(&place).unwrap()).unwrap();
        // More connections than the limit: one after the other they would take minutes.
        let silent: Vec<_> = (0..3 * MOST).map(|_| UnixStream::connect(&place).unwrap()).collect();
        let mut asker = UnixStream::connect(&place).unwrap();
        std::fs::remove_file(&place).unwrap();
        asker.write_all(&serde_json::to_vec(&Request::Stop).unwrap()).unwrap();
        asker.shutdown(Shutdown::Write).unwrap();
        let mut bell = libc::pollfd { fd: inbox.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one pollfd.
        assert_eq!(unsafe { libc::poll(&raw mut bell, 1, 30_000) }, 1);
        assert_eq!(inbox.take().pop_front().unwrap().request, Request::Stop);
        // The first ones have been closed.
        assert_eq!((&silent[0]).read(&mut [0]).unwrap(), 0);
    }
}
