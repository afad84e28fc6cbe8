//! Predicts which pages a thread will touch next, from the faults it took.
//!
//! Three patterns are looked for. A *run* is a sequence of adjacent pages, of whatever instructions. *Rows* are runs that
//! one instruction begins at equal distances, such as rows of a block of a matrix. What an instruction began before
//! tells how far its next run and its next rows will go ([`Habits`]). A *footprint* is pages close to each other that are
//! read again and again in any order ([`Footprints`]).

mod ahead;
mod footprints;
mod sequence;
#[cfg(test)]
mod tests;

pub use ahead::Ahead;

use crate::habits::Habits;
use footprints::Footprints;
use sequence::Sequence;

/// How many runs, and how many rows, of one thread are told apart.
const SEQUENCES: usize = 12;

/// What a fault asks for. Sequences are of one kind each: what it costs to be wrong differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Nobody touched the page yet, so that it costs nothing to have more of them.
    #[default]
    First,
    /// The page, to be read: a copy too many costs its home a fault when that writes.
    Read,
    /// The page, to be written: one too many may have to go back.
    Write,
    /// The right to write a page that is here.
    Upgrade,
}

impl Kind {
    /// What a fault asks for by writing or not, at a page that is here or not, that somebody touched or nobody. Nothing if
    /// another thread has brought it meanwhile.
    pub fn of(write: bool, here: bool, touched: bool) -> Option<Self> {
        match (here, touched, write) {
            (true, _, true) => Some(Self::Upgrade),
            (true, _, false) => None,
            (false, false, _) => Some(Self::First),
            (false, true, false) => Some(Self::Read),
            (false, true, true) => Some(Self::Write),
        }
    }
}

/// A fault of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub page: u32,
    /// The address of the instruction.
    pub code: usize,
    pub kind: Kind,
    /// The page is neither here nor on its way.
    pub lost: bool,
}

/// What is to be expected after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The pages that will be touched next, in the same way.
    pub ahead: Ahead,
    /// What is read now will be written soon, the page itself and those ahead, by this instruction.
    pub writer: Option<usize>,
}

impl Forecast {
    /// Nothing is to be expected.
    pub const NOTHING: Self = Self { ahead: Ahead::NOTHING, writer: None };
}

/// Access patterns of one thread.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// Runs of adjacent pages, the most recently used first.
    runs: [Sequence; SEQUENCES],
    /// Beginnings of runs at equal distances, the most recently used first.
    rows: [Sequence; SEQUENCES],
    habits: Habits,
    footprints: Footprints,
}

impl Streams {
    /// What is to be expected after this fault, at most `limit` pages.
    ///
    /// Windows double as long as faults continue where the last window ended. A run begins with two pages in sequence,
    /// rows with three runs at any other distance. A fault anywhere else asks for nothing ahead, unless the last runs,
    /// or rows, that began with the same instruction went on for some pages: then for as many. Likewise, runs are
    /// asked for to be written if the last ones that began with the same instruction were read and then written.
    pub fn foresee(&mut self, fault: Fault, limit: u32) -> Forecast {
        let known = |run: &Sequence| {
            let goes_on = run.kind == fault.kind && run.runs_to(fault.page);
            goes_on && (run.is_proven() || !self.is_of_column(run, fault))
        };
        let mut forecast = match self.runs.iter().position(known) {
            Some(place) => self.go_on(place, fault, limit),
            None => self.begin(fault, limit),
        };
        if fault.kind == Kind::Upgrade {
            self.note_rewriting(fault, 1 + forecast.ahead.run);
        }
        if fault.kind == Kind::Read {
            let again = self.footprints.read(fault.page, fault.lost);
            if forecast.writer.is_none() && again.count() > forecast.ahead.count() {
                forecast.ahead = Ahead::around(fault.page, again);
            }
        }
        forecast
    }

