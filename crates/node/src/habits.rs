//! Remembers what the accesses that begin at one place of the program do.

use crate::streams::Kind;

/// How many places of the program are remembered.
const HABITS: usize = 16;

/// A habit is watched for the first time after so many repetitions, and then ever less often: nobody hears whether
/// pages that were brought are used.
const FIRST_CHECK: u32 = 8;

/// The most repetitions from one time to the next.
const CHECK: u32 = 256;

/// How many times something must be seen to become a habit.
const PROOF: u32 = 2;

/// How many beginnings of runs a stride is looked for in. It takes three of them, as far apart in time as in space:
/// enough for four sequences that take turns.
const STARTS: usize = 9;

/// The longest stride, in pages: farther apart, pages hardly belong to one array walked in order.
const LONGEST_STRIDE: u64 = 1 << 14;

/// How far a sequence of pages at equal distances goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The distance from one page to the next.
    pub stride: i32,
    /// How many pages, at least.
    pub count: u32,
    /// How many it may have been: pages that were brought don't fault, so that nobody sees where it ended.
    pub most: u32,
}

impl Extent {
    /// A page by itself, and the distance at which another one would have to be.
    pub fn single(stride: i32) -> Self {
        Self { stride, count: 1, most: 1 }
    }
}

/// What is to be expected of a sequence that begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Foreseen {
    /// How far it will go.
    pub extent: Extent,
    /// Whether that is to be relied on, or is to be seen again.
    watched: bool,
}

impl Foreseen {
    /// True if it can be relied on.
    pub fn is_trusted(self) -> bool {
        !self.watched && self.extent.count > 1
    }
}

/// How far the latest sequences went: a loop over the rows of a matrix begins a run of pages with each row, and each is
/// as long as the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extents {
    /// The present one, as far as it is known.
    present: Extent,
    /// The two before, the later one first.
    past: [Extent; 2],
    /// For how many sequences in turn the same has been foreseen.
    repeated: u32,
}

impl Extents {
    /// As far as the latest two sequences went, if that was more than one page: the shorter of them. If they may have
    /// been equally long, what is known of the longer one is true of both.
    pub fn usual(&self) -> Option<Extent> {
        let Self { present, past: [past, _], .. } = *self;
        let (shorter, longer) = if present.count < past.count { (present, past) } else { (past, present) };
        let count = if longer.count <= shorter.most { longer.count } else { shorter.count };
        let repeats = present.stride == past.stride && shorter.count > 1;
        repeats.then_some(Extent { stride: present.stride, count, most: count })
    }

    /// A sequence begins: what is to be expected of it. Without any habit, that it has the distance `stride`.
    pub fn begin(&mut self, stride: i32) -> Foreseen {
        let usual = self.usual();
        let extent = usual.unwrap_or(Extent::single(stride));
        self.repeated = if usual.is_some() { self.repeated.saturating_add(1) } else { 0 };
        let watched = is_due(self.repeated);
        self.past = [self.present, self.past[0]];
        self.present = if watched { Extent::single(extent.stride) } else { extent };
        Foreseen { extent, watched }
    }

    /// The present sequence has come so far.
    pub fn go_on(&mut self, extent: Extent) {
        self.present = extent;
    }

    /// What were taken for two sequences of one page each are the beginning of this one.
    pub fn join(&mut self, extent: Extent) {
        if self.present.count == 1 && self.past[0].count == 1 {
            self.past = [self.past[1], Extent::default()];
        }
        self.present = extent;
    }
}

/// What will write a run that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    /// The instruction.
    pub code: usize,
    /// How many pages of it: others may go on from there, and only read.
    pub pages: u32,
}

/// Whether what is read is written soon after.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rewriting {
    /// How many runs in turn were written.
    repeated: u32,
    /// The present run was asked for to be written, so that nobody sees whether it is.
    trusted: bool,
    /// How many pages of the present run were written, beyond those that were asked for so.
    written: u32,
    /// What has written the last run of which that was seen.
    writer: Writer,
}

impl Rewriting {
    /// A run begins to be read, after one of `pages` pages: what will write it, if anything will.
    pub fn begin(&mut self, pages: u32) -> Option<Writer> {
        let was = self.trusted || 2 * self.written > pages;
        if !self.trusted {
            self.writer.pages = self.written;
        }
        self.written = 0;
        self.repeated = if was { self.repeated.saturating_add(1) } else { 0 };
        self.trusted = self.repeated >= PROOF && !is_due(self.repeated);
        self.trusted.then_some(self.writer)
    }

    /// So many more pages of the present run are written, by this instruction.
    pub fn note(&mut self, pages: u32, code: usize) {
        self.written = self.written.saturating_add(pages);
        if !self.trusted {
            self.writer.code = code;
        }
    }
}

/// True if what has repeated itself so often is to be watched.
pub fn is_due(repeated: u32) -> bool {
    repeated >= FIRST_CHECK && (repeated.is_power_of_two() || repeated.is_multiple_of(CHECK))
}

/// What one instruction does that faults in one way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    code: usize,
    kind: Kind,
    /// The runs of adjacent pages that it begins.
    pub runs: Extents,
    /// How many of these runs begin at equal distances.
    pub rows: Extents,
    /// Whether these runs are read to be written.
    pub rewriting: Rewriting,
    /// Where the latest runs began, the last one first.
    starts: [u32; STARTS],
    /// Where the latest rows began, and how wide they were taken to be.
    column: (u32, u32),
}

impl Habit {
    /// How wide the rows are that begin at `page`, if each run has `width` pages. Rows right beside the ones before are
    /// part of an array that is read column by column: twice as wide each time, up to `most`.
    pub fn widen(&mut self, page: u32, width: u32, most: u32) -> u32 {
        let (before, wide) = self.column;
        let beside = wide > 0 && page == before + wide;
        let width = if beside { (2 * wide).min(most).max(width) } else { width };
        self.column = (page, width);
        width
    }

    /// A run begins at `page`: what is to be expected of it, and what will write it, if anything will.
    pub fn begin_run(&mut self, page: u32) -> (Foreseen, Option<Writer>) {
        self.starts.rotate_right(1);
        self.starts[0] = page;
        let reads = self.kind == Kind::Read;
        let writer = if reads { self.rewriting.begin(self.runs.present.count) } else { None };
        (self.runs.begin(1), writer)
    }

    /// The distance that leads to the present run from two earlier ones, as far apart in time.
    pub fn stride(&self) -> Option<i32> {
        let [page, earlier @ ..] = self.starts;
        (0..STARTS / 2).find_map(|back| {
            let (one, two) = (i64::from(earlier[back]), i64::from(earlier[2 * back + 1]));
            let stride = i64::from(page) - one;
            let usable = (2..=LONGEST_STRIDE).contains(&stride.unsigned_abs());
            (usable && one - two == stride).then_some(stride as i32)
        })
    }
}

/// The habits of one thread, most recently used first.
#[derive(Clone, Debug, Default)]
pub struct Habits([Habit; HABITS]);

impl Habits {
    /// The habit of an instruction, which is in the first place of the list then.
    pub fn of(&mut self, code: usize, kind: Kind) -> &mut Habit {
        let known = self.0.iter().position(|habit| habit.code == code && habit.kind == kind);
        self.0[..=known.unwrap_or(HABITS - 1)].rotate_right(1);
        if known.is_none() {
            self.0[0] = Habit { code, kind, ..Habit::default() };
        }
        &mut self.0[0]
    }
}
