//! Predicts which pages a thread will touch next, from the faults it took.

/// How many access streams of one thread are told apart: a loop over a few arrays has one stream for each.
const STREAMS: usize = 8;

/// How many faults back a stride is looked for. With the fault itself, a stride takes three of them, as far apart in
/// time as in space: enough for four streams that take turns.
const HISTORY: usize = 8;

/// The longest stride, in pages: farther apart, pages hardly belong to one array walked in order.
const LONGEST_STRIDE: u32 = 1 << 14;

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

    /// The pages ahead of `page`, if they are numbers of pages at all.
    pub fn of(self, page: u32) -> impl Iterator<Item = u32> {
        (1..=i64::from(self.count))
            .map_while(move |step| u32::try_from(i64::from(page) + step * i64::from(self.stride)).ok())
    }
}

/// Access streams of one thread: pages at equal distances.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    /// The most recently used first.
    streams: [Stream; STREAMS],
    /// The latest faults, the last one first.
    history: [u32; HISTORY],
}

#[derive(Clone, Copy, Debug)]
struct Stream {
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
        Self { last: 0, stride: 1, window: 0, vain: false }
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

    /// The stream goes on at `page`.
    fn advance(&mut self, page: u32, steps: u32, limit: u32) {
        // Of a run, less may have been brought than was asked for. Of pages farther apart each was asked for by itself:
        // one that faults again was lost meanwhile.
        self.vain |= self.stride != 1 && steps <= self.window;
        self.window = if self.vain { 0 } else { (self.window * 2).clamp(1, limit.max(1)).min(limit) };
        self.last = page;
    }
}

impl Streams {
    /// A fault at `page`: returns which pages to bring along, at most `limit`.
    ///
    /// The window doubles as long as faults continue where the last window ended. A stream begins with two pages in
    /// sequence, or with three at any other distance; a fault anywhere else asks for nothing ahead.
    pub fn ahead(&mut self, page: u32, limit: u32) -> Ahead {
        let stream = self.stream_of(page, limit);
        self.streams.rotate_right(1);
        self.streams[0] = stream;
        self.history.rotate_right(1);
        self.history[0] = page;
        Ahead { stride: stream.stride, count: stream.window }
    }

    /// The stream that the fault belongs to, taken from its place, which ends up last.
    fn stream_of(&mut self, page: u32, limit: u32) -> Stream {
        let steps_of = |stream: &Stream| stream.steps_to(page).filter(|&steps| steps <= stream.window + 1);
        let established = |stream: &Stream| stream.window > 0 || stream.vain;
        let continued = |wanted: &dyn Fn(&Stream) -> bool, streams: &[Stream]| {
            streams
                .iter()
                .enumerate()
                .filter(|(_, stream)| wanted(stream))
                .find_map(|(place, stream)| Some((place, steps_of(stream)?)))
        };
        if let Some((place, steps)) = continued(&established, &self.streams) {
            let mut stream = self.take(place);
            stream.advance(page, steps, limit);
            return stream;
        }
        let again = |stream: &Stream| stream.last == page && established(stream);
        if let Some(place) = self.streams.iter().position(again) {
            // It was brought in before and is lost again: what followed it then may not be wanted now.
            return Stream { window: 0, ..self.take(place) };
        }
        if let Some(stride) = self.stride_to(page) {
            let place = self
                .streams
                .iter()
                .position(|stream| stream.stride == stride && stream.steps_to(page) == Some(1));
            self.take(place.unwrap_or(STREAMS - 1));
            return Stream { last: page, stride, window: 1.min(limit), vain: false };
        }
        if let Some((place, steps)) = continued(&|stream: &Stream| !established(stream), &self.streams) {
            let mut stream = self.take(place);
            stream.advance(page, steps, limit);
            return stream;
        }
        self.take(STREAMS - 1);
        Stream { last: page, ..Stream::default() }
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

    /// Walks along `pages`, whose faults are those that were not brought along; returns how many those are.
    fn faults(pages: impl IntoIterator<Item = u32>) -> usize {
        let mut streams = Streams::default();
        let mut here = std::collections::HashSet::new();
        let mut faults = 0;
        for page in pages {
            if here.insert(page) {
                faults += 1;
                here.extend(streams.ahead(page, 64).of(page));
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
            let ahead = streams.ahead(page, 8);
            assert!(ahead.stride == 1);
            windows.push(ahead.count);
            page += 1 + ahead.count;
        }
        assert_eq!(windows, [0, 1, 2, 4, 8, 8]);
    }

    #[test]
    fn interleaved_sequences_are_told_apart() {
        let mut streams = Streams::default();
        let mut counts = |a, b| [streams.ahead(a, 64).count, streams.ahead(b, 64).count];
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
        assert!(faults((0..256).rev()) < 16);
    }

    #[test]
    fn a_page_that_faults_again_and_again_brings_nothing_along() {
        let mut streams = Streams::default();
        assert_eq!([(); 4].map(|()| streams.ahead(9, 64).count), [0; 4]);
    }

    /// The next row of a matrix whose rows change at each step must not be brought before its time.
    #[test]
    fn pages_that_are_lost_before_they_are_touched_end_the_stream() {
        let mut streams = Streams::default();
        let brought: u32 = (0..100).map(|step| streams.ahead(1000 + 8 * step, 64).count).sum();
        assert_eq!(brought, 1);
    }

    #[test]
    fn scattered_faults_bring_nothing_along() {
        let mut streams = Streams::default();
        for page in [5, 500, 50, 5000, 7, 70, 700] {
            assert_eq!(streams.ahead(page, 64).count, 0);
        }
    }

    #[test]
    fn nothing_lies_before_the_first_page() {
        assert_eq!(Ahead { stride: -2, count: 5 }.of(5).collect::<Vec<_>>(), [3, 1]);
    }
}
