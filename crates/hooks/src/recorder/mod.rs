//! The recording of a simulated run, in the file that `gondwana run --monitor` writes, too: each transaction between nodes
//! with its thread and the code that made the access, and what is needed to name the memory.
//!
//! Times are simulated ones, and addresses of libraries are made the same for each run ([`files`]), so a run has the same
//! recording each time.

mod blocks;
mod files;
mod pointers;

use crate::heap::{REGION, STACK, STACKS};
use crate::world::{World, aside};
use blocks::Blocks;
use files::Files;
use gondwana_interpose::unwind::walk;
use gondwana_interpose::{calls_from, message};
use gondwana_monitor::{AggregationTable, Direction, Kind, Transaction};
use gondwana_page::PAGE_BITS;
use gondwana_recording::{
    End, HomeRecord, Interval, Record, SegmentKind, SegmentRecord, Started, Stretch, Stretches, ThreadRecord,
    TotalsRecord, TransactionRow, WrittenRecord, encode,
};
use gondwana_sim::{AtHome, NANOSECOND, ThreadId, Time};
use pointers::Pointers;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::ops::Range;

/// log2 of the unit of a transaction whose address is that of an access: a word.
const WORD_UNIT: u8 = 2;

/// An interval is as long as this part of the time before it, so that there are some hundreds of them however long a run is.
const INTERVALS: u64 = 32;

/// The shortest interval, in nanoseconds.
const SHORTEST: u64 = 10_000;

/// Rows of one node from which its table would take larger units for new ones: an interval ends before.
const FINE_ROWS: usize = 24 << 10;

/// Rows in all that a recording has before its intervals no longer end for that: some 100 MB.
const MOST_FINE_ROWS: usize = 4 << 20;

/// Tables are looked at after so many transactions: adding few of them up at a time is slow.
const CHECKED: usize = 2 << 10;

/// The most records of a kind in a chunk.
const RECORDS: usize = 16 << 10;

/// Frames between an access and the code of this library that records it, at most.
const MOST_FRAMES: usize = 32;

/// What is recorded, and what is in the file already.
pub(crate) struct Recorder {
    file: ManuallyDrop<File>,
    /// Writing has failed: nothing more is written.
    failed: bool,
    /// By node.
    tables: Vec<AggregationTable>,
    lost: Vec<u64>,
    /// Of the interval: its begin, and when it will have been long enough, in nanoseconds.
    begin: u64,
    due: u64,
    rows: usize,
    /// Transactions since the tables were last looked at.
    unchecked: usize,
    /// The numbers of pages that transactions were about.
    pages: BTreeSet<u64>,
    files: Files,
    blocks: Blocks,
    pointers: Pointers,
}

fn nanoseconds(time: Time) -> u64 {
    time / NANOSECOND
}

/// Begins a recording of the world, which has only its first thread.
pub(crate) fn begin(world: &mut World, file: ManuallyDrop<File>, image: &Range<usize>) {
    world.machine.watch();
    let nodes = world.machine.node_count();
    let mut recorder = Recorder {
        file,
        failed: false,
        tables: (0..nodes).map(|_| AggregationTable::default()).collect(),
        lost: vec![0; nodes],
        begin: 0,
        due: SHORTEST,
        rows: 0,
        unchecked: 0,
        pages: BTreeSet::new(),
        files: Files::new(),
        blocks: Blocks::default(),
        pointers: Pointers::new(image),
    };
    let segment =
        |range: &Range<usize>, kind| SegmentRecord { start: range.start as u64, end: range.end as u64, kind };
    let started = Started {
        host: world.settings.machine.name.clone(),
        process: 0,
        segments: vec![segment(&REGION, SegmentKind::Heap), segment(image, SegmentKind::Data)],
        images: recorder.files.new_images(),
    };
    for node in 0..nodes as u16 {
        recorder.write(node, &started);
    }
    recorder.thread(0, world.machine.node_of(world.schedule.current()).into(), 0, 0, 0);
    world.recorder = Some(Box::new(recorder));
}

