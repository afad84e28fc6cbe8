//! A set-associative cache as tags: which lines it has, in which state, least recently used first to go.

use gondwana_coherence::directory::State;
use std::ops::Range;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub line: u64,
    pub state: State,
}

/// The tags.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// Each set's lines, the most recently used first; invalid ones at the end. Numbers before states, which are the
    /// last two bits: so the host's caches have twice as many.
    sets: Vec<u64>,
    ways: usize,
    set_count: u64,
}

const NOTHING: u64 = u64::MAX << 2;

impl Held {
    fn pack(self) -> u64 {
        self.line << 2 | self.state as u64
    }

    fn unpack(word: u64) -> Self {
        const STATES: [State; 4] = [State::Invalid, State::Shared, State::Owned, State::Modified];
        Self { line: word >> 2, state: STATES[usize::try_from(word & 3).expect("two bits")] }
    }
}

/// Makes a place of a set the most recently used.
#[inline]
pub(crate) fn to_front<T: Copy>(set: &mut [T], at: usize) {
    if at > 0 {
        set[..=at].rotate_right(1);
    }
}

impl Cache {
    /// An empty cache; all three are at least 1, and there is at least one set.
    pub(crate) fn new(bytes: u64, line: u64, ways: u64) -> Self {
        let set_count = bytes / line / ways;
        let lines = usize::try_from(set_count * ways).expect("machines are checked");
        Self {
            sets: vec![NOTHING; lines],
            ways: usize::try_from(ways).expect("machines are checked"),
            set_count,
        }
    }

    /// The places of the set that a line belongs to, whose physical number differs by `colour` (exclusive or).
    fn places(&self, line: u64, colour: u64) -> Range<usize> {
        // Numbers of sets are powers of two.
        let set = (line ^ colour) & (self.set_count - 1);
        let set = usize::try_from(set).expect("below the number of sets");
        set * self.ways..(set + 1) * self.ways
    }

    fn set(&mut self, line: u64, colour: u64) -> &mut [u64] {
        let places = self.places(line, colour);
        &mut self.sets[places]
    }

    /// The state of a line, which becomes the most recently used.
    pub(crate) fn touch(&mut self, line: u64, colour: u64) -> State {
        let set = self.set(line, colour);
        match set.iter().position(|word| word >> 2 == line) {
            None => State::Invalid,
            Some(at) => {
                to_front(set, at);
                Held::unpack(set[0]).state
            }
        }
    }

    /// The state of a line.
    pub(crate) fn state(&self, line: u64, colour: u64) -> State {
        self.sets[self.places(line, colour)]
            .iter()
            .find(|word| *word >> 2 == line)
            .map_or(State::Invalid, |word| Held::unpack(*word).state)
    }

    /// The line that has to go if another one of its set is added.
    pub(crate) fn victim(&self, line: u64, colour: u64) -> Option<u64> {
        let set = &self.sets[self.places(line, colour)];
        let last = Held::unpack(set[set.len() - 1]);
        (last.state != State::Invalid).then_some(last.line)
    }

    /// Adds a line that is not there; returns the one that had to go.
    pub(crate) fn add(&mut self, line: u64, colour: u64, state: State) -> Option<Held> {
        let set = self.set(line, colour);
        let slot = set.len() - 1;
        let last = Held::unpack(set[slot]);
        to_front(set, slot);
        set[0] = Held { line, state }.pack();
        (last.state != State::Invalid).then_some(last)
    }

    /// Changes the state of a line that is there; [`State::Invalid`] takes it away.
    pub(crate) fn change(&mut self, line: u64, colour: u64, state: State) {
        let set = self.set(line, colour);
        let Some(at) = set.iter().position(|word| word >> 2 == line) else { return };
        if state == State::Invalid {
            set[at..].rotate_left(1);
            let last = set.len() - 1;
            set[last] = NOTHING;
        } else {
            set[at] = Held { line, state }.pack();
        }
    }

    /// All lines that it has.
    pub(crate) fn held(&self) -> impl Iterator<Item = Held> + '_ {
        self.sets.iter().map(|word| Held::unpack(*word)).filter(|held| held.state != State::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{Invalid, Modified, Shared};

    #[test]
    fn the_least_recently_used_line_of_the_set_goes() {
        // Two sets of two ways.
        let mut cache = Cache::new(256, 64, 2);
        assert_eq!(cache.add(0, 0, Shared), None);
        assert_eq!(cache.add(2, 0, Modified), None);
        assert_eq!(cache.add(1, 0, Shared), None, "another set");
        assert_eq!(cache.touch(0, 0), Shared);
        assert_eq!(cache.add(4, 0, Shared), Some(Held { line: 2, state: Modified }));
        assert_eq!([0, 1, 2, 4].map(|line| cache.state(line, 0)), [Shared, Shared, Invalid, Shared]);
    }

    #[test]
    fn a_colour_is_another_set() {
        let mut cache = Cache::new(256, 64, 2);
        for line in [0, 2] {
            assert_eq!(cache.add(line, 0, Shared), None);
        }
        assert_eq!((cache.add(4, 1, Modified), cache.state(4, 1)), (None, Modified));
        assert_eq!(cache.add(5, 1, Shared), Some(Held { line: 0, state: Shared }));
    }

    #[test]
    fn an_invalid_way_is_filled_first() {
        let mut cache = Cache::new(256, 64, 4);
        for line in 0..4 {
            assert_eq!(cache.add(line, 0, Shared), None);
        }
        cache.change(2, 0, Invalid);
        assert_eq!(cache.add(9, 0, Shared), None);
        assert_eq!(cache.add(10, 0, Shared), Some(Held { line: 0, state: Shared }));
    }
}
