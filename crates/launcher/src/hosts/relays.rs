//! The agent's threads that carry the program's streams between its nodes and the launcher.

use super::protocol::{AgentAnswer, CHUNK, Frame, Stream, WINDOW};
use super::upwards::LauncherLink;
use crate::process::descriptors::null;
use crate::process::events::End;
use gondwana_console::failure::Failure;
use gondwana_locks::{lock, wait, wait_while};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// The streams of the nodes of this host.
pub(super) struct Relays {
    launcher: LauncherLink,
    /// For each node and output.
    outputs: BTreeMap<u16, [Arc<Relay>; 2]>,
    /// For each output a pipe that its relays watch: they end when this is dropped.
    open: [Option<PipeWriter>; 2],
    closing: Arc<[PipeReader; 2]>,
    /// The way to the standard input of node 0.
    input: Option<Sender<Vec<u8>>>,
    /// Nodes that have ended, with their relays.
    ends: Sender<(u16, End, Vec<Arc<Relay>>)>,
}

impl Relays {
    /// No stream yet.
    pub(super) fn new(launcher: &LauncherLink) -> Result<Self, Failure> {
        let ((output, output_open), (errors, errors_open)) = (pipe()?, pipe()?);
        let (ends, ended) = channel::<(u16, End, Vec<Arc<Relay>>)>();
        let to_launcher = launcher.clone();
        thread::spawn(move || {
            for (node, end, relays) in ended {
                tell(&to_launcher, node, end, relays);
            }
        });
        Ok(Self {
            launcher: launcher.clone(),
            outputs: BTreeMap::new(),
            open: [Some(output_open), Some(errors_open)],
            closing: Arc::new([output, errors]),
            input: None,
            ends,
        })
    }

    /// Makes the standard streams of a node and starts to relay them.
    pub(super) fn add(&mut self, node: u16) -> Result<[OwnedFd; 3], Failure> {
        let (output, output_end) = pipe()?;
        let (errors, errors_end) = pipe()?;
        let relay = |stream, from| Relay::start(node, stream, from, &self.launcher, &self.closing);
        self.outputs.insert(node, [relay(Stream::Output, output), relay(Stream::Errors, errors)]);
        let input = if node == 0 { self.carry_input()? } else { null()? };
        Ok([input, output_end.into(), errors_end.into()])
    }

    fn carry_input(&mut self) -> Result<OwnedFd, Failure> {
        let (end, mut input) = pipe()?;
        let (sender, receiver) = channel::<Vec<u8>>();
        self.input = Some(sender);
        let launcher = self.launcher.clone();
        launcher.answer(&AgentAnswer::WantInput);
        thread::spawn(move || {
            // Ends when the program has closed its input.
            while let Ok(bytes) = receiver.recv()
                && input.write_all(&bytes).is_ok()
            {
                launcher.answer(&AgentAnswer::WantInput);
            }
        });
        Ok(end.into())
    }

    /// Gives node 0 more to read.
    pub(super) fn input(&mut self, bytes: Vec<u8>) {
        if self.input.as_ref().is_some_and(|input| input.send(bytes).is_err()) {
            self.input = None;
        }
    }

    /// Ends the input of node 0.
    pub(super) fn end_input(&mut self) {
        self.input = None;
    }

    /// The launcher has written so much of an output of a node.
    pub(super) fn taken(&self, node: u16, stream: Stream, bytes: usize) {
        if let Some(relays) = self.outputs.get(&node) {
            relays[stream.index()].taken(bytes);
        }
    }

    /// Closes an output: the nodes' next write fails, as natively.
    pub(super) fn close(&mut self, stream: Stream) {
        self.open[stream.index()] = None;
        self.outputs.values().for_each(|relays| relays[stream.index()].close());
    }

    /// Reports the end of a node to the launcher, behind its output. Does not wait.
    pub(super) fn ended(&mut self, node: u16, end: End) {
        let relays = self.outputs.get(&node).map_or(vec![], |relays| relays.to_vec());
        // The thread at the other end lives as long as this.
        let _ = self.ends.send((node, end, relays));
    }
}

