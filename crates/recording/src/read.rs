//! Reading recordings: whole files, and files that are still being written.

use crate::check::Checked;
use crate::chunk::{CHUNK_HEADER, KINDS, Record, SUM};
use crate::{
    BankRecord, BlockRecord, BlockSeries, ConstructRecord, End, FILE_HEADER, FORMAT, HomeRecord, ImageRecord,
    Interval, LAUNCHER, MAX_CHUNK, Name, Omitted, Reference, RetiredFilterRecord, RunRecord, SegmentRecord,
    SiteRecord, Started, Stretches, ThreadRecord, TotalsRecord, TransactionRow, WrittenRecord,
};
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use std::ops::Range;

/// The contents of a recording. Entries with a node number are in the order in which that node recorded them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The run.
    pub run: RunRecord,
    /// The nodes that have begun to record.
    pub started: Vec<(u16, Started)>,
    /// The threads of the program.
    pub threads: Vec<(u16, ThreadRecord)>,
    /// The allocation sites.
    pub sites: Vec<(u16, SiteRecord)>,
    /// The blocks that were allocated.
    pub objects: Vec<(u16, BlockRecord)>,
    /// The transactions, except those in `stretches`.
    pub intervals: Vec<(u16, Interval)>,
    /// Transactions about all parts of stretches of memory.
    pub stretches: Vec<(u16, Stretches)>,
    /// The written bytes.
    pub written: Vec<(u16, WrittenRecord)>,
    /// Pointers in variables.
    pub references: Vec<(u16, Reference)>,
    /// The counters of filters.
    pub banks: Vec<(u16, BankRecord)>,
    /// Filters that adaptive refinement has removed.
    pub watched: Vec<(u16, RetiredFilterRecord)>,
    /// Shared addresses that were added after the nodes began.
    pub segments: Vec<(u16, SegmentRecord)>,
    /// Files that were loaded after that.
    pub images: Vec<(u16, ImageRecord)>,
    /// How much the recording leaves out; the last record of a node counts.
    pub omitted: Vec<(u16, Omitted)>,
    /// Totals of nodes at the ends of intervals.
    pub totals: Vec<(u16, TotalsRecord)>,
    /// Work and waiting in constructs of OpenMP.
    pub constructs: Vec<(u16, ConstructRecord)>,
    /// What nodes have used of their own pages, as far as that is known.
    pub homes: Vec<(u16, HomeRecord)>,
    /// Names that the program gives its data.
    pub names: Vec<(u16, Name)>,
    /// The nodes that have ended in order.
    pub ended: Vec<(u16, End)>,
    /// The number of chunks of kinds that this version does not know.
    pub unknown: u64,
    /// Why the file was not read to its end.
    pub cut: Option<Cut>,
}

/// Where and why reading stopped before the end of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    /// The file ends within a chunk, as when the run was killed.
    #[error("the file ends within a chunk at byte {0}, as if the run had been killed")]
    Short(u64),
    /// The contents of a chunk are damaged.
    #[error("the chunk at byte {0} is damaged")]
    Damaged(u64),
}

/// Why a recording cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The file is not a recording.
    #[error("this is no recording of a run with --monitor")]
    NotARecording,
    /// The file has a format that this version does not know.
    #[error(
        "the recording has format {0}, and this version of gondwana reads format {FORMAT}: use the version that recorded it, or record again"
    )]
    Format(u16),
    /// The file has no record of the run.
    #[error("the recording ends before it says what was run")]
    Empty,
}

/// Reads a recording, as far as it is undamaged.
///
/// # Errors
/// If nothing of it can be read.
///
/// # Examples
/// ```
/// use gondwana_recording::{FILE_HEADER, LAUNCHER, RunRecord, encode, read};
///
/// let run = RunRecord { nodes: 2, page_bytes: 4096, ..RunRecord::default() };
/// let file = [&FILE_HEADER[..], &encode(LAUNCHER, &run)].concat();
/// let recording = read(&file[..])?;
/// assert_eq!((recording.run, recording.cut), (run, None));
/// # Ok::<(), gondwana_recording::ReadError>(())
/// ```
pub fn read(file: impl Read) -> Result<Recording, ReadError> {
    let mut reader = Reader::new(file)?;
    let mut recording = Recording::default();
    while reader.next(&mut recording)? {}
    if reader.has_run { Ok(recording) } else { Err(ReadError::Empty) }
}

/// Reads a recording chunk by chunk, also while it is being written.
pub struct Reader<R> {
    file: R,
    /// The offset of the next chunk, in bytes.
    at: u64,
    has_run: bool,
    contents: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a recording.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a recording.
    pub fn new(mut file: R) -> Result<Self, ReadError> {
        let mut header = [0; FILE_HEADER.len()];
        if fill(&mut file, &mut header)? < header.len() || header[..13] != FILE_HEADER[..13] {
            return Err(ReadError::NotARecording);
        }
        let format = u16::from_le_bytes([header[13], header[14]]);
        if format != FORMAT {
            return Err(ReadError::Format(format));
        }
        Ok(Self { file, at: header.len() as u64, has_run: false, contents: Vec::new() })
    }

