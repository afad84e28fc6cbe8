//! Predicts which pages a thread will touch next, from the faults it took.

use crate::habits::{Foreseen, Habits, Run};

/// How many access streams of one thread are told apart: a loop over a few arrays has one stream for each.
const STREAMS: usize = 8;

/// How many faults back a stride is looked for. With the fault itself, a stride takes three of them, as far apart in
/// time as in space: enough for four streams that take turns.
const HISTORY: usize = 8;

/// The longest stride, in pages: farther apart, pages hardly belong to one array walked in order.
const LONGEST_STRIDE: u32 = 1 << 14;

/// How many pages before a page are asked for together: not all, so that the nearest come soon.
const BACKWARDS: u32 = 16;

/// Pages that a thread will probably touch after one at which it faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The distance from each to the next, in pages.
    pub stride: i32,
    /// How many.
    pub count: u32,
}

impl Ahead {
    /// No pages.
    pub const NOTHING: Self = Self { stride: 1, count: 0 };

    /// So many pages right behind.
    pub fn next(count: u32) -> Self {
        Self { stride: 1, count }
    }

    /// The pages ahead of `page`, if they are numbers of pages at all, as runs of pages to be asked for together: the
    /// first of each and how many. The nearest come first.
    pub fn runs(self, page: u32) -> impl Iterator<Item = (u32, u32)> {
        let together = if self.stride == -1 { BACKWARDS } else { 1 };
        let numbers =
            move |steps: u32| u32::try_from(i64::from(page) + i64::from(steps) * i64::from(self.stride));
        (0..self.count.div_ceil(together)).map_while(move |run| {
            let before = run * together;
            let count = together.min(self.count - before);
            Some((numbers(before + count).ok()?, count))
        })
    }
}

/// Access streams of one thread: pages at equal distances.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// The most recently used first.
    streams: [Stream; STREAMS],
    /// The latest faults, the last one first.
    history: [u32; HISTORY],
    habits: Habits,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The address of the instruction that began it.
    code: usize,
    /// Where the stream faulted first.
    first: u32,
    /// Where the stream faulted last.
    last: u32,
    stride: i32,
    /// How many pages were asked for ahead the last time.
    window: u32,
    /// Pages that had been brought were lost before they were touched, so that none will be.
    vain: bool,
}

impl Default for Stream {
    fn default() -> Self {
        Self { code: 0, first: 0, last: 0, stride: 1, window: 0, vain: false }
    }
}

impl Stream {
    /// How many steps of the stream lie between its last fault and this page; `None` if it is not on the way.
    fn steps_to(&self, page: u32) -> Option<u32> {
        let distance = i64::from(page) - i64::from(self.last);
        let stride = i64::from(self.stride);
        let steps = distance / stride;
        (steps > 0 && distance % stride == 0).then(|| u32::try_from(steps).ok()).flatten()
    }

    /// True once it has asked for pages ahead.
    fn is_proven(&self) -> bool {
        self.window > 0 || self.vain
    }

    /// The pages from the first fault to the last.
    fn run(&self) -> Run {
        let steps = (i64::from(self.last) - i64::from(self.first)) / i64::from(self.stride);
        Run { stride: self.stride, pages: if self.vain { 1 } else { steps as u32 + 1 } }
    }

    /// The stream goes on at `page`.
    fn advance(&mut self, page: u32, steps: u32, limit: u32, is_lost: impl FnOnce() -> bool) {
        // Of a run, less may have been brought than was asked for. Of pages farther apart each was asked for by itself:
        // one that faults again may have been lost meanwhile.
        self.vain |= self.stride.abs() != 1 && steps <= self.window && is_lost();
        self.window = if self.vain { 0 } else { (self.window * 2).clamp(1, limit.max(1)).min(limit) };
        self.last = page;
    }
}

impl Streams {
    /// A fault at `page`, of the instruction at the address `code`: returns which pages to bring along, at most `limit`.
    ///
    /// The window doubles as long as faults continue where the last window ended. A stream begins with two pages in
    /// sequence, or with three at any other distance. A fault anywhere else asks for nothing ahead, unless the last
    /// runs that began with the same instruction went on for some pages: then for as many. `is_lost` tells whether the
    /// page is neither here nor on its way.
    pub fn ahead(&mut self, page: u32, code: usize, limit: u32, is_lost: impl FnOnce() -> bool) -> Ahead {
        let stream = self.stream_of(page, code, limit, is_lost);
        self.streams.rotate_right(1);
        self.streams[0] = stream;
        self.history.rotate_right(1);
        self.history[0] = page;
        Ahead { stride: stream.stride, count: stream.window }
    }

