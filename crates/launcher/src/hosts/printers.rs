//! The launcher's threads that write the program's output. A slow reader delays only these: [`WINDOW`] limits the
//! bytes that wait here for each output of each node.

use super::protocol::{Stream, WINDOW};
use gondwana_locks::{lock, wait, wait_timeout_while};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Credits are returned in this unit, so that the host can send while these bytes are being written here.
const SHARE: usize = WINDOW / 4;

/// Something that a node has printed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The host of the node, by its index in the list.
    pub host: usize,
    /// The node.
    pub node: u16,
    /// To which output.
    pub stream: Stream,
    /// What.
    pub bytes: Vec<u8>,
}

/// Events of printers.
#[derive(Debug)]
pub(super) enum Printed {
    /// So much more of an output of a node of a host has been written.
    Taken(usize, u16, Stream, usize),
    /// An output cannot be written; further bytes for it are lost.
    Unwritable(Stream, io::Error),
    /// Everything has been written, after a call of [`Printers::is_done`].
    All,
}

/// Writers for standard output and standard error.
pub(super) struct Printers {
    /// The same printer twice if both outputs are one file, to keep the order.
    of: [Arc<Printer>; 2],
}

impl Printers {
    /// Starts printers for this process's streams. They call `tell` on their threads.
    pub(super) fn start(tell: impl Fn(Printed) + Send + Sync + 'static) -> io::Result<Self> {
        let (output, errors) =
            (io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned());
        Self::with([output?.into(), errors?.into()], tell)
    }

    fn with(files: [File; 2], tell: impl Fn(Printed) + Send + Sync + 'static) -> io::Result<Self> {
        let same = is_same(&files[0], &files[1]);
        let (files, tell) = (Arc::new(files), Arc::new(tell));
        let printer = || {
            let printer = Arc::new(Printer::default());
            let (this, files, tell) = (Arc::clone(&printer), Arc::clone(&files), Arc::clone(&tell));
            thread::Builder::new().spawn(move || this.work(&files, &*tell)).map(|_| printer)
        };
        let output = printer()?;
        let errors = if same { Arc::clone(&output) } else { printer()? };
        Ok(Self { of: [output, errors] })
    }

    /// Has something written. Does not wait.
    pub(super) fn print(&self, piece: Piece) {
        let printer = &self.of[piece.stream.index()];
        printer.lock().waiting.push_back(piece);
        printer.changed.notify_all();
    }

    /// Waits until everything has been written, with a timeout, which a slow reader costs only once.
    pub(super) fn settle(&self, timeout: Duration) {
        self.of.iter().for_each(|printer| printer.settle(timeout));
    }

    /// True if everything has been written. Otherwise [`Printed::All`] will come later.
    pub(super) fn is_done(&self) -> bool {
        // Calls both, so that both report.
        self.of.iter().filter(|printer| !printer.is_done()).count() == 0
    }
}

/// True if both descriptors lead to the same file.
fn is_same(one: &File, other: &File) -> bool {
    let identity = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

#[derive(Default)]
struct Printer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Piece>,
    /// A piece is being written.
    busy: bool,
    /// A wait for the reader has timed out.
    slow: bool,
    /// [`Printed::All`] is wanted.
    awaited: bool,
}

impl Queue {
    fn is_done(&self) -> bool {
        self.waiting.is_empty() && !self.busy
    }
}

impl Printer {
    /// Writes pieces until this process ends.
    fn work(&self, files: &[File; 2], tell: &dyn Fn(Printed)) {
        let mut lost = [false; 2];
        let mut written = BTreeMap::new();
        loop {
            let Piece { host, node, stream, bytes } = self.next(tell);
            let index = stream.index();
            if lost[index] {
                continue;
            }
            if let Err(error) = write(&files[index], &bytes) {
                lost[index] = true;
                tell(Printed::Unwritable(stream, error));
                continue;
            }
            let sum: &mut usize = written.entry((node, index)).or_default();
            *sum += bytes.len();
            if *sum >= SHARE {
                tell(Printed::Taken(host, node, stream, std::mem::take(sum)));
            }
        }
    }

    /// Waits for the next piece.
    fn next(&self, tell: &dyn Fn(Printed)) -> Piece {
        let mut queue = self.lock();
        loop {
            queue.busy = false;
            if let Some(piece) = queue.waiting.pop_front() {
                queue.busy = true;
                return piece;
            }
            queue.slow = false;
            self.changed.notify_all();
            if std::mem::take(&mut queue.awaited) {
                drop(queue);
                tell(Printed::All);
                queue = self.lock();
                continue;
            }
            queue = wait(&self.changed, queue);
        }
    }

    fn settle(&self, timeout: Duration) {
        let queue = self.lock();
        if queue.slow {
            return;
        }
        let mut queue = wait_timeout_while(&self.changed, queue, timeout, |queue| !queue.is_done());
        queue.slow = !queue.is_done();
    }

