//! Receivers of the nodes' records: a file, and followers (connected commands). Without a receiver the nodes record
//! nothing.
//!
//! Records come in *sessions*, from an order to monitor to the [`End`] record that follows the order to stop. A file
//! has one session, so starting a file ends the session of the followers, and they continue with the next.

use super::counter_banks::CounterBanks;
use super::recording_writer::RecordingWriter;
use crate::process::events::Nodes;
use crate::run_registry::requests::{Asked, Request, RequestAnswer, answer};
use gondwana_control::{BankAnswer, BankError, BankRequest, Monitoring, Order};
use gondwana_monitor::FilterText;
use gondwana_recording::{
    BankRecord, ConstructRecord, End, FILE_HEADER, Interval, LAUNCHER, Record, RetiredFilterRecord,
    RunRecord, Started, Stretches, TotalsRecord, WrittenRecord, encode, kind_and_node,
};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// Bytes that may wait for a follower that does not read; further ones are dropped.
const MOST_WAITING: usize = 16 << 20;

/// Bytes of lasting records that are kept for later followers; further ones are dropped, so those followers lack
/// names.
const MOST_KEPT: usize = 32 << 20;

/// The monitoring of one run.
pub(crate) struct Monitored {
    run: RunRecord,
    writer: Option<Recording>,
    /// A recording that waits for the last records of nodes, and the connections that wait for it.
    closing: Option<(Recording, Vec<UnixStream>)>,
    /// The threads that write the rest of ended recordings.
    closers: Vec<JoinHandle<()>>,
    followers: Vec<Follower>,
    /// A thread of the program that waits for a recording to begin.
    starting: Option<Starting>,
    /// A request for counters.
    counting: Option<Counting>,
    /// Filters of the program.
    banks: CounterBanks,
    /// The nodes have been told to record.
    on: bool,
    /// Nodes that run.
    running: Vec<bool>,
    /// Nodes whose last session has not ended yet, after the order to end it.
    ending: Vec<bool>,
    /// Nodes whose session never ends: their monitor has failed in it.
    failed: Vec<bool>,
    /// The lasting records of this session.
    kept: Vec<Vec<u8>>,
    kept_bytes: usize,
}

/// A recording in a file.
struct Recording {
    writer: RecordingWriter,
    /// Connections that are closed when it ends.
    holders: Vec<UnixStream>,
}

/// A request of the program to record. It is answered once all nodes record, so that no access after it is missing.
struct Starting {
    asker: u16,
    /// The nodes that do not record yet.
    waiting: BTreeSet<u16>,
}

/// Counters, as far as nodes have reported them.
struct Counting {
    askers: Vec<UnixStream>,
    chunks: Vec<Vec<u8>>,
    /// The nodes that have not reported completely.
    waiting: BTreeSet<u16>,
}

/// A refusal: an error number, and a sentence about the run.
type Refusal = (i32, String);

/// A connected command that receives the nodes' records.
struct Follower {
    chunks: Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

impl Monitored {
    /// The monitoring of a run of so many nodes. With a writer, the nodes record from their start.
    pub(crate) fn new(run: RunRecord, writer: Option<RecordingWriter>) -> Self {
        let nodes = usize::from(run.nodes);
        let on = writer.is_some();
        let writer = writer.map(|mut writer| {
            // Whether that could be written is found with the next piece.
            let _ = writer.append(encode(LAUNCHER, &run));
            Recording { writer, holders: vec![] }
        });
        Self {
            run,
            writer,
            closing: None,
            closers: vec![],
            followers: vec![],
            starting: None,
            counting: None,
            banks: CounterBanks::default(),
            on,
            running: vec![true; nodes],
            ending: vec![false; nodes],
            failed: vec![false; nodes],
            kept: vec![],
            kept_bytes: 0,
        }
    }

    /// True while the nodes record.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Executes a request of a command; `over` while the run is ending.
    pub(crate) fn asked(&mut self, asked: Asked, over: bool, machine: &mut dyn Nodes) {
        let Asked { request, asker } = asked;
        if over {
            drop(answer(asker, &Err("is just ending".to_owned())));
            return;
        }
        match request {
            Request::Record { file, filters } => match self.record("--record", &file, filters, machine) {
                Ok(recording) => recording.holders.push(answer(asker, &Ok(Some(file)))),
                Err((_, why)) => drop(answer(asker, &Err(why))),
            },
            Request::Stop => match self.stop(machine) {
                Ok(()) => {
                    self.closing.iter_mut().for_each(|closing| closing.1.extend(asker.try_clone()));
                    self.close();
                }
                Err((_, why)) => drop(answer(asker, &Err(why))),
            },
            Request::Counters => self.count(asker, machine),
            Request::Follow => self.follow(asker, machine),
            // Of the supervisor.
            Request::Stacks | Request::LetTrace { .. } => {}
        }
    }

