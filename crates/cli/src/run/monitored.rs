//! Who is told what the nodes record: a file, and those who follow from outside. While nobody is, the nodes record
//! nothing.
//!
//! What a node has recorded is in *sessions*, from an order to monitor to the [`End`] record that follows the order to stop.
//! A file is of one session, so one that begins while others follow ends theirs, and they go on with the next.

use super::tape::Tape;
use crate::process::events::Nodes;
use crate::running::requests::{Answer, Asked, Request, answer};
use gondwana_node::boot::{Monitoring, Order};
use gondwana_recording::{
    Board, End, FILE_HEADER, Interval, LAUNCHER, Record, Run, Totals, Written, encode, kind_and_node,
};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes that may wait for somebody who follows and does not read; more are left out.
const MOST_WAITING: usize = 16 << 20;

/// Bytes of lasting records that are kept for those who come later; more are left out, which costs them names.
const MOST_KEPT: usize = 32 << 20;

/// The monitoring of one run.
pub struct Monitored {
    run: Run,
    tape: Option<Recording>,
    /// A recording that waits for the last records of nodes, and who waits for it.
    closing: Option<(Recording, Vec<UnixStream>)>,
    /// Those that write the rest of recordings that have ended.
    closers: Vec<JoinHandle<()>>,
    followers: Vec<Follower>,
    /// The nodes have been told to record.
    on: bool,
    /// Nodes that run.
    running: Vec<bool>,
    /// Nodes whose last session has not ended yet, although they were told to end it.
    ending: Vec<bool>,
    /// What this session's nodes have said once and for all.
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
}

/// A recording in a file.
struct Recording {
    tape: Tape,
    /// Those who want to know when it ends: their connections are closed then.
    holders: Vec<UnixStream>,
}

/// Somebody who is sent what nodes record.
struct Follower {
    chunks: Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

impl Monitored {
    /// The monitoring of a run of so many nodes. A tape is one that the nodes have been told to record on from their start.
    pub fn new(run: Run, tape: Option<Tape>) -> Self {
        let nodes = usize::from(run.nodes);
        let on = tape.is_some();
        let tape = tape.map(|mut tape| {
            // Whether that could be written is found with the next piece.
            let _ = tape.append(encode(LAUNCHER, &run));
            Recording { tape, holders: vec![] }
        });
        Self {
            run,
            tape,
            closing: None,
            closers: vec![],
            followers: vec![],
            on,
            running: vec![true; nodes],
            ending: vec![false; nodes],
            kept: vec![],
            kept_bytes: 0,
        }
    }

    /// True while the nodes record.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Does what somebody has asked for; `over` while the run is ending.
    pub fn asked(&mut self, asked: Asked, over: bool, machine: &mut dyn Nodes) {
        let Asked { request, asker } = asked;
        if over {
            drop(answer(asker, &Err("is just ending".to_owned())));
            return;
        }
        match request {
            Request::Record { file } => self.record(&file, asker, machine),
            Request::Stop => self.stop(asker, machine),
            Request::Follow => self.follow(asker, machine),
        }
    }

    fn record(&mut self, file: &Path, asker: UnixStream, machine: &mut dyn Nodes) {
        if let Some(recording) = &self.tape {
            let path = recording.tape.path().display();
            drop(answer(
                asker,
                &Err(format!("is recorded already, in {path}: gondwana monitor --stop ends that")),
            ));
            return;
        }
        if self.closing.is_some() {
            drop(answer(asker, &Err("has not written its last recording to the end: ask again".to_owned())));
            return;
        }
        let mut tape = match Tape::open("--record", file) {
            Ok(tape) => tape,
            Err(failure) => {
                drop(answer(asker, &Err(format!("cannot be recorded: {failure}"))));
                return;
            }
        };
        let _ = tape.append(encode(LAUNCHER, &self.run));
        let holder = answer(asker, &Ok(Some(file.to_owned())));
        self.end_session(machine);
        self.tape = Some(Recording { tape, holders: vec![holder] });
        self.begin_session(machine);
    }

    fn stop(&mut self, asker: UnixStream, machine: &mut dyn Nodes) {
        let Some(recording) = self.tape.take() else {
            drop(answer(asker, &Err("is not being recorded".to_owned())));
            return;
        };
        self.closing = Some((recording, vec![asker]));
        self.end_session(machine);
        self.close();
        if !self.followers.is_empty() {
            self.begin_session(machine);
        }
    }

    fn follow(&mut self, asker: UnixStream, machine: &mut dyn Nodes) {
        let file = self.tape.as_ref().map(|recording| recording.tape.path().to_owned());
        let follower = Follower::new(answer(asker, &Ok(file)));
        let first = [FILE_HEADER.to_vec(), encode(LAUNCHER, &self.run)].into_iter();
        for piece in first.chain(self.kept.iter().cloned()) {
            // One that is gone already is noticed with the next piece.
            let _ = follower.send(piece);
        }
        self.followers.push(follower);
        if !self.on {
            self.begin_session(machine);
        }
    }

