//! The threads of the launcher that wait for agents, standard input and signals, and the commands that reach agents.

use super::printers::{Piece, Printed, Printers};
use super::protocol::{AgentAnswer, AgentCommand, CHUNK, Frame, Stream, parse, skip_to_greeting};
use crate::process::signals::Signals;
use gondwana_console::terminal::in_foreground;
use gondwana_locks::lock;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

/// Events from the reading threads to the main thread.
pub(super) enum Incoming {
    AgentAnswer(usize, AgentAnswer),
    /// A node has recorded something.
    Chunk(u16, Vec<u8>),
    /// The agent's stream has ended, with the reason if known.
    Gone(usize, String),
    Signal(i32),
    /// The descriptor that is watched besides can be read.
    Watched,
    /// An output cannot be written; further bytes for it are lost.
    Unwritable(Stream, io::Error),
    /// All received output of the program has been written.
    Printed,
}

/// The stream to an agent; `None` once it is closed.
pub(super) type ToAgent = Arc<Mutex<Option<ChildStdin>>>;

/// Starts the command that reaches a host, with pipes as its standard input and output.
pub(super) fn start_command(words: &[String], mask: libc::sigset_t) -> io::Result<Child> {
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    // Keys pressed on the terminal must not cut the connection: the launcher passes them on.
    command.process_group(0);
    // SAFETY: sigprocmask is async-signal-safe and reads only the set given.
    unsafe {
        command.pre_exec(move || {
            // Signals that the launcher blocks would stay blocked, also in the program.
            match libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    command.spawn()
}

/// Sends a frame; a way on which it cannot be sent is closed.
pub(super) fn write(to: &ToAgent, frame: &Frame) {
    let mut to = lock(to);
    if to.as_mut().is_some_and(|to| frame.write(to).is_err()) {
        *to = None;
    }
}

/// Passes on the events of printers.
pub(super) fn pass_on(printed: Printed, agents: &[ToAgent], sender: &Sender<Incoming>) {
    // Without a receiver the launcher is ending.
    let _ = match printed {
        Printed::Taken(host, node, stream, bytes) => {
            if let Ok(frame) = Frame::message(&AgentCommand::Taken { node, stream, bytes }) {
                write(&agents[host], &frame);
            }
            Ok(())
        }
        Printed::Unwritable(stream, error) => sender.send(Incoming::Unwritable(stream, error)),
        Printed::All => sender.send(Incoming::Printed),
    };
}

/// Reads an agent's stream to its end, without waiting for anything else.
pub(super) fn read_agent(host: usize, mut from: ChildStdout, sender: &Sender<Incoming>, printers: &Printers) {
    let mut talk = || -> io::Result<String> {
        if !skip_to_greeting(&mut from)? {
            return Ok("the command has ended without starting an agent".to_owned());
        }
        while let Some(frame) = Frame::read(&mut from)? {
            match frame {
                Frame::Message(contents) => {
                    if sender.send(Incoming::AgentAnswer(host, parse(&contents)?)).is_err() {
                        break;
                    }
                }
                Frame::Output(node, stream, bytes) => printers.print(Piece { host, node, stream, bytes }),
                Frame::Chunk(node, chunk) => {
                    if sender.send(Incoming::Chunk(node, chunk)).is_err() {
                        break;
                    }
                }
                Frame::Input(_) => return Err(io::Error::other("an agent has sent input")),
            }
        }
        Ok("its agent has ended".to_owned())
    };
    let why = talk().unwrap_or_else(|error| error.to_string());
    // Without a receiver the launcher is ending.
    let _ = sender.send(Incoming::Gone(host, why));
}

/// Sends standard input to the agent of node 0, a piece each time the last has been taken.
pub(super) fn send_input(to: &ToAgent, wanted: &Receiver<()>) {
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else { return };
    let mut input = File::from(input);
    let mut buffer = vec![0; CHUNK];
    while wanted.recv().is_ok() {
        // Reading would stop us while the terminal belongs to another job, and the program may never want to read.
        let foreground = in_foreground(input.as_raw_fd());
        let length = if foreground { input.read(&mut buffer).unwrap_or(0) } else { 0 };
        if length == 0 {
            if let Ok(frame) = Frame::message(&AgentCommand::InputEnd) {
                write(to, &frame);
            }
            return;
        }
        write(to, &Frame::Input(buffer[..length].to_vec()));
    }
}

/// Waits until an event descriptor is set, and clears it; false if that is not possible.
pub(super) fn wait_for(fd: RawFd) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut count = 0_u64;
    // SAFETY: the kernel reads and writes one pollfd, and writes at most eight bytes.
    unsafe {
        let ready = libc::poll(&raw mut poll, 1, -1);
        ready >= 0
            && libc::read(fd, (&raw mut count).cast(), size_of::<u64>()) == size_of::<u64>().cast_signed()
    }
}

/// Passes on the signals that the launcher gets.
pub(super) fn read_signals(signals: &Signals, sender: &Sender<Incoming>) {
    loop {
        let mut fd = libc::pollfd { fd: signals.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one pollfd.
        unsafe { libc::poll(&raw mut fd, 1, -1) };
        while let Some(arrived) = signals.read() {
            // The ends of the commands are seen where their output is read.
            if arrived.signal != libc::SIGCHLD && sender.send(Incoming::Signal(arrived.signal)).is_err() {
                return;
            }
        }
    }
}
