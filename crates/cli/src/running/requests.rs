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
use std::time::Duration;

/// How long somebody who has connected may take to say what for: those who come later wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

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
pub type Answer = Result<Option<PathBuf>, String>;

/// A request, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// The connection to the asker.
    pub asker: UnixStream,
}

/// Answers. The connection stays open as long as the stream that this gives back.
pub fn answer(mut asker: UnixStream, answer: &Answer) -> UnixStream {
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

fn serve(listener: &UnixListener, inbox: &Inbox) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                // Who says nothing intelligible in time is not answered.
                if let Ok(Some(asked)) = read(stream) {
                    inbox.put(asked);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            // Trying again, as with no descriptors left, might fail as fast for ever.
            Err(_) => return,
        }
    }
}

/// Reads the request of somebody who may make one.
fn read(stream: UnixStream) -> io::Result<Option<Asked>> {
    let asker = credentials::of_peer(&stream)?;
    if ![credentials::this_user(), 0].contains(&asker.user) {
        return Ok(None);
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = vec![];
    (&stream).take(LONGEST).read_to_end(&mut text)?;
    Ok(Some(Asked { request: serde_json::from_slice(&text)?, asker: stream }))
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
            inbox.put(read(ours).unwrap().unwrap());
            askers.push(theirs);
        }
        let taken = inbox.take();
        assert!(taken.iter().map(|asked| &asked.request).eq([&Request::Stop, &Request::Follow]));
        assert!(inbox.take().is_empty());
        for (asked, asker) in taken.into_iter().zip(askers) {
            drop(answer(asked.asker, &Err("no".to_owned())));
            let mut line = String::new();
            BufReader::new(asker).read_line(&mut line).unwrap();
            assert_eq!(serde_json::from_str::<Answer>(&line).unwrap(), Err("no".to_owned()));
        }
    }

    #[test]
    fn nonsense_is_no_request() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"\"Dance\"").unwrap();
        drop(theirs);
        assert!(read(ours).is_err());
    }
}