    /// The stream that the fault belongs to, taken from its place, which ends up last.
    fn stream_of(&mut self, page: u32, code: usize, limit: u32, is_lost: impl FnOnce() -> bool) -> Stream {
        if let Some((place, steps)) = self.continued(page, |stream| stream.window > 0) {
            return self.go_on(place, page, steps, limit, is_lost);
        }
        let in_vain = self.continued(page, |stream| stream.vain);
        if in_vain.is_none()
            && let Some(stride) = self.stride_to(page)
        {
            return self.join(page, code, stride, limit);
        }
        let foreseen = self.habits.foresee(code);
        if foreseen != Foreseen::Nothing {
            if let Some((place, steps)) = in_vain {
                self.streams[place].advance(page, steps, limit, is_lost);
            }
            let run = if let Foreseen::Repeats(run) = foreseen { run } else { Run::SINGLE };
            return self.begin(page, code, run, limit);
        }
        if let Some((place, steps)) = in_vain {
            return self.go_on(place, page, steps, limit, is_lost);
        }
        if let Some(place) = self.streams.iter().position(|stream| stream.last == page && stream.is_proven())
        {
            // It was brought in before and is lost again: what followed it then may not be wanted now.
            return Stream { window: 0, ..self.take(place) };
        }
        if let Some((place, steps)) = self.continued(page, |stream| !stream.is_proven()) {
            return self.go_on(place, page, steps, limit, is_lost);
        }
        self.begin(page, code, Run::SINGLE, limit)
    }

    /// The place of the first stream of this kind that leads to `page`, and in how many steps.
    fn continued(&self, page: u32, wanted: impl Fn(&Stream) -> bool) -> Option<(usize, u32)> {
        self.streams.iter().enumerate().filter(|(_, stream)| wanted(stream)).find_map(|(place, stream)| {
            let steps = stream.steps_to(page).filter(|&steps| steps <= stream.window + 1)?;
            Some((place, steps))
        })
    }

    /// A stream begins, which will go as far as `run`.
    fn begin(&mut self, page: u32, code: usize, run: Run, limit: u32) -> Stream {
        self.take(STREAMS - 1);
        self.habits.begin(code, run);
        let window = (run.pages - 1).min(limit);
        Stream { code, first: page, last: page, stride: run.stride, window, vain: false }
    }

    /// Three faults at equal distances are a stream.
    fn join(&mut self, page: u32, code: usize, stride: i32, limit: u32) -> Stream {
        let before = self
            .streams
            .iter()
            .position(|stream| stream.stride == stride && stream.steps_to(page) == Some(1));
        self.take(before.unwrap_or(STREAMS - 1));
        let first = (i64::from(page) - 2 * i64::from(stride)) as u32;
        let stream = Stream { code, first, last: page, stride, window: 1.min(limit), vain: false };
        self.habits.join(code, stream.run());
        stream
    }

    /// The stream at `place` goes on with a fault at `page`.
    fn go_on(
        &mut self,
        place: usize,
        page: u32,
        steps: u32,
        limit: u32,
        is_lost: impl FnOnce() -> bool,
    ) -> Stream {
        let mut stream = self.take(place);
        stream.advance(page, steps, limit, is_lost);
        self.habits.go_on(stream.code, stream.run());
        stream
    }

    /// Takes a stream from its place; those behind it move up.
    fn take(&mut self, place: usize) -> Stream {
        self.streams[place..].rotate_left(1);
        self.streams[STREAMS - 1]
    }

