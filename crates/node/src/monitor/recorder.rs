//! Makes records of what the monitor has seen, and sends them to the launcher.

use crate::Node;
use crate::boot::MAX_CHUNK;
use gondwana_memory::PAGE_SIZE;
use gondwana_monitor::Journal;
use gondwana_recording::{End, Interval, Record, Row, Segment, SegmentKind, Started, Totals, encode};
use std::time::Instant;

/// Most rows in one chunk. A row takes at most 46 bytes: variable-length numbers of 64, 64, 64, 32 and 32 bits (10, 10,
/// 10, 5 and 5 bytes), one of 16 bits (3), and three bytes. Half of what a datagram holds, so that the C library needs no
/// new mapping for it while it grows: the addresses of mappings are the program's affair.
const ROWS: usize = (MAX_CHUNK / 2 - 64) / 46;

/// What is between the monitor's observations and the recording.
pub struct Recorder {
    began: Instant,
    /// When the last interval ended.
    last: u64,
    /// Takes the place of the journal that is being written down.
    spare: Journal,
    rows: Vec<Row>,
    lost: u64,
    /// Messages and bytes that had been sent when the recording began.
    before: (u64, u64),
    /// Faults that had been taken then.
    faults_before: u64,
    ended: bool,
}

impl Recorder {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            last: 0,
            spare: Journal::default(),
            rows: Vec::with_capacity(ROWS),
            lost: 0,
            before: (0, 0),
            faults_before: 0,
            ended: false,
        }
    }

    /// The time for records, in nanoseconds.
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// The first record.
    pub fn begin(&mut self, node: &'static Node) {
        self.before = sent(node);
        self.faults_before = faults(node);
        send(node, &node.started());
    }

    /// Writes down what has happened since the last time.
    pub fn go_on(&mut self, node: &'static Node) {
        if self.ended {
            return;
        }
        {
            let mut core = node.core();
            if let Some(tap) = &mut core.ports.tap {
                std::mem::swap(&mut tap.journal, &mut self.spare);
            }
        }
        let (begin, end) = (self.last, self.now());
        self.last = end;
        self.lost += self.spare.lost();
        for tallies in self.spare.rows().chunks(ROWS) {
            let mut rows = std::mem::take(&mut self.rows);
            rows.extend(tallies.iter().map(|tally| Row {
                address: tally.like.address,
                unit: tally.like.unit,
                kind: tally.like.kind,
                direction: tally.like.direction,
                peer: tally.like.peer,
                thread: tally.like.thread.map_or(0, |thread| thread + 1),
                code: tally.like.code,
                count: tally.count,
                bytes: tally.bytes,
            }));
            let interval = Interval { begin, end, rows };
            send(node, &interval);
            self.rows = interval.rows;
            self.rows.clear();
        }
        self.spare.clear();
        let (messages, bytes) = sent(node);
        let totals = Totals {
            time: end,
            faults: faults(node) - self.faults_before,
            messages: messages - self.before.0,
            bytes: bytes - self.before.1,
        };
        send(node, &totals);
    }

    /// The last records.
    pub fn end(&mut self, node: &'static Node) {
        if self.ended {
            return;
        }
        self.go_on(node);
        self.ended = true;
        let (messages, bytes) = sent(node);
        let end = End {
            time: self.last,
            messages: messages - self.before.0,
            bytes: bytes - self.before.1,
            lost: self.lost,
        };
        send(node, &end);
    }
}

/// Messages and bytes that a node has sent.
fn sent(node: &Node) -> (u64, u64) {
    let core = node.core();
    (core.ports.messages.messages(), core.ports.messages.bytes())
}

/// Faults that threads of a node have taken.
fn faults(node: &Node) -> u64 {
    let core = node.core();
    let counters = core.counters();
    counters.read_faults + counters.write_faults
}

fn send<R: Record>(node: &Node, record: &R) {
    // A launcher that is gone takes this process with it; nobody is left to be told.
    let _ = node.control.send_chunk(&encode(node.me.0, record));
}

impl Node {
    fn started(&self) -> Started {
        let part = crate::start::part(&self.boot);
        let pages = |segment: &gondwana_memory::Segment, kind| {
            let start = segment.base as u64;
            Segment { start, end: start + u64::from(segment.pages) * PAGE_SIZE as u64, kind }
        };
        let start = self.geometry.span().base as u64 + u64::from(self.me.0) * part;
        let mut segments = vec![Segment { start, end: start + part, kind: SegmentKind::Heap }];
        segments.extend(self.geometry.overlays().iter().map(|data| pages(data, SegmentKind::Data)));
        Started { host: host_name(), process: std::process::id(), segments, images: vec![] }
    }
}

/// The name of this computer; empty if it has none.
fn host_name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the kernel writes at most as many bytes as are given.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0 {
        return String::new();
    }
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}