    fn begin_session(&mut self, machine: &mut dyn Nodes) {
        self.on = true;
        self.kept.clear();
        self.kept_bytes = 0;
        for node in self.nodes() {
            machine.order(node, &Order::Monitor(Monitoring::default()));
        }
    }

    fn end_session(&mut self, machine: &mut dyn Nodes) {
        if !std::mem::take(&mut self.on) {
            return;
        }
        for node in self.nodes() {
            machine.order(node, &Order::Unmonitor);
            self.ending[usize::from(node)] = true;
        }
    }

    /// The nodes that run.
    fn nodes(&self) -> Vec<u16> {
        (0..self.run.nodes).filter(|&node| self.running[usize::from(node)]).collect()
    }

    /// A node has recorded something. Gives a sentence for the user if it cannot be written.
    pub fn chunk(&mut self, node: u16, chunk: Vec<u8>, machine: &mut dyn Nodes) -> Option<String> {
        let kind = kind_and_node(&chunk)?.0;
        let is_ending = self.ending.get_mut(usize::from(node))?;
        let gone = self.followers.len();
        self.followers.retain(|follower| follower.send(chunk.clone()));
        let gone = gone > self.followers.len();
        let recording = if *is_ending {
            *is_ending = kind != End::KIND;
            self.closing.as_mut().map(|(recording, _)| recording)
        } else {
            let passing = [Interval::KIND, Vec::<Written>::KIND, Board::KIND, End::KIND, Totals::KIND];
            if !passing.contains(&kind) && self.kept_bytes + chunk.len() <= MOST_KEPT {
                self.kept_bytes += chunk.len();
                self.kept.push(chunk.clone());
            }
            self.tape.as_mut()
        };
        let sentence = recording.and_then(|recording| recording.tape.append(chunk));
        self.close();
        if gone && self.followers.is_empty() && self.tape.is_none() {
            self.end_session(machine);
        }
        sentence
    }

    /// A node has ended: nothing more comes from it.
    pub fn ended(&mut self, node: u16) {
        let index = usize::from(node);
        if index < self.running.len() {
            (self.running[index], self.ending[index]) = (false, false);
            self.close();
        }
    }

    /// Finishes the recording that is to end, once all nodes have ended theirs. The disk may take its time.
    fn close(&mut self) {
        if self.ending.contains(&true) {
            return;
        }
        if let Some((recording, askers)) = self.closing.take() {
            self.closers.push(thread::spawn(move || finish(recording, askers)));
        }
    }

    /// The run is over. Gives a sentence for the user if something could not be written.
    pub fn finish(&mut self) -> Option<String> {
        if let Some((recording, askers)) = self.closing.take() {
            finish(recording, askers);
        }
        for closer in self.closers.drain(..) {
            // One that has failed has said so to those who asked.
            let _ = closer.join();
        }
        self.tape.take().and_then(|recording| recording.finish().1)
    }
}

impl Recording {
    /// Waits until everything is written. The file, and a sentence for the user if that is not possible.
    fn finish(mut self) -> (PathBuf, Option<String>) {
        let sentence = self.tape.finish();
        drop(self.holders);
        (self.tape.path().to_owned(), sentence)
    }
}

/// Waits until everything is written, and tells those who wait for that.
fn finish(recording: Recording, askers: Vec<UnixStream>) {
    let answered: Answer = match recording.finish() {
        (file, None) => Ok(Some(file)),
        (_, Some(sentence)) => Err(format!("is not recorded any more: {sentence}")),
    };
    askers.into_iter().for_each(|asker| drop(answer(asker, &answered)));
}

impl Follower {
    fn new(stream: UnixStream) -> Self {
        let (chunks, receiver) = channel();
        let waiting = Arc::<AtomicUsize>::default();
        let written = Arc::clone(&waiting);
        thread::spawn(move || write(stream, &receiver, &written));
        Self { chunks, waiting }
    }

    /// False once the follower is gone.
    fn send(&self, chunk: Vec<u8>) -> bool {
        if self.waiting.load(Ordering::Relaxed) + chunk.len() > MOST_WAITING {
            return true;
        }
        self.waiting.fetch_add(chunk.len(), Ordering::Relaxed);
        self.chunks.send(chunk).is_ok()
    }
}

fn write(mut stream: UnixStream, chunks: &Receiver<Vec<u8>>, waiting: &AtomicUsize) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    for chunk in chunks {
        stream.write_all(&chunk)?;
        waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
    }
    Ok(())
}
