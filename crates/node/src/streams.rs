//! Predicts which pages a thread will touch next, from the faults it took.

/// How many access streams of one thread are told apart: a loop over a few arrays has one stream for each.
const STREAMS: usize = 8;

/// Sequential access streams of one thread.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    streams: [Stream; STREAMS],
    oldest: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Where the stream faulted last.
    last: u32,
    /// First page that was not asked for yet.
    next: u32,
    /// How many pages were asked for ahead the last time.
    window: u32,
}

impl Streams {
    /// A fault at `page`: returns how many pages after it to bring along, at most `limit`.
    ///
    /// The window doubles as long as faults continue where the last window ended, and a stream that begins
    /// anywhere else asks for nothing ahead.
    pub fn ahead(&mut self, page: u32, limit: u32) -> u32 {
        let reached = |stream: &&mut Stream| {
            // Less may have been brought than was asked for, so anything inside the window continues it; a page
            // that faults again, having been invalidated, does not.
            page > stream.last && page <= stream.next
        };
        if let Some(stream) = self.streams.iter_mut().find(reached) {
            stream.window = (stream.window * 2).clamp(1, limit.max(1)).min(limit);
            stream.last = page;
            stream.next = page + 1 + stream.window;
            return stream.window;
        }
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.last == page && stream.next > page)
        {
            // It was brought in before and is lost again: what followed it then may not be wanted now.
            *stream = Stream { last: page, next: page + 1, window: 0 };
            return 0;
        }
        self.streams[self.oldest] = Stream { last: page, next: page + 1, window: 0 };
        self.oldest = (self.oldest + 1) % STREAMS;
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_along_a_sequence() {
        let mut streams = Streams::default();
        let mut page = 100;
        let mut windows = vec![];
        for _ in 0..6 {
            let ahead = streams.ahead(page, 8);
            windows.push(ahead);
            page += 1 + ahead;
        }
        assert_eq!(windows, [0, 1, 2, 4, 8, 8]);
    }

    #[test]
    fn interleaved_sequences_are_told_apart() {
        let mut streams = Streams::default();
        assert_eq!([streams.ahead(10, 64), streams.ahead(1000, 64)], [0, 0]);
        assert_eq!([streams.ahead(11, 64), streams.ahead(1001, 64)], [1, 1]);
        assert_eq!([streams.ahead(13, 64), streams.ahead(1003, 64)], [2, 2]);
    }

    #[test]
    fn a_page_that_faults_again_and_again_brings_nothing_along() {
        let mut streams = Streams::default();
        assert_eq!([(); 4].map(|()| streams.ahead(9, 64)), [0; 4]);
    }

    #[test]
    fn scattered_faults_bring_nothing_along() {
        let mut streams = Streams::default();
        for page in [5, 500, 50, 5000, 7, 70, 700] {
            assert_eq!(streams.ahead(page, 64), 0);
        }
    }
}