    /// Adds the next chunk to a recording. False at the end; [`Recording::cut`] then has the reason.
    ///
    /// # Errors
    /// If reading fails.
    pub fn next(&mut self, recording: &mut Recording) -> io::Result<bool> {
        let mut header = [0; CHUNK_HEADER];
        match fill(&mut self.file, &mut header)? {
            0 => return Ok(false),
            CHUNK_HEADER => {}
            _ => return Ok(recording.end(Cut::Short(self.at))),
        }
        let word = |from: usize| u32::from_le_bytes(header[from..from + 4].try_into().expect("four bytes"));
        let half = |from: usize| u16::from_le_bytes(header[from..from + 2].try_into().expect("two bytes"));
        let (length, check, kind, node) = (word(0) as usize, word(4), half(8), half(10));
        if length > MAX_CHUNK {
            return Ok(recording.end(Cut::Damaged(self.at)));
        }
        self.contents.clear();
        if self.file.by_ref().take(length as u64).read_to_end(&mut self.contents)? < length {
            return Ok(recording.end(Cut::Short(self.at)));
        }
        let mut sum = SUM.digest();
        sum.update(&header[8..]);
        sum.update(&self.contents);
        if sum.finalize() != check || !recording.take(kind, node, &self.contents, &mut self.has_run) {
            return Ok(recording.end(Cut::Damaged(self.at)));
        }
        self.at += (CHUNK_HEADER + length) as u64;
        Ok(true)
    }
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The contents of a chunk, if they are one record of this kind and nothing else.
fn decode<R: Record + DeserializeOwned>(contents: &[u8]) -> Option<R> {
    let (record, rest) = postcard::take_from_bytes(contents).ok()?;
    rest.is_empty().then_some(record)
}

/// Adds the entries of a list.
fn extend<T: Checked>(to: &mut Vec<(u16, T)>, run: &RunRecord, node: u16, contents: &[u8]) -> bool
where
    Vec<T>: Record + DeserializeOwned,
{
    let records =
        decode::<Vec<T>>(contents).filter(|records| records.iter().all(|record| record.is_sound(run)));
    let Some(records) = records else { return false };
    to.extend(records.into_iter().map(|record| (node, record)));
    true
}

/// Adds one record.
fn push<T>(to: &mut Vec<(u16, T)>, run: &RunRecord, node: u16, contents: &[u8]) -> bool
where
    T: Record + DeserializeOwned + Checked,
{
    let Some(record) = decode::<T>(contents).filter(|record| record.is_sound(run)) else { return false };
    to.push((node, record));
    true
}

impl Recording {
    /// All transactions, with their node and interval. A stretch is one row, about the whole stretch.
    pub fn rows(&self) -> impl Iterator<Item = (u16, Range<u64>, &TransactionRow)> {
        let of_intervals = self
            .intervals
            .iter()
            .flat_map(|(node, it)| it.rows.iter().map(move |row| (*node, it.begin..it.end, row)));
        let of_stretches = self.stretches.iter().flat_map(|(node, it)| {
            it.stretches.iter().map(move |stretch| (*node, it.begin..it.end, &stretch.row))
        });
        of_intervals.chain(of_stretches)
    }

    /// Ends reading for this reason.
    fn end(&mut self, cut: Cut) -> bool {
        self.cut = Some(cut);
        false
    }

    /// Adds a chunk; false if its contents are not valid.
    fn take(&mut self, kind: u16, node: u16, contents: &[u8], has_run: &mut bool) -> bool {
        if kind == RunRecord::KIND {
            let sound = |run: &RunRecord| node == LAUNCHER && !*has_run && run.is_sound(run);
            let Some(run) = decode::<RunRecord>(contents).filter(sound) else { return false };
            self.run = run;
            *has_run = true;
            return true;
        }
        if !KINDS.contains(&kind) {
            self.unknown += 1;
            return true;
        }
        if !*has_run || node >= self.run.nodes {
            return false;
        }
        let run = &self.run;
        match kind {
            Started::KIND => push(&mut self.started, run, node, contents),
            Vec::<ThreadRecord>::KIND => extend(&mut self.threads, run, node, contents),
            Vec::<SiteRecord>::KIND => extend(&mut self.sites, run, node, contents),
            Vec::<BlockRecord>::KIND => extend(&mut self.objects, run, node, contents),
            Vec::<BlockSeries>::KIND => {
                let mut all: Vec<(u16, BlockSeries)> = vec![];
                let sound = extend(&mut all, run, node, contents);
                self.objects
                    .extend(all.iter().flat_map(|(_, alike)| alike.objects()).map(|object| (node, object)));
                sound
            }
            Interval::KIND => push(&mut self.intervals, run, node, contents),
            Stretches::KIND => push(&mut self.stretches, run, node, contents),
            Vec::<WrittenRecord>::KIND => extend(&mut self.written, run, node, contents),
            Vec::<Reference>::KIND => extend(&mut self.references, run, node, contents),
            BankRecord::KIND => push(&mut self.banks, run, node, contents),
            RetiredFilterRecord::KIND => push(&mut self.watched, run, node, contents),
            TotalsRecord::KIND => push(&mut self.totals, run, node, contents),
            Vec::<SegmentRecord>::KIND => extend(&mut self.segments, run, node, contents),
            Vec::<ImageRecord>::KIND => extend(&mut self.images, run, node, contents),
            Vec::<ConstructRecord>::KIND => extend(&mut self.constructs, run, node, contents),
            Vec::<HomeRecord>::KIND => extend(&mut self.homes, run, node, contents),
            Vec::<Name>::KIND => extend(&mut self.names, run, node, contents),
            Omitted::KIND => push(&mut self.omitted, run, node, contents),
            _ => push(&mut self.ended, run, node, contents),
        }
    }
}