/// A thread has been created, to begin with a function on the stack with this number.
pub(crate) fn created(world: &mut World, thread: ThreadId, slot: usize, routine: usize) {
    let node = world.machine.node_of(world.threads[thread].processor).into();
    let time = world.now();
    if let Some(recorder) = &mut world.recorder {
        let routine = recorder.files.same(routine);
        recorder.thread(thread, node, slot, routine, nanoseconds(time));
    }
}

/// The current thread's access is over: records the transactions that it was.
pub(crate) fn accessed(world: &mut World) {
    let thread = u32::try_from(world.current).ok();
    record(world, thread);
}

/// The machine's operating system has done something: records the transactions that it was, which are no thread's.
pub(crate) fn attended(world: &mut World) {
    record(world, None);
}

fn record(world: &mut World, thread: Option<u32>) {
    let seen = world.machine.seen();
    let Some(recorder) = world.recorder.as_mut().filter(|_| !seen.is_empty()) else { return };
    let own = recorder.files.own();
    let waited = |it: &Transaction| {
        it.direction == Direction::Out && !matches!(it.kind, Kind::Diff | Kind::Prefetched)
    };
    let code = if seen.iter().any(|(_, it)| waited(it)) { aside(|| code(&own)) } else { 0 };
    let code = recorder.files.same(code);
    let (block, page) = (world.machine.block_unit(), world.machine.page_unit());
    recorder.unchecked += seen.len();
    for (node, mut seen) in seen {
        recorder.pages.insert(seen.address >> PAGE_BITS);
        let mut unit = if seen.kind == Kind::Prefetched { page } else { block };
        if seen.direction == Direction::Out {
            seen.thread = thread;
        }
        if waited(&seen) {
            (seen.code, unit) = (code, WORD_UNIT);
        }
        recorder.tables[usize::from(node)].note(&seen, unit);
    }
    let is_full = recorder.is_full();
    let due = recorder.due;
    let now = nanoseconds(world.now());
    if is_full || now >= due {
        end_interval(world, now);
    }
}

/// The address of the instruction of the program that the current access is for: of the call that comes before it.
#[inline(never)]
fn code(own: &Range<usize>) -> usize {
    let mut found = 0;
    walk(MOST_FRAMES, |frame| {
        let is_own = own.contains(&frame.returns_to);
        if !is_own {
            found = frame.returns_to - 1;
        }
        is_own
    });
    found
}

/// The current thread has got memory from the heap, by the call whose return address is at `slot`.
#[cold]
pub(crate) fn allocated(world: &mut World, address: usize, bytes: usize, slot: *const usize) {
    let node = world.machine.node_of(world.schedule.current()).into();
    let thread = world.current as u32;
    let Some(recorder) = &mut world.recorder else { return };
    let own = recorder.files.own();
    let mut calls = vec![];
    aside(|| calls_from(slot as usize, &own, &mut calls));
    let stack = calls.iter().map(|call| recorder.files.same(call.returns_to)).collect();
    recorder.blocks.note(node, address as u64, bytes as u64, stack, thread);
}

/// Writes what has happened since the last interval, and what memory there is by now.
fn end_interval(world: &mut World, now: u64) {
    let totals: Vec<TotalsRecord> = (0..world.machine.node_count() as u8)
        .map(|node| {
            let (messages, bytes) = world.machine.messages(node);
            TotalsRecord { time: now, faults: world.machine.misses(node), messages, bytes }
        })
        .collect();
    let Some(recorder) = &mut world.recorder else { return };
    let (begin, end) = (recorder.begin, now.max(recorder.begin));
    recorder.begin = end;
    recorder.due = end + (end / INTERVALS).max(SHORTEST);
    for (node, totals) in (0..).zip(&totals) {
        let table = &mut recorder.tables[usize::from(node)];
        recorder.lost[usize::from(node)] += table.lost();
        let (mut rows, mut stretches) = (vec![], vec![]);
        for aggregate in table.rows() {
            match (TransactionRow::from(aggregate), aggregate.key.parts) {
                (row, 0) => rows.push(row),
                (row, parts) => stretches.push(Stretch { row, parts }),
            }
        }
        table.clear();
        recorder.rows += rows.len() + stretches.len();
        if !rows.is_empty() {
            recorder.write(node, &Interval { begin, end, rows });
        }
        if !stretches.is_empty() {
            recorder.write(node, &Stretches { begin, end, stretches });
        }
        recorder.write(node, totals);
    }
    recorder.describe(end);
}

