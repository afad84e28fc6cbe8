//! What others ask of a run besides what it is: to be monitored. A second socket takes the requests, one on each
//! connection, and a thread of the launcher passes them on to whoever follows the nodes.

use super::credentials;
use gondwana_monitor::FilterText;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long somebody who has connected may take to say what for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// How many may be about to say it at the same time. If there are more, the one goes who has taken longest: a request comes
/// right behind its connection.
const MOST: usize = 64;

/// Longest request, in bytes.
const LONGEST: u64 = 1 << 20;

/// What can be asked of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Record from now on.
    Record {
        /// The file, as an absolute path; one of that name is kept as with `--monitor`.
        file: PathBuf,
        /// What is to be counted besides, until the recording ends.
        filters: Vec<FilterText>,
    },
    /// Record no more.
    Stop,
    /// Send the asker, behind the answer, a recording that has what the counters of filters have counted.
    Counters,
    /// Send the asker what the nodes record, behind the answer, until the asker closes the connection.
    Follow,
}

/// What is answered: the file of the recording, if there is one, or a sentence that says why not.
pub type RequestAnswer = Result<Option<PathBuf>, String>;

/// A request, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// The connection to the asker.
    pub asker: UnixStream,
}

/// Answers. The connection stays open as long as the stream that this gives back.
pub fn answer(mut asker: UnixStream, answer: &RequestAnswer) -> UnixStream {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    // A socket holds far more than an answer, and an asker that is gone needs none.
    let _ = asker.set_nonblocking(true).and_then(|()| asker.write_all(&line));
    asker
}

/// Requests that wait for whoever follows the nodes.
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
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, asked: Asked) {
        self.requests().push_back(asked);
        let one = 1_u64;
        // SAFETY: the kernel reads eight bytes. It refuses only when the descriptor is readable anyway.
        unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// The requests that have come since the last time.
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

/// Listens to all who have connected side by side: nobody who says nothing keeps others waiting.
fn serve(listener: &UnixListener, inbox: &Inbox) {
    // Who has connected may have gone again.
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    let mut callers: VecDeque<Caller> = VecDeque::new();
    loop {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = vec![poll(listener.as_raw_fd())];
        fds.extend(callers.iter().map(|caller| poll(caller.stream.as_raw_fd())));
        let left = callers.front().map(|oldest| oldest.end.saturating_duration_since(Instant::now()));
        let millis = left.map_or(-1, |left| left.as_millis() as i32 + 1);
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
            // As with no descriptors left: somebody's is given up for it.
            Err(_) if !callers.is_empty() => drop(callers.pop_front()),
            // Trying again might fail as fast for ever.
            Err(_) => return,
        }
    }
}

/// Somebody who has connected and is about to say what for.
struct Caller {
    stream: UnixStream,
    text: Vec<u8>,
    end: Instant,
}

impl Caller {
    /// Somebody who may make a request.
    fn new(stream: UnixStream) -> io::Result<Option<Self>> {
        let asker = credentials::of_peer(&stream)?;
        if ![credentials::this_user(), 0].contains(&asker.user) {
            return Ok(None);
        }
        stream.set_nonblocking(true)?;
        Ok(Some(Self { stream, text: vec![], end: Instant::now() + REQUEST_TIMEOUT }))
    }

    /// Takes what has come; the caller, unless the request is complete or can be none.
    fn listen(mut self, inbox: &Inbox) -> Option<Self> {
        match self.hear() {
            // Who says nothing intelligible in time is not answered.
            Ok(None) => (Instant::now() < self.end).then_some(self),
            Ok(Some(request)) => {
                inbox.put(Asked { request, asker: self.stream });
                None
            }
            Err(_) => None,
        }
    }

    /// The request, if it has come to its end.
    fn hear(&mut self) -> io::Result<Option<Request>> {
        let left = LONGEST - self.text.len() as u64;
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
        let writing = thread::spawn(move || theirs.write_all(&vec![b' '; 2 * LONGEST as usize]));
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
        // More than are listened to at the same time: served in turn they would take minutes.
        let silent: Vec<_> = (0..3 * MOST).map(|_| UnixStream::connect(&place).unwrap()).collect();
        let mut asker = UnixStream::connect(&place).unwrap();
        std::fs::remove_file(&place).unwrap();
        asker.write_all(&serde_json::to_vec(&Request::Stop).unwrap()).unwrap();
        asker.shutdown(Shutdown::Write).unwrap();
        let mut bell = libc::pollfd { fd: inbox.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one pollfd.
        assert_eq!(unsafe { libc::poll(&raw mut bell, 1, 30_000) }, 1);
        assert_eq!(inbox.take().pop_front().unwrap().request, Request::Stop);
        // The first have had to go.
        assert_eq!((&silent[0]).read(&mut [0]).unwrap(), 0);
    }
}