fn pipe() -> Result<(PipeReader, PipeWriter), Failure> {
    io::pipe().map_err(|error| Failure::system("making pipes for the program", &error))
}

/// Reports an end to the launcher: first the node's output as far as there is credit, then the end, then the rest of
/// the output.
fn tell(launcher: &LauncherLink, node: u16, end: End, relays: Vec<Arc<Relay>>) {
    // A process that the node has left behind may write for ever.
    let mut left: Vec<_> = relays.into_iter().map(|relay| (relay.written(), relay)).collect();
    left.retain(|(written, relay)| !relay.send_until(*written));
    launcher.answer(&AgentAnswer::Ended(node, end));
    if left.is_empty() {
        return launcher.answer(&AgentAnswer::Written(node));
    }
    let launcher = launcher.clone();
    thread::spawn(move || {
        left.iter().for_each(|(written, relay)| relay.until(|state| state.has_sent(*written)));
        launcher.answer(&AgentAnswer::Written(node));
    });
}

/// One output of one node.
struct Relay {
    state: Mutex<RelayState>,
    changed: Condvar,
}

struct RelayState {
    /// `None` at the end: the other ends are closed, or the output is closed.
    from: Option<PipeReader>,
    /// How many bytes have been read from it, and how many of them sent.
    read: u64,
    sent: u64,
    /// Bytes that the launcher has not written yet.
    outstanding: usize,
    /// The launcher has no room.
    starved: bool,
    closed: bool,
}

impl RelayState {
    /// True if so many bytes have been sent, or no more will be.
    fn has_sent(&self, bytes: u64) -> bool {
        self.sent >= bytes || self.from.is_none()
    }
}

