//! Remembers how far the runs of accesses that begin at one place of the program go.

/// How many places of the program are remembered.
const HABITS: usize = 16;

/// One run in so many is not foreseen, to see whether runs still go as far: of pages that were brought nobody hears
/// whether they are used.
const CHECK: u32 = 16;

/// A run of accesses at equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The distance from one page to the next, in pages.
    pub stride: i32,
    /// How many pages.
    pub pages: u32,
}

impl Run {
    /// One page by itself.
    pub const SINGLE: Self = Self { stride: 1, pages: 1 };
}

/// What is to be expected of a run that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// Nothing: runs differ, or are of one page.
    Nothing,
    /// It will go as far as the last two.
    Repeats(Run),
    /// It would, but is to be watched.
    Check,
}

/// What the instruction at one address does: a loop over the rows of a matrix begins a new run with each row, and each
/// is as long as the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    /// The address of the instruction whose fault begins the runs.
    code: usize,
    /// As far as the present run is known.
    present: Run,
    /// The two before, the later one first.
    past: [Run; 2],
    /// Runs so far.
    runs: u32,
}

/// The habits of one thread, most recently used first.
#[derive(Clone, Debug, Default)]
pub struct Habits([Habit; HABITS]);

impl Habits {
    /// What to expect if a run begins now, with a fault of the instruction at `code`.
    #[must_use]
    pub fn foresee(&self, code: usize) -> Foreseen {
        let Some(habit) = self.0.iter().find(|habit| habit.code == code) else { return Foreseen::Nothing };
        let Habit { present, past: [past, _], runs, .. } = *habit;
        let run = Run { stride: present.stride, pages: present.pages.min(past.pages) };
        match run.pages {
            0 | 1 => Foreseen::Nothing,
            _ if present.stride != past.stride => Foreseen::Nothing,
            _ if runs.is_multiple_of(CHECK) => Foreseen::Check,
            _ => Foreseen::Repeats(run),
        }
    }

    /// A run begins that will go as far as `run`, if nothing else is heard of it.
    pub fn begin(&mut self, code: usize, run: Run) {
        let habit = self.of(code);
        habit.past = [habit.present, habit.past[0]];
        habit.present = run;
        habit.runs = habit.runs.wrapping_add(1);
    }

    /// The present run goes on: it has come so far.
    pub fn go_on(&mut self, code: usize, run: Run) {
        self.of(code).present = run;
    }

    /// What were taken for two runs of one page each are the beginning of this one.
    pub fn join(&mut self, code: usize, run: Run) {
        let habit = self.of(code);
        if habit.present.pages == 1 && habit.past[0].pages == 1 {
            habit.past = [habit.past[1], Run::default()];
        }
        habit.present = run;
    }

    /// The habit of an instruction, in the first place of the list.
    fn of(&mut self, code: usize) -> &mut Habit {
        let known = self.0.iter().position(|habit| habit.code == code);
        self.0[..=known.unwrap_or(HABITS - 1)].rotate_right(1);
        if known.is_none() {
            self.0[0] = Habit { code, ..Habit::default() };
        }
        &mut self.0[0]
    }
}