    /// Executes a request of a thread of the program: to record in this file, or to stop; `over` while the run is
    /// ending.
    pub(crate) fn asked_by_node(
        &mut self,
        node: u16,
        file: Option<&Path>,
        over: bool,
        machine: &mut dyn Nodes,
    ) {
        let done = match file {
            _ if over => Err((libc::EBUSY, "is just ending".to_owned())),
            Some(file) => match self.record("gw_monitor_start", file, vec![], machine) {
                Ok(_) => {
                    let waiting = self.nodes().into_iter().collect();
                    self.starting = Some(Starting { asker: node, waiting });
                    return;
                }
                Err(refusal) => Err(refusal),
            },
            None => self.stop(machine).map(|()| self.close()),
        };
        machine.order(node, &Order::Answer(done.err()));
    }

    /// A node records, or never will.
    fn started(&mut self, node: u16, machine: &mut dyn Nodes) {
        if let Some(starting) = &mut self.starting {
            starting.waiting.remove(&node);
            if starting.waiting.is_empty() {
                self.answer_starting(machine);
            }
        }
    }

    fn answer_starting(&mut self, machine: &mut dyn Nodes) {
        if let Some(starting) = self.starting.take() {
            machine.order(starting.asker, &Order::Answer(None));
        }
    }

    /// Executes a request of a thread of the program to the counter banks; `over` while the run is ending.
    pub(crate) fn asked_of_banks(
        &mut self,
        node: u16,
        request: BankRequest,
        over: bool,
        machine: &mut dyn Nodes,
    ) {
        if over {
            let why = BankError::Refused(libc::EBUSY, "the run is just ending".to_owned());
            return machine.order(node, &Order::BankAnswer(Err(why)));
        }
        self.banks.ask(node, request, &self.nodes(), machine);
    }

    /// Takes the answer of a node's counter bank.
    pub(crate) fn bank_done(&mut self, node: u16, answer: BankAnswer, machine: &mut dyn Nodes) {
        self.banks.done(node, answer, &self.nodes(), machine);
    }

    /// Begins a recording in a file that was named with an option.
    fn record(
        &mut self,
        option: &'static str,
        file: &Path,
        filters: Vec<FilterText>,
        machine: &mut dyn Nodes,
    ) -> Result<&mut Recording, Refusal> {
        if let Some(recording) = &self.writer {
            let path = recording.writer.path().display();
            let why = format!("is recorded already, in {path}: gondwana monitor --stop ends that");
            return Err((libc::EBUSY, why));
        }
        if self.closing.is_some() {
            return Err((libc::EBUSY, "has not written its last recording to the end: ask again".to_owned()));
        }
        let mut writer = RecordingWriter::open(option, file)
            .map_err(|failure| (libc::EACCES, format!("cannot be recorded: {failure}")))?;
        // Whether that could be written is found with the next piece.
        let _ = writer.append(encode(LAUNCHER, &self.run));
        self.end_session(machine);
        self.begin_session(filters, machine);
        Ok(self.writer.insert(Recording { writer, holders: vec![] }))
    }

    /// Ends the recording; it is complete when the nodes have sent the rest.
    fn stop(&mut self, machine: &mut dyn Nodes) -> Result<(), Refusal> {
        let recording = self.writer.take().ok_or((libc::ENOENT, "is not being recorded".to_owned()))?;
        self.closing = Some((recording, vec![]));
        self.end_session(machine);
        if !self.followers.is_empty() {
            self.begin_session(vec![], machine);
        }
        Ok(())
    }

    fn count(&mut self, asker: UnixStream, machine: &mut dyn Nodes) {
        let nodes = self.nodes();
        let waiting = self.counting.get_or_insert_with(|| {
            nodes.iter().for_each(|&node| machine.order(node, &Order::Count));
            Counting { askers: vec![], chunks: vec![], waiting: nodes.into_iter().collect() }
        });
        waiting.askers.push(asker);
        self.tell_counters();
    }

    /// A node has reported all its counters.
    pub(crate) fn counted(&mut self, node: u16) {
        if let Some(counting) = &mut self.counting {
            counting.waiting.remove(&node);
            self.tell_counters();
        }
    }

    /// Sends the counters to the commands that requested them, once all nodes have reported.
    fn tell_counters(&mut self) {
        let Some(counting) = self.counting.take_if(|counting| counting.waiting.is_empty()) else { return };
        let head = [FILE_HEADER.to_vec(), encode(LAUNCHER, &self.run)];
        for asker in counting.askers {
            let follower = Follower::new(answer(asker, &Ok(None)));
            for piece in head.iter().chain(&counting.chunks) {
                // A closed follower needs none.
                let _ = follower.send(piece.clone());
            }
        }
    }

