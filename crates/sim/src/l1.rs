//! The first cache of a processor. Its hits are the simulator's fast path.

use crate::cache::to_front;

/// One line of it.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The number of the line; [`NONE`] in an empty way.
    line: u64,
    /// The same if the processor may write it, else [`NONE`].
    writable: u64,
    /// Which words of the *second* cache's line were written through this way since it was filled or last asked.
    words: u64,
}

const NONE: u64 = u64::MAX;

/// Set in the numbers of a line whose page the translation buffer has lost: no fast path takes it, and it wakes when it is
/// used. Numbers of lines are shorter.
const ASLEEP: u64 = 1 << 63;

const EMPTY: Way = Way { line: NONE, writable: NONE, words: 0 };

impl Way {
    /// The number of the line, which may be asleep.
    fn number(&self) -> u64 {
        self.line & !ASLEEP
    }
}

/// Bytes in a word, the unit in which true and false sharing differ.
pub(crate) const WORD: u64 = 4;

/// The tags: each set's most recently used line first.
#[derive(Clone, Debug)]
pub(crate) struct L1 {
    ways: Vec<Way>,
    associativity: usize,
    /// Binary logarithms of: bytes in a line, ways from one set to the next.
    line_shift: u32,
    set_shift: u32,
    set_mask: u64,
    /// Selects the word within a line of the second cache.
    word_mask: u64,
}

impl L1 {
    pub(crate) fn new(bytes: u64, line: u64, ways: u64, outer_line: u64) -> Self {
        let sets = bytes / line / ways;
        let stride = ways.next_power_of_two();
        let all = usize::try_from(sets * stride).expect("machines are checked");
        Self {
            ways: vec![EMPTY; all],
            associativity: usize::try_from(ways).expect("machines are checked"),
            line_shift: line.trailing_zeros(),
            set_shift: stride.trailing_zeros(),
            set_mask: sets - 1,
            word_mask: outer_line / WORD - 1,
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "addresses and indices have 64 bits here")]
    fn first_way(&self, line: u64) -> usize {
        ((line & self.set_mask) << self.set_shift) as usize
    }

    /// True if this is a read of the most recently used line of its set.
    #[inline(always)]
    pub(crate) fn reads_most_recent(&self, address: u64) -> bool {
        let line = address >> self.line_shift;
        self.ways[self.first_way(line)].line == line
    }

    /// True if this is a write to the most recently used line of its set, and permitted.
    #[inline(always)]
    pub(crate) fn writes_most_recent(&mut self, address: u64, width: u64) -> bool {
        let line = address >> self.line_shift;
        let words = self.words(address, width);
        let first = self.first_way(line);
        let way = &mut self.ways[first];
        let hits = way.writable == line;
        if hits {
            way.words |= words;
        }
        hits
    }

    /// The words of the second cache's line that an access is to.
    #[inline(always)]
    pub(crate) fn words(&self, address: u64, width: u64) -> u64 {
        let first = (address / WORD) & self.word_mask;
        let count = (address % WORD + width).div_ceil(WORD).min(64);
        (u64::MAX >> (64 - count)) << first
    }

