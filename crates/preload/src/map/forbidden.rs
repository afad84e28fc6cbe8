//! Ranges of the program's memory with another protection than the default: by mprotect or mmap, or beyond the end of a mapped file.

use std::ops::Range;

/// A part of shared memory that the program has protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forbidden {
    pub start: usize,
    pub end: usize,
    /// The allowed protection, as for `mprotect`.
    pub protection: i32,
    /// The part of a mapping that lies beyond the mapped file.
    pub beyond_file: bool,
}

/// Such parts; no two of them overlap.
pub(super) struct ForbiddenRanges(Vec<Forbidden>);

impl ForbiddenRanges {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Removes all restrictions in a range.
    pub(super) fn allow(&mut self, range: &Range<usize>) {
        let outside = |part: Forbidden| {
            let before = Forbidden { end: part.end.min(range.start), ..part };
            let after = Forbidden { start: part.start.max(range.end), ..part };
            [before, after].into_iter().filter(|part| part.start < part.end)
        };
        self.0 = self.0.drain(..).flat_map(outside).collect();
    }

    /// Sets the restriction of a range.
    pub(super) fn forbid(&mut self, part: Forbidden) {
        self.allow(&(part.start..part.end));
        self.0.push(part);
    }

    /// The restrictions inside a range.
    pub(super) fn within(&self, range: &Range<usize>) -> Vec<Forbidden> {
        let cut = |part: &Forbidden| Forbidden {
            start: part.start.max(range.start),
            end: part.end.min(range.end),
            ..*part
        };
        self.0.iter().map(cut).filter(|part| part.start < part.end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: usize, end: usize, protection: i32) -> Forbidden {
        Forbidden { start, end, protection, beyond_file: false }
    }

    #[test]
    fn what_is_allowed_in_the_middle_leaves_both_ends_forbidden() {
        let mut parts = ForbiddenRanges::new();
        parts.forbid(part(10, 50, 0));
        parts.allow(&(20..30));
        assert_eq!(parts.within(&(0..100)), [part(10, 20, 0), part(30, 50, 0)]);
        assert_eq!(parts.within(&(15..35)), [part(15, 20, 0), part(30, 35, 0)]);
        assert_eq!(parts.within(&(20..30)), []);
    }

    #[test]
    fn the_last_word_counts() {
        let mut parts = ForbiddenRanges::new();
        parts.forbid(part(10, 50, 0));
        parts.forbid(part(40, 60, 1));
        assert_eq!(parts.within(&(0..100)), [part(10, 40, 0), part(40, 60, 1)]);
        parts.allow(&(0..100));
        assert_eq!(parts.within(&(0..100)), []);
    }
}