    fn follow(&mut self, asker: UnixStream, machine: &mut dyn Nodes) {
        let file = self.writer.as_ref().map(|recording| recording.writer.path().to_owned());
        let follower = Follower::new(answer(asker, &Ok(file)));
        let first = [FILE_HEADER.to_vec(), encode(LAUNCHER, &self.run)].into_iter();
        for piece in first.chain(self.kept.iter().cloned()) {
            // A closed follower is detected with the next piece.
            let _ = follower.send(piece);
        }
        self.followers.push(follower);
        if !self.on {
            self.begin_session(vec![], machine);
        }
    }

    fn begin_session(&mut self, filters: Vec<FilterText>, machine: &mut dyn Nodes) {
        self.on = true;
        self.kept.clear();
        self.kept_bytes = 0;
        self.failed.fill(false);
        let monitoring = Monitoring { filters, ..Monitoring::default() };
        for node in self.nodes() {
            machine.order(node, &Order::Monitor(monitoring.clone()));
        }
    }

    fn end_session(&mut self, machine: &mut dyn Nodes) {
        if !std::mem::take(&mut self.on) {
            return;
        }
        self.answer_starting(machine);
        for node in self.nodes() {
            machine.order(node, &Order::Unmonitor);
            self.ending[usize::from(node)] = !self.failed[usize::from(node)];
        }
    }

    /// The monitor of a node has failed: its last records are not awaited any more.
    pub(crate) fn failed(&mut self, node: u16, machine: &mut dyn Nodes) {
        let index = usize::from(node);
        if index < self.failed.len() {
            (self.failed[index], self.ending[index]) = (true, false);
            self.started(node, machine);
            self.close();
        }
    }

    /// The nodes that run.
    fn nodes(&self) -> Vec<u16> {
        (0..self.run.nodes).filter(|&node| self.running[usize::from(node)]).collect()
    }

    /// Takes a chunk of a node. Returns a sentence for the user if it cannot be written.
    pub(crate) fn chunk(&mut self, node: u16, chunk: Vec<u8>, machine: &mut dyn Nodes) -> Option<String> {
        let kind = kind_and_node(&chunk)?.0;
        let is_ending = self.ending.get_mut(usize::from(node))?;
        if kind == BankRecord::KIND
            && !*is_ending
            && let Some(counting) = self.counting.as_mut().filter(|counting| counting.waiting.contains(&node))
        {
            counting.chunks.push(chunk);
            return None;
        }
        let gone = self.followers.len();
        self.followers.retain(|follower| follower.send(chunk.clone()));
        let gone = gone > self.followers.len();
        let recording = if *is_ending {
            *is_ending = kind != End::KIND;
            self.closing.as_mut().map(|(recording, _)| recording)
        } else {
            if kind == Started::KIND {
                self.started(node, machine);
            }
            let passing = [
                Interval::KIND,
                Stretches::KIND,
                Vec::<WrittenRecord>::KIND,
                BankRecord::KIND,
                RetiredFilterRecord::KIND,
                Vec::<ConstructRecord>::KIND,
                End::KIND,
                TotalsRecord::KIND,
            ];
            if !passing.contains(&kind) && self.kept_bytes + chunk.len() <= MOST_KEPT {
                self.kept_bytes += chunk.len();
                self.kept.push(chunk.clone());
            }
            self.writer.as_mut()
        };
        let sentence = recording.and_then(|recording| recording.writer.append(chunk));
        self.close();
        if gone && self.followers.is_empty() && self.writer.is_none() {
            self.end_session(machine);
        }
        sentence
    }

    /// A node has ended; it sends no more chunks.
    pub(crate) fn ended(&mut self, node: u16, machine: &mut dyn Nodes) {
        let index = usize::from(node);
        if index < self.running.len() {
            (self.running[index], self.ending[index]) = (false, false);
            self.close();
            self.started(node, machine);
            self.counted(node);
            self.banks.ended(node, &self.nodes(), machine);
        }
    }

    /// Finishes the ending recording, once all nodes have ended their session; on a thread, because the disk may be
    /// slow.
    fn close(&mut self) {
        if self.ending.contains(&true) {
            return;
        }
        if let Some((recording, askers)) = self.closing.take() {
            self.closers.push(thread::spawn(move || finish(recording, askers)));
        }
    }

    /// The run has ended. Returns a sentence for the user if something could not be written.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if let Some((recording, askers)) = self.closing.take() {
            finish(recording, askers);
        }
        for closer in self.closers.drain(..) {
            // A failed thread has reported that to the askers.
            let _ = closer.join();
        }
        self.writer.take().and_then(|recording| recording.finish().1)
    }
}

impl Recording {
    /// Waits until everything is written. The file, and a sentence for the user if that is not possible.
    fn finish(mut self) -> (PathBuf, Option<String>) {
        let sentence = self.writer.finish();
        drop(self.holders);
        (self.writer.path().to_owned(), sentence)
    }
}

/// Waits until everything is written, and answers the waiting connections.
fn finish(recording: Recording, askers: Vec<UnixStream>) {
    let answered: RequestAnswer = match recording.finish() {
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

    /// False once the follower has closed.
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