impl Relay {
    fn start(
        node: u16,
        stream: Stream,
        from: PipeReader,
        launcher: &LauncherLink,
        closing: &Arc<[PipeReader; 2]>,
    ) -> Arc<Self> {
        let from = Some(from);
        let state = RelayState { from, read: 0, sent: 0, outstanding: 0, starved: false, closed: false };
        let relay = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        let (this, launcher, closing) = (Arc::clone(&relay), launcher.clone(), Arc::clone(closing));
        thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            while let Some(length) = this.read(&mut buffer, &closing[stream.index()]) {
                if !this.await_room(length) {
                    break;
                }
                launcher.frame(&Frame::Output(node, stream, buffer[..length].to_vec()));
                this.change(|state| state.sent += length as u64);
            }
            this.change(|state| state.from = None);
        });
        relay
    }

    /// Waits for output; `None` at its end, or when the output is closed.
    fn read(&self, buffer: &mut [u8], closing: &PipeReader) -> Option<usize> {
        // Only this thread closes it.
        let from = self.lock().from.as_ref()?.as_raw_fd();
        loop {
            let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut fds = [poll(from), poll(closing.as_raw_fd())];
            // SAFETY: the kernel reads and writes two pollfds.
            unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
            if fds[1].revents != 0 {
                return None;
            }
            if fds[0].revents == 0 {
                continue;
            }
            let mut state = self.lock();
            match state.from.as_mut()?.read(buffer) {
                Ok(length @ 1..) => {
                    state.read += length as u64;
                    return Some(length);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }

    /// Waits for a credit of so many bytes and takes it; false if the output is closed.
    fn await_room(&self, bytes: usize) -> bool {
        let mut state = self.lock();
        while state.outstanding >= WINDOW && !state.closed {
            state.starved = true;
            self.changed.notify_all();
            state = wait(&self.changed, state);
        }
        state.starved = false;
        state.outstanding += bytes;
        !state.closed
    }

    fn taken(&self, bytes: usize) {
        self.change(|state| state.outstanding = state.outstanding.saturating_sub(bytes));
    }

    fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// The number of bytes that were written so far: those read, and those in the pipe.
    fn written(&self) -> u64 {
        let state = self.lock();
        let mut unread: libc::c_int = 0;
        if let Some(from) = &state.from {
            // SAFETY: the kernel writes one number.
            unsafe { libc::ioctl(from.as_raw_fd(), libc::FIONREAD, &raw mut unread) };
        }
        state.read + u64::from(unread.unsigned_abs())
    }

    /// Waits until so many bytes have been sent, or the credit is used up; false then.
    fn send_until(&self, bytes: u64) -> bool {
        self.until(|state| state.starved || state.has_sent(bytes));
        self.lock().has_sent(bytes)
    }

    fn until(&self, is_so: impl Fn(&RelayState) -> bool) {
        drop(wait_while(&self.changed, self.lock(), |state| !is_so(state)));
    }

    fn change(&self, change: impl FnOnce(&mut RelayState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, RelayState> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Relays, the launcher's end, and the outputs of node 1.
    fn relays() -> (Relays, PipeReader, File, File) {
        let (from_agent, to_launcher) = pipe().unwrap();
        let mut relays = Relays::new(&LauncherLink::new(OwnedFd::from(to_launcher).into())).unwrap();
        let [_, output, errors] = relays.add(1).unwrap();
        (relays, from_agent, output.into(), errors.into())
    }

    fn answer(from: &mut PipeReader) -> AgentAnswer {
        match Frame::read(from).unwrap() {
            Some(Frame::Message(contents)) => super::super::protocol::parse(&contents).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The bytes of the next output that must be of this stream.
    fn output(from: &mut PipeReader, expected: Stream) -> Vec<u8> {
        match Frame::read(from).unwrap() {
            Some(Frame::Output(1, stream, bytes)) if stream == expected => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_end_comes_behind_all_output_although_others_hold_the_stream() {
        let (mut relays, mut from, mut out, errors) = relays();
        out.write_all(b"last words").unwrap();
        relays.ended(1, End::Exited(3));
        assert_eq!(output(&mut from, Stream::Output), b"last words");
        assert!(matches!(answer(&mut from), AgentAnswer::Ended(1, End::Exited(3))));
        assert!(matches!(answer(&mut from), AgentAnswer::Written(1)));
        drop((out, errors));
    }

    #[test]
    fn without_room_an_end_is_told_before_the_rest_of_the_output() {
        let (mut relays, mut from, mut out, _errors) = relays();
        let all = vec![7; WINDOW + CHUNK];
        let writing = thread::spawn(move || out.write_all(&all).unwrap());
        let mut come = 0;
        while come < WINDOW {
            come += output(&mut from, Stream::Output).len();
        }
        writing.join().unwrap();
        relays.ended(1, End::Signalled(9));
        assert!(matches!(answer(&mut from), AgentAnswer::Ended(1, End::Signalled(9))));
        relays.taken(1, Stream::Output, WINDOW);
        while come < WINDOW + CHUNK {
            come += output(&mut from, Stream::Output).len();
        }
        assert!(matches!(answer(&mut from), AgentAnswer::Written(1)));
    }

    #[test]
    fn an_output_that_does_not_move_holds_up_no_other() {
        let (_relays, mut from, mut out, mut errors) = relays();
        let writing = thread::spawn(move || {
            out.write_all(&[7; WINDOW + CHUNK]).unwrap();
            out
        });
        let mut come = 0;
        while come < WINDOW {
            come += output(&mut from, Stream::Output).len();
        }
        errors.write_all(b"help").unwrap();
        assert_eq!(output(&mut from, Stream::Errors), b"help");
        drop(writing.join().unwrap());
    }

    #[test]
    fn who_writes_to_a_closed_output_is_told_so() {
        for written in [0, WINDOW + CHUNK] {
            let (mut relays, mut from, mut out, mut errors) = relays();
            let writing = thread::spawn(move || {
                out.write_all(&vec![7; written]).unwrap();
                out
            });
            let mut come = 0;
            while come < written.min(WINDOW) {
                come += output(&mut from, Stream::Output).len();
            }
            let mut out = writing.join().unwrap();
            relays.close(Stream::Output);
            // The pipe is closed by another thread: until then there may be room in it.
            let error = loop {
                if let Err(error) = out.write_all(&[1; 512]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{written}");
            errors.write_all(b"x").unwrap();
            assert_eq!(output(&mut from, Stream::Errors), b"x");
        }
    }
}