/// Writes the rest: the program has ended.
pub(crate) fn end(world: &mut World) {
    if world.recorder.is_none() {
        return;
    }
    end_interval(world, nanoseconds(world.now()));
    let (written, at_home) = (world.machine.written(), world.machine.used_at_home());
    let line = world.machine.line_bytes();
    let nodes = world.machine.node_count() as u8;
    let sent: Vec<(u64, u64)> = (0..nodes).map(|node| world.machine.messages(node)).collect();
    let Some(mut recorder) = world.recorder.take() else { return };
    recorder.point();
    for node in 0..nodes {
        let pages = written.range((node, 0)..=(node, u64::MAX));
        let records: Vec<WrittenRecord> = pages
            .filter(|((_, page), _)| recorder.pages.contains(page))
            .map(|((_, page), words)| WrittenRecord::of_words(page << PAGE_BITS, words))
            .collect();
        recorder.write_all(node.into(), &records);
        let records: Vec<HomeRecord> = at_home
            .range((node, 0)..=(node, u64::MAX))
            .map(|((_, page), &AtHome { reads, writes, written_back: diffs })| HomeRecord {
                address: page << PAGE_BITS,
                reads,
                writes,
                diffs,
                bytes: (reads + writes + diffs) * line,
            })
            .collect();
        recorder.write_all(node.into(), &records);
    }
    if let Some(omitted) = recorder.omitted() {
        recorder.write(0, &omitted);
    }
    for (node, (messages, bytes)) in (0..).zip(sent) {
        let lost = recorder.lost[usize::from(node)];
        recorder.write(node, &End { time: recorder.begin, messages, bytes, lost });
    }
}

impl Recorder {
    /// True if a table is so full that the interval is to end, looked at from time to time.
    fn is_full(&mut self) -> bool {
        if self.unchecked < CHECKED || self.rows >= MOST_FINE_ROWS {
            return false;
        }
        self.unchecked = 0;
        self.tables.iter_mut().any(|table| table.rows().len() >= FINE_ROWS)
    }

    fn thread(&mut self, thread: ThreadId, node: u16, slot: usize, routine: u64, time: u64) {
        let start = (STACKS.start + slot * STACK) as u64;
        let (number, stack) = (thread as u32, start..start + STACK as u64);
        let segment = SegmentRecord { start: stack.start, end: stack.end, kind: SegmentKind::Stacks };
        self.write(node, &vec![segment]);
        let record = ThreadRecord { number, stack_start: stack.start, stack_end: stack.end, routine, time };
        self.write(node, &vec![record]);
    }

    /// Writes blocks, pointers and files that are new.
    fn describe(&mut self, now: u64) {
        for (node, sites) in self.blocks.new_sites() {
            self.write_all(node, &sites);
        }
        for (node, series) in self.blocks.new_blocks() {
            self.write_all(node, &series);
        }
        let images = self.files.new_images();
        self.write_all(0, &images);
        if self.pointers.are_due(now) {
            self.point();
        }
    }

    fn point(&mut self) {
        let found = self.pointers.look(&self.blocks);
        self.write_all(0, &found);
    }

    fn omitted(&self) -> Option<gondwana_recording::Omitted> {
        let omitted = gondwana_recording::Omitted {
            objects: self.blocks.omitted(),
            references: self.pointers.omitted(),
            ..gondwana_recording::Omitted::default()
        };
        (omitted != gondwana_recording::Omitted::default()).then_some(omitted)
    }

    fn write_all<T: Clone>(&mut self, node: u16, records: &[T])
    where
        Vec<T>: Record,
    {
        for part in records.chunks(RECORDS) {
            self.write(node, &part.to_vec());
        }
    }

    fn write<R: Record>(&mut self, node: u16, record: &R) {
        if self.failed {
            return;
        }
        if let Err(error) = self.file.write_all(&encode(node, record)) {
            self.failed = true;
            let what = format!(
                "the recording cannot be written any more ({error}): it ends with what had been recorded before"
            );
            message::write_line(2, &what);
        }
    }
}
