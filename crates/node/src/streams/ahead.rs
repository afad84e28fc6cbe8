//! Which pages to bring along with one that is touched.

use super::footprints::Footprint;

/// How many pages before a page are asked for together: not all, so that the nearest come soon.
const BACKWARDS: u32 = 16;

/// Pages that a thread will probably touch after one at which it faults: the rest of the run of adjacent pages that it
/// is in, and further runs like it at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// How many pages right behind the one touched, or right before it.
    pub run: u32,
    /// The run goes towards lower pages.
    pub backwards: bool,
    /// How many further runs.
    pub rows: u32,
    /// The distance from the beginning of each run to that of the next, in pages.
    pub stride: i32,
    /// How many pages each further run has.
    pub width: u32,
    /// Pages around the one touched.
    pub around: Footprint,
}

impl Ahead {
    /// No pages.
    pub const NOTHING: Self = Self {
        run: 0,
        backwards: false,
        rows: 0,
        stride: 0,
        width: 1,
        around: Footprint { first: 0, pages: 0 },
    };

    /// So many pages right behind.
    pub fn next(count: u32) -> Self {
        Self { run: count, ..Self::NOTHING }
    }

    /// The pages of a footprint around `page`.
    pub fn around(page: u32, footprint: Footprint) -> Self {
        let run = footprint.right_behind(page);
        Self { run, around: footprint.without(page + 1, run), ..Self::NOTHING }
    }

    /// How many pages.
    pub fn count(self) -> u32 {
        self.run + self.rows * self.width + self.around.count()
    }

    /// How many pages right behind the one touched can be asked for together with it.
    pub fn right_behind(self) -> u32 {
        if self.backwards { 0 } else { self.run }
    }

    /// All others ahead of `page`, if they are numbers of pages at all, as runs of pages to be asked for together: the
    /// first of each and how many. Those that will be touched first come first.
    pub fn elsewhere(self, page: u32) -> impl Iterator<Item = (u32, u32)> {
        let before = if self.backwards { self.run } else { 0 };
        let rest = (0..before.div_ceil(BACKWARDS)).map_while(move |group| {
            let nearer = group * BACKWARDS;
            let count = BACKWARDS.min(before - nearer);
            Some((page.checked_sub(nearer + count)?, count))
        });
        let lead = if self.backwards { self.width - 1 } else { 0 };
        let rows = (1..=self.rows).map_while(move |row| {
            let first = i64::from(page) + i64::from(row) * i64::from(self.stride) - i64::from(lead);
            Some((u32::try_from(first).ok()?, self.width))
        });
        rest.chain(rows).chain(self.around.runs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_before_the_first_page() {
        let rows =
            |stride, rows, page| Ahead { stride, rows, ..Ahead::NOTHING }.elsewhere(page).collect::<Vec<_>>();
        assert_eq!(rows(-2, 5, 5), [(3, 1), (1, 1)]);
        let before =
            |run, page| Ahead { run, backwards: true, ..Ahead::NOTHING }.elsewhere(page).collect::<Vec<_>>();
        assert_eq!(before(20, 30), [(14, 16), (10, 4)]);
        assert_eq!(before(20, 19), [(3, 16)]);
    }

    #[test]
    fn each_row_is_asked_for_as_a_whole() {
        let ahead = Ahead { run: 2, rows: 2, stride: 8, width: 3, ..Ahead::NOTHING };
        assert_eq!(ahead.right_behind(), 2);
        assert_eq!(ahead.elsewhere(100).collect::<Vec<_>>(), [(108, 3), (116, 3)]);
        let backwards = Ahead { backwards: true, ..ahead };
        assert_eq!(backwards.right_behind(), 0);
        assert_eq!(backwards.elsewhere(100).collect::<Vec<_>>(), [(98, 2), (106, 3), (114, 3)]);
    }
}
