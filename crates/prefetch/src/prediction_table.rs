//! The reference prediction table: what the accesses that begin at one instruction did before.

use crate::extents::{Extents, Predicted};
use crate::fault::Kind;
use crate::interleaved::Interleaving;
use crate::read_then_write::{ReadThenWrite, Writer};

/// How many instructions have an entry.
const ENTRIES: usize = 16;

/// How many beginnings of streams a stride is looked for in. It takes three of them, as far apart in time as in space:
/// enough for four patterns that take turns.
const STARTS: usize = 9;

/// The longest stride, in pages: farther apart, pages hardly belong to one array walked in order.
const LONGEST_STRIDE: u64 = 1 << 14;

/// What one instruction does that faults in one way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    code: usize,
    kind: Kind,
    /// How far the streams that it begins go.
    pub streams: Extents,
    /// How many of these streams begin at equal distances.
    pub strides: Extents,
    /// Whether the streams that it reads are written.
    pub read_then_write: ReadThenWrite,
    /// Whether it makes many streams in turn.
    pub interleaving: Interleaving,
    /// Where the latest streams began, the last one first.
    starts: [u32; STARTS],
    /// Where the latest 2-D strides began, and how wide their streams were taken to be.
    column: (u32, u32),
}

impl Entry {
    /// How wide the streams of the 2-D stride that begins at `page` are, if each has `width` pages. A stride right beside
    /// the one before is part of an array that is walked column by column: twice as wide each time, up to `most`.
    pub(crate) fn widen(&mut self, page: u32, width: u32, most: u32) -> u32 {
        let (before, wide) = self.column;
        let beside = wide > 0 && page == before + wide;
        let width = if beside { (2 * wide).min(most).max(width) } else { width };
        self.column = (page, width);
        width
    }

    /// A stream begins at `page`: what is predicted of it, and what will write it, if anything will.
    pub(crate) fn begin_stream(&mut self, page: u32) -> (Predicted, Option<Writer>) {
        self.starts.rotate_right(1);
        self.starts[0] = page;
        let reads = self.kind == Kind::Read;
        let writer = if reads { self.read_then_write.begin(self.streams.present_count()) } else { None };
        (self.streams.begin(1), writer)
    }

    /// The distance that leads to the present stream from two earlier ones, as far apart in time.
    pub(crate) fn stride(&self) -> Option<i32> {
        let [page, earlier @ ..] = self.starts;
        (0..STARTS / 2).find_map(|back| {
            let (one, two) = (i64::from(earlier[back]), i64::from(earlier[2 * back + 1]));
            let stride = i64::from(page) - one;
            let usable = (2..=LONGEST_STRIDE).contains(&stride.unsigned_abs());
            i32::try_from(stride).ok().filter(|_| usable && one - two == stride)
        })
    }
}

/// The entries of one thread, most recently used first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PredictionTable([Entry; ENTRIES]);

impl PredictionTable {
    /// The entry of an instruction, which takes the place of the least recently used one if it is new.
    pub(crate) fn entry(&mut self, code: usize, kind: Kind) -> &mut Entry {
        let known = self.0.iter().position(|entry| entry.code == code && entry.kind == kind);
        self.0[..=known.unwrap_or(ENTRIES - 1)].rotate_right(1);
        if known.is_none() {
            self.0[0] = Entry { code, kind, ..Entry::default() };
        }
        &mut self.0[0]
    }
}