    /// The distance that leads to `page` from two earlier faults, as far apart in time.
    fn stride_to(&self, page: u32) -> Option<i32> {
        (0..HISTORY / 2).find_map(|back| {
            let (before, earlier) = (i64::from(self.history[back]), i64::from(self.history[2 * back + 1]));
            let stride = i64::from(page) - before;
            let usable =
                (2..=LONGEST_STRIDE).contains(&u32::try_from(stride.unsigned_abs()).ok()?) || stride == -1;
            (usable && before - earlier == stride).then_some(stride as i32)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: usize = 0x40_1000;
    const OTHER: usize = 0x40_2000;

    /// Walks along `pages`, whose faults are those that were not brought along; returns how many those are.
    fn faults(pages: impl IntoIterator<Item = u32>) -> usize {
        let mut streams = Streams::default();
        let mut here = std::collections::HashSet::new();
        let mut faults = 0;
        for page in pages {
            if here.insert(page) {
                faults += 1;
                let ahead = streams.ahead(page, CODE, 64, || true);
                here.extend(ahead.runs(page).flat_map(|(first, count)| first..first + count));
            }
        }
        faults
    }

    #[test]
    fn windows_double_along_a_sequence() {
        let mut streams = Streams::default();
        let mut page = 100;
        let mut windows = vec![];
        for _ in 0..6 {
            let ahead = streams.ahead(page, CODE, 8, || true);
            assert!(ahead.stride == 1);
            windows.push(ahead.count);
            page += 1 + ahead.count;
        }
        assert_eq!(windows, [0, 1, 2, 4, 8, 8]);
    }

    #[test]
    fn interleaved_sequences_are_told_apart() {
        let mut streams = Streams::default();
        let mut counts =
            |a, b| [streams.ahead(a, CODE, 64, || true).count, streams.ahead(b, OTHER, 64, || true).count];
        assert_eq!(counts(10, 1000), [0, 0]);
        assert_eq!(counts(11, 1001), [1, 1]);
        assert_eq!(counts(13, 1003), [2, 2]);
    }

    #[test]
    fn a_column_of_blocks_is_a_few_streams() {
        let blocks_of_two_pages = (0..128).flat_map(|row| [row * 64, row * 64 + 1]);
        assert!(faults(blocks_of_two_pages) < 32);
        assert!(faults((0..256).map(|row| 5 + row * 16)) < 16);
    }

    #[test]
    fn walking_backwards_is_a_stream() {
        assert!(faults((1000..1256).rev()) < 16);
    }

    #[test]
    fn a_page_that_faults_again_and_again_brings_nothing_along() {
        let mut streams = Streams::default();
        assert_eq!([(); 4].map(|()| streams.ahead(9, CODE, 64, || true).count), [0; 4]);
    }

    /// The next row of a matrix whose rows change at each step must not be brought before its time.
    #[test]
    fn pages_that_are_lost_before_they_are_touched_end_the_stream() {
        let mut streams = Streams::default();
        let brought: u32 = (0..100).map(|step| streams.ahead(1000 + 8 * step, CODE, 64, || true).count).sum();
        assert_eq!(brought, 1);
    }

    #[test]
    fn scattered_faults_bring_nothing_along() {
        let mut streams = Streams::default();
        for page in [5, 500, 50, 5000, 7, 70, 700] {
            assert_eq!(streams.ahead(page, CODE, 64, || true).count, 0);
        }
    }

    /// Each row begins anywhere; of all but the first two only the first page faults.
    #[test]
    fn rows_are_as_long_as_the_rows_before() {
        let rows =
            |pages: u32| (0..10).flat_map(move |row| (0..pages).map(move |page| row * row * 1000 + page));
        assert_eq!(faults(rows(5)), 2 * 4 + 8);
        assert_eq!(faults(rows(1)), 10);
    }

    #[test]
    fn blocks_are_as_long_as_the_blocks_before() {
        let blocks = |rows: u32| {
            (0..10).flat_map(move |block| (0..rows).map(move |row| 7 + block * block * 10_000 + 2 * row))
        };
        assert!(faults(blocks(32)) < 2 * 10 + 8 + 4, "{}", faults(blocks(32)));
    }

    /// What was brought may have been in vain, so that it is checked now and then.
    #[test]
    fn habits_that_end_are_given_up() {
        let mut streams = Streams::default();
        let mut brought = 0;
        for row in 0..200 {
            let first = row * row * 1000;
            brought = streams.ahead(first, CODE, 64, || true).count;
            if row < 10 && brought == 0 {
                let _ = [1, 3].map(|page| streams.ahead(first + page, CODE, 64, || true));
            }
        }
        assert_eq!(brought, 0);
    }

    /// A thread that overtakes what it has asked for has lost nothing.
    #[test]
    fn pages_on_their_way_are_not_lost() {
        let mut streams = Streams::default();
        let mut brought = |page, lost| streams.ahead(page, CODE, 64, || lost).count;
        assert_eq!([10, 12, 14].map(|page| brought(page, true)), [0, 0, 1]);
        assert_eq!([16, 18, 20].map(|page| brought(page, false)), [2, 4, 8]);
        assert_eq!([22, 24].map(|page| brought(page, true)), [0, 0]);
    }

    #[test]
    fn nothing_lies_before_the_first_page() {
        let runs = |stride, count, page| Ahead { stride, count }.runs(page).collect::<Vec<_>>();
        assert_eq!(runs(-2, 5, 5), [(3, 1), (1, 1)]);
        assert_eq!(runs(-1, 20, 30), [(14, 16), (10, 4)]);
        assert_eq!(runs(-1, 20, 19), [(3, 16)]);
    }
}