    fn is_done(&self) -> bool {
        let mut queue = self.lock();
        queue.awaited = true;
        queue.is_done()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

/// Writes everything, also to a non-blocking file.
fn write(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut fd = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
                // SAFETY: the kernel reads and writes one pollfd.
                unsafe { libc::poll(&raw mut fd, 1, -1) };
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read, pipe};
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::{Receiver, channel};

    const LONG: Duration = Duration::from_secs(60);

    fn file(end: impl Into<OwnedFd>) -> File {
        end.into().into()
    }

    fn null() -> File {
        File::options().write(true).open("/dev/null").unwrap()
    }

    fn printers(files: [File; 2]) -> (Printers, Receiver<Printed>) {
        let (sender, told) = channel();
        (Printers::with(files, move |printed| drop(sender.send(printed))).unwrap(), told)
    }

    /// Printers with a pipe as standard output, and their events.
    fn with_pipe() -> (Printers, Receiver<Printed>, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let (printers, told) = printers([file(writer), null()]);
        (printers, told, reader)
    }

    fn piece(stream: Stream, bytes: &[u8]) -> Piece {
        Piece { host: 1, node: 3, stream, bytes: bytes.to_vec() }
    }

    fn settle(printers: &Printers) {
        printers.settle(LONG);
        assert!(printers.is_done());
    }

    #[test]
    fn what_is_written_is_told_now_and_then() {
        let (printers, told, mut reader) = with_pipe();
        let all = vec![7; SHARE - 1];
        printers.print(piece(Stream::Output, &all));
        printers.print(piece(Stream::Output, b"xy"));
        let mut come = vec![0; SHARE + 1];
        reader.read_exact(&mut come).unwrap();
        assert_eq!((&come[..SHARE - 1], &come[SHARE - 1..]), (&all[..], &b"xy"[..]));
        let first = told.recv_timeout(LONG).unwrap();
        assert!(matches!(first, Printed::Taken(1, 3, Stream::Output, sum) if sum == SHARE + 1), "{first:?}");
        settle(&printers);
    }

    #[test]
    fn a_reader_who_is_slow_keeps_nobody_else_waiting() {
        let (output, writer) = pipe().unwrap();
        let (mut errors, error_writer) = pipe().unwrap();
        let (printers, told) = printers([file(writer), file(error_writer)]);
        // More than fits into the pipe.
        printers.print(piece(Stream::Output, &[7; 2 * WINDOW]));
        printers.print(piece(Stream::Errors, b"help"));
        let mut help = [0; 4];
        errors.read_exact(&mut help).unwrap();
        assert_eq!(&help, b"help");
        printers.settle(Duration::from_millis(1));
        // A second timeout would take a minute.
        printers.settle(LONG);
        assert!(!printers.is_done());
        { output }.read_exact(&mut [0; 2 * WINDOW]).unwrap();
        loop {
            if let Printed::All = told.recv_timeout(LONG).unwrap() {
                break;
            }
        }
        settle(&printers);
    }

    #[test]
    fn a_reader_who_has_gone_is_told_once_and_the_other_stream_goes_on() {
        let (mut errors, error_writer) = pipe().unwrap();
        let (reader, writer) = pipe().unwrap();
        let (printers, told) = printers([file(writer), file(error_writer)]);
        drop(reader);
        for _ in 0..3 {
            printers.print(piece(Stream::Output, b"x"));
        }
        let first = told.recv_timeout(LONG).unwrap();
        let Printed::Unwritable(Stream::Output, error) = first else { panic!("{first:?}") };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        settle(&printers);
        printers.print(piece(Stream::Errors, b"help"));
        let mut help = [0; 4];
        errors.read_exact(&mut help).unwrap();
        assert!(!told.try_iter().any(|printed| matches!(printed, Printed::Unwritable(..))));
    }

    #[test]
    fn a_full_disk_is_told() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (printers, told) = printers([full, null()]);
        printers.print(piece(Stream::Output, b"x"));
        let first = told.recv_timeout(LONG).unwrap();
        assert!(
            matches!(&first, Printed::Unwritable(Stream::Output, error) if error.raw_os_error() == Some(libc::ENOSPC)),
            "{first:?}"
        );
    }

    #[test]
    fn a_pipe_that_does_not_wait_loses_nothing() {
        let (mut reader, writer) = pipe().unwrap();
        // SAFETY: touches no memory.
        assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
        let (printers, _told) = printers([file(writer), null()]);
        printers.print(piece(Stream::Output, &[7; WINDOW]));
        let mut come = vec![0; WINDOW];
        reader.read_exact(&mut come).unwrap();
        assert!(come.iter().all(|&byte| byte == 7));
        settle(&printers);
    }

    #[test]
    fn what_goes_to_one_file_keeps_its_order() {
        let (mut reader, writer) = pipe().unwrap();
        let (printers, _told) = printers([file(writer.try_clone().unwrap()), file(writer)]);
        for (stream, text) in [(Stream::Output, "one "), (Stream::Errors, "two "), (Stream::Output, "three")]
        {
            printers.print(piece(stream, text.as_bytes()));
        }
        let mut come = [0; 13];
        reader.read_exact(&mut come).unwrap();
        assert_eq!(&come, b"one two three");
    }
}