    /// True if `run`, of a single page so far, is one of the rows that the same instruction walks down or has walked
    /// down: then what lies right behind it is another column.
    fn is_of_column(&self, run: &Sequence, fault: Fault) -> bool {
        let mut others = self.rows.iter().filter(|rows| rows.code == fault.code && rows.kind == fault.kind);
        let latest = self.runs.iter().find(|run| run.code == fault.code && run.kind == fault.kind);
        let left = latest.is_some_and(|latest| !latest.holds(run.first()));
        others
            .any(|rows| rows.is_proven() && continues(rows, fault) || left && rows.is_column_of(run.first()))
    }

    /// The run at `place` goes on.
    fn go_on(&mut self, place: usize, fault: Fault, limit: u32) -> Forecast {
        let run = to_front(&mut self.runs, place);
        run.run_on(fault.page, fault.lost, limit);
        self.habits.of(run.code, run.kind).runs.go_on(run.extent());
        let ahead = Ahead { run: run.window(), backwards: run.stride() < 0, ..Ahead::NOTHING };
        Forecast { ahead, writer: run.writer() }
    }

    /// A run begins.
    fn begin(&mut self, fault: Fault, limit: u32) -> Forecast {
        let Fault { page, code, kind, .. } = fault;
        let expected @ (foreseen, _) = self.habits.of(code, kind).begin_run(page);
        // What was known about these pages before is known better now.
        let again = self.runs.iter().position(|run| run.kind == kind && run.holds(page));
        let run = to_front(&mut self.runs, again.unwrap_or(SEQUENCES - 1));
        *run = Sequence::begin(fault, expected, limit);
        let writer = run.writer();
        let ahead = Ahead { run: run.window(), backwards: foreseen.extent.stride < 0, ..Ahead::NOTHING };
        let ahead = match kind {
            Kind::First => ahead,
            Kind::Read | Kind::Write => self.with_rows(fault, ahead, foreseen.extent.count, limit),
            // What lies right behind is not taken for written: what is read there would be asked for to be written.
            Kind::Upgrade => {
                Ahead { run: ahead.run, ..self.with_rows(fault, ahead, foreseen.extent.count, limit) }
            }
        };
        Forecast { ahead, writer }
    }

    /// Adds the rows behind a run that begins and is `width` pages wide.
    fn with_rows(&mut self, fault: Fault, mut ahead: Ahead, mut width: u32, limit: u32) -> Ahead {
        let Fault { page, code, kind, lost } = fault;
        let habit = self.habits.of(code, kind);
        let place = self.rows.iter().position(|rows| continues(rows, fault));
        let rows = to_front(&mut self.rows, place.unwrap_or(SEQUENCES - 1));
        if place.is_some() {
            rows.step_on(page, lost, limit / width);
            habit.rows.go_on(rows.extent());
        } else if habit.rows.usual().is_none()
            && let Some(stride) = habit.stride()
        {
            *rows = Sequence::third(code, kind, page, stride, limit / width);
            habit.rows.join(rows.extent());
        } else {
            let foreseen = habit.rows.begin(0);
            if foreseen.is_trusted() {
                width = habit.widen(page, width, (limit + 1) / foreseen.extent.count);
                if !ahead.backwards {
                    ahead.run = ahead.run.max(width - 1);
                }
            }
            *rows = Sequence::begin(fault, (foreseen, None), limit / width);
        }
        Ahead { stride: rows.stride(), rows: rows.window(), width, ..ahead }
    }

    /// Pages that are here, and were perhaps read before, are about to be written.
    fn note_rewriting(&mut self, Fault { page, code, .. }: Fault, count: u32) {
        let known = |run: &&mut Sequence| run.kind == Kind::Read && run.writer().is_none() && run.holds(page);
        if let Some(run) = self.runs.iter_mut().find(known) {
            let written = run.write(page..page + count);
            self.habits.of(run.code, Kind::Read).rewriting.note(written, code);
        }
    }
}

/// True if a run that begins with this fault is the next one of these rows.
fn continues(rows: &Sequence, fault: Fault) -> bool {
    rows.code == fault.code && rows.kind == fault.kind && rows.leads_to(fault.page)
}

/// Moves a sequence to the first place; those before it move down.
fn to_front(sequences: &mut [Sequence], place: usize) -> &mut Sequence {
    sequences[..=place].rotate_right(1);
    &mut sequences[0]
}