    /// The line that an address is in.
    pub(crate) fn line_of(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    fn set(&mut self, line: u64) -> &mut [Way] {
        let first = self.first_way(line);
        &mut self.ways[first..first + self.associativity]
    }

    /// True if the line is there and awake, and writable if that is asked for; then it becomes the most recently used.
    pub(crate) fn touch(&mut self, line: u64, write: bool) -> bool {
        let set = self.set(line);
        let found = set.iter().position(|way| if write { way.writable == line } else { way.line == line });
        if let Some(at) = found {
            to_front(set, at);
        }
        found.is_some()
    }

    /// The translation buffer has the page of a line: it is awake if it is there. True if it was there and asleep.
    pub(crate) fn wake(&mut self, line: u64) -> bool {
        let Some(way) = self.set(line).iter_mut().find(|way| way.line == line | ASLEEP) else { return false };
        way.line = line;
        if way.writable != NONE {
            way.writable = line;
        }
        true
    }

    /// True if the translation buffer has not lost the page of a line since it was used.
    pub(crate) fn is_awake(&self, line: u64) -> bool {
        let first = self.first_way(line);
        self.ways[first..first + self.associativity].iter().any(|way| way.line == line)
    }

    /// The translation buffer has lost a page, of `1 << shift` bytes.
    pub(crate) fn sleep(&mut self, page: u64, shift: u32) {
        let shift = shift - self.line_shift;
        let lines = page << shift..(page + 1) << shift;
        let sleep = |way: &mut Way| {
            way.line |= ASLEEP;
            way.writable |= ASLEEP;
        };
        if lines.end - lines.start > self.set_mask {
            self.ways.iter_mut().filter(|way| lines.contains(&way.line)).for_each(sleep);
        } else {
            for line in lines {
                self.set(line).iter_mut().filter(|way| way.line == line).for_each(sleep);
            }
        }
    }

    /// Marks words of the most recently used line as written.
    pub(crate) fn mark(&mut self, line: u64, words: u64) {
        self.set(line)[0].words |= words;
    }

    /// Puts a line in, or changes whether it may be written, as the most recently used. Returns the line that had to
    /// go and the words that were written in it.
    pub(crate) fn fill(&mut self, line: u64, writable: bool) -> Option<(u64, u64)> {
        let set = self.set(line);
        let at = set.iter().position(|way| way.number() == line);
        let slot = at.unwrap_or(set.len() - 1);
        let gone = set[slot];
        to_front(set, slot);
        let words = if at.is_some() { gone.words } else { 0 };
        set[0] = Way { line, writable: if writable { line } else { NONE }, words };
        (at.is_none() && gone.line != NONE).then_some((gone.number(), gone.words))
    }

    /// Takes a line away, or only the right to write it. Returns the words that were written in it.
    pub(crate) fn lose(&mut self, line: u64, only_writing: bool) -> u64 {
        let set = self.set(line);
        let Some(at) = set.iter().position(|way| way.number() == line) else { return 0 };
        let words = std::mem::take(&mut set[at].words);
        if only_writing {
            set[at].writable = NONE;
        } else {
            set[at..].rotate_left(1);
            let last = set.len() - 1;
            set[last] = EMPTY;
        }
        words
    }

    /// The lines that it has with words that were written and not been asked for.
    pub(crate) fn written(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ways = self.ways.iter().filter(|way| way.line != NONE && way.words != 0);
        ways.map(|way| (way.number(), way.words))
    }

    /// All lines that it has, and whether they may be written.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.ways.iter().filter(|way| way.line != NONE).map(|way| (way.number(), way.writable != NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_most_recent_line_of_a_set_is_fast() {
        // Two sets of two ways, lines of 32 bytes.
        let mut l1 = L1::new(128, 32, 2, 64);
        assert_eq!((l1.fill(0, false), l1.fill(2, true)), (None, None));
        assert!(!l1.reads_most_recent(0) && l1.reads_most_recent(64) && l1.writes_most_recent(64, 4));
        assert!(l1.touch(0, false) && l1.reads_most_recent(31) && !l1.writes_most_recent(0, 4));
        assert_eq!(l1.fill(4, false), Some((2, 1)), "word 0 of line 2 was written");
        assert!(!l1.touch(2, false) && l1.touch(0, false));
    }

    #[test]
    fn lines_of_a_page_sleep_and_wake() {
        // Two sets of two ways, lines of 32 bytes; pages of one line, of 64 bytes and of more than all sets.
        for (shift, page, asleep) in [(5, 2, [2, 2]), (6, 1, [2, 3]), (8, 0, [2, 3])] {
            let mut l1 = L1::new(128, 32, 2, 64);
            for line in [2, 3, 9] {
                l1.fill(line, line == 2);
            }
            l1.sleep(page, shift);
            for line in asleep {
                assert!(!l1.touch(line, false) && !l1.reads_most_recent(line * 32));
            }
            assert!(l1.touch(9, false), "another page");
            assert!(l1.wake(asleep[0]) && !l1.wake(asleep[0]) && !l1.wake(9));
            l1.wake(asleep[1]);
            assert!(l1.touch(2, true) && l1.touch(3, false) && !l1.touch(3, true));
        }
        let mut l1 = L1::new(128, 32, 2, 64);
        l1.fill(2, true);
        l1.mark(2, 1);
        l1.sleep(1, 6);
        assert_eq!(l1.lose(2, true), 1, "one that sleeps can be lost");
        assert!(l1.wake(2));
        assert!(l1.touch(2, false) && !l1.touch(2, true));
    }

    #[test]
    fn words_are_those_of_the_second_caches_line() {
        let l1 = L1::new(128, 32, 2, 64);
        assert_eq!(l1.words(64, 1), 1);
        assert_eq!(l1.words(36, 8), 0b11 << 9);
        assert_eq!(l1.words(62, 2), 1 << 15);
        assert_eq!(l1.words(2, 4), 0b11, "unaligned");
    }
}
