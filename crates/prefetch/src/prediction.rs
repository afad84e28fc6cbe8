//! What is predicted after a fault.

use crate::spatial_footprint::SpatialFootprint;

/// How many pages before a page are requested together: not all, so that the nearest come soon.
const BACKWARDS: u32 = 16;

/// What is predicted after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The pages that will be touched next, in the same way.
    pub prefetch: Prefetch,
    /// The address of the instruction that will soon write the page and those of `prefetch`, if one will.
    pub writer: Option<usize>,
}

impl Prediction {
    /// Nothing is predicted.
    pub const NONE: Self = Self { prefetch: Prefetch::NONE, writer: None };
}

/// Pages that a thread will probably touch after one at which it faults: the rest of the sequential stream that the page is
/// in, further streams like it at equal distances (a 2-D stride), and a spatial footprint around the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// How many pages right behind the one touched, or right before it.
    pub stream: u32,
    /// The stream goes towards lower pages.
    pub backwards: bool,
    /// How many further streams.
    pub repeats: u32,
    /// The distance from the beginning of each stream to that of the next, in pages.
    pub stride: i32,
    /// How many pages each further stream has.
    pub width: u32,
    /// Pages around the one touched.
    pub footprint: SpatialFootprint,
}

impl Prefetch {
    /// No pages.
    pub const NONE: Self = Self {
        stream: 0,
        backwards: false,
        repeats: 0,
        stride: 0,
        width: 1,
        footprint: SpatialFootprint { first: 0, pages: 0 },
    };

    /// So many pages right behind.
    #[must_use]
    pub fn next(count: u32) -> Self {
        Self { stream: count, ..Self::NONE }
    }

    /// The pages of a spatial footprint around `page`.
    pub(crate) fn footprint(page: u32, footprint: SpatialFootprint) -> Self {
        let stream = footprint.adjacent(page);
        Self { stream, footprint: footprint.without(page + 1, stream), ..Self::NONE }
    }

    /// At most `limit` adjacent pages, and as many in further streams: a stream can be expected to be longer.
    pub(crate) fn limited(self, limit: u32) -> Self {
        Self { stream: self.stream.min(limit), repeats: self.repeats.min(limit / self.width), ..self }
    }

    /// How many pages.
    #[must_use]
    pub fn count(self) -> u32 {
        self.stream + self.repeats * self.width + self.footprint.count()
    }

    /// How many pages right behind the one touched can be requested together with it.
    #[must_use]
    pub fn adjacent(self) -> u32 {
        if self.backwards { 0 } else { self.stream }
    }

    /// All other pages, as ranges to be requested together: the first page of each and how many. Those that will be
    /// touched first come first; negative page numbers are left out.
    pub fn elsewhere(self, page: u32) -> impl Iterator<Item = (u32, u32)> {
        let before = if self.backwards { self.stream } else { 0 };
        let rest = (0..before.div_ceil(BACKWARDS)).map_while(move |group| {
            let nearer = group * BACKWARDS;
            let count = BACKWARDS.min(before - nearer);
            Some((page.checked_sub(nearer + count)?, count))
        });
        let lead = if self.backwards { self.width - 1 } else { 0 };
        let streams = (1..=self.repeats).map_while(move |nth| {
            let first = i64::from(page) + i64::from(nth) * i64::from(self.stride) - i64::from(lead);
            Some((u32::try_from(first).ok()?, self.width))
        });
        rest.chain(streams).chain(self.footprint.ranges())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_before_the_first_page() {
        let strides = |stride, repeats, page| {
            Prefetch { stride, repeats, ..Prefetch::NONE }.elsewhere(page).collect::<Vec<_>>()
        };
        assert_eq!(strides(-2, 5, 5), [(3, 1), (1, 1)]);
        let before = |stream, page| {
            Prefetch { stream, backwards: true, ..Prefetch::NONE }.elsewhere(page).collect::<Vec<_>>()
        };
        assert_eq!(before(20, 30), [(14, 16), (10, 4)]);
        assert_eq!(before(20, 19), [(3, 16)]);
    }

    #[test]
    fn each_stream_of_a_stride_is_requested_as_a_whole() {
        let prefetch = Prefetch { stream: 2, repeats: 2, stride: 8, width: 3, ..Prefetch::NONE };
        assert_eq!(prefetch.adjacent(), 2);
        assert_eq!(prefetch.elsewhere(100).collect::<Vec<_>>(), [(108, 3), (116, 3)]);
        let backwards = Prefetch { backwards: true, ..prefetch };
        assert_eq!(backwards.adjacent(), 0);
        assert_eq!(backwards.elsewhere(100).collect::<Vec<_>>(), [(98, 2), (106, 3), (114, 3)]);
    }
}
