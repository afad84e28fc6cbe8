//! The agent's stream to its launcher; the agent ends with it.

use super::protocol::{AgentAnswer, Frame};
use gondwana_locks::lock;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex};
use std::thread;

/// The way to the launcher, shared by the threads that relay output.
#[derive(Clone)]
pub(super) struct LauncherLink(Arc<Mutex<File>>);

impl LauncherLink {
    /// Everything goes to this file.
    pub(super) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(file)))
    }

    /// Sends bytes that are no frame.
    pub(super) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.0).write_all(bytes)
    }

    /// Sends a frame.
    pub(super) fn frame(&self, frame: &Frame) {
        let written = frame.write(&mut *lock(&self.0));
        if written.is_err() {
            // Without a launcher there is no run; the nodes die with this process.
            std::process::exit(1);
        }
    }

    /// Sends a message.
    pub(super) fn answer(&self, answer: &AgentAnswer) {
        if let Ok(frame) = Frame::message(answer) {
            self.frame(&frame);
        }
    }
}

/// While this exists, the process ends as soon as the launcher has closed its end: for long work that reads no
/// commands.
pub(super) struct Vigil {
    /// Its end ends the thread that watches.
    _over: Option<PipeWriter>,
}

impl Vigil {
    /// Watches the descriptor of the launcher's commands.
    pub(super) fn begin(commands: RawFd) -> Self {
        Self::with(commands, || std::process::exit(1))
    }

    fn with(commands: RawFd, gone: impl FnOnce() + Send + 'static) -> Self {
        let Ok((watched, over)) = io::pipe() else { return Self { _over: None } };
        // Without a thread the launcher's end is noticed later.
        let watching = thread::Builder::new().spawn(move || {
            // Commands that wait are none of its business.
            let poll = |fd| libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
            let mut fds = [poll(commands), poll(watched.as_raw_fd())];
            while fds.iter().all(|fd| fd.revents == 0) {
                // SAFETY: the kernel reads and writes two pollfds.
                unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
            }
            if fds[1].revents == 0 {
                gone();
            }
        });
        Self { _over: watching.is_ok().then_some(over) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    /// Whether a vigil at `ours` notices when `theirs` is closed.
    fn notices<E: Write>(ours: &impl AsRawFd, mut theirs: E, go: bool) -> bool {
        let (sender, noticed) = channel();
        let vigil = Vigil::with(ours.as_raw_fd(), move || sender.send(()).unwrap());
        theirs.write_all(b"a command").unwrap();
        if go {
            drop(theirs);
            return noticed.recv_timeout(Duration::from_secs(60)).is_ok();
        }
        drop(vigil);
        // Disconnected once the thread has ended.
        let heard = noticed.recv_timeout(Duration::from_secs(60));
        assert_eq!(heard, Err(RecvTimeoutError::Disconnected));
        false
    }

    #[test]
    fn a_launcher_that_goes_is_noticed_behind_commands_that_nobody_has_read() {
        for go in [true, false] {
            let (ours, theirs) = io::pipe().unwrap();
            assert_eq!(notices(&ours, theirs, go), go);
            let (ours, theirs) = UnixStream::pair().unwrap();
            assert_eq!(notices(&ours, theirs, go), go);
        }
    }
}
