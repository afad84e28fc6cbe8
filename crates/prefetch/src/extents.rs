//! How far the latest patterns of one instruction went.

use crate::sampling::is_due;

/// How far a pattern of pages at equal distances goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The distance from one page to the next.
    pub stride: i32,
    /// How many pages, at least.
    pub count: u32,
    /// How many it may have been: prefetched pages don't fault, so that the end of the pattern is not seen.
    pub most: u32,
}

impl Extent {
    /// A page by itself, and the distance at which another one would have to be.
    pub(crate) fn single(stride: i32) -> Self {
        Self { stride, count: 1, most: 1 }
    }
}

/// What is predicted of a pattern that begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Predicted {
    /// How far it will go.
    pub extent: Extent,
    /// The prediction is checked this time, so nothing is prefetched because of it.
    sampled: bool,
}

impl Predicted {
    /// True if pages are to be prefetched because of it.
    pub(crate) fn is_trusted(self) -> bool {
        !self.sampled && self.extent.count > 1
    }
}

/// How far the latest patterns went: a loop over the rows of a matrix begins a stream of pages with each row, and each is
/// as long as the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extents {
    /// The present one, as far as it is known.
    present: Extent,
    /// The two before, the later one first.
    past: [Extent; 2],
    /// For how many patterns in turn the same has been predicted.
    repeated: u32,
}

impl Extents {
    /// How many pages the present one has, as far as is known.
    pub(crate) fn present_count(&self) -> u32 {
        self.present.count
    }

    /// As far as the latest two patterns went, if that was more than one page: the shorter of them. If they may have
    /// been equally long, what is known of the longer one is true of both.
    pub(crate) fn usual(&self) -> Option<Extent> {
        let Self { present, past: [past, _], .. } = *self;
        let (shorter, longer) = if present.count < past.count { (present, past) } else { (past, present) };
        let count = if longer.count <= shorter.most { longer.count } else { shorter.count };
        let repeats = present.stride == past.stride && shorter.count > 1;
        repeats.then_some(Extent { stride: present.stride, count, most: count })
    }

    /// A pattern begins: what is predicted of it. Without a usual extent, that it is one page, with the distance `stride`.
    pub(crate) fn begin(&mut self, stride: i32) -> Predicted {
        let usual = self.usual();
        let extent = usual.unwrap_or(Extent::single(stride));
        self.repeated = if usual.is_some() { self.repeated.saturating_add(1) } else { 0 };
        let sampled = is_due(self.repeated);
        self.past = [self.present, self.past[0]];
        self.present = if sampled { Extent::single(extent.stride) } else { extent };
        Predicted { extent, sampled }
    }

    /// The present pattern has come so far.
    pub(crate) fn go_on(&mut self, extent: Extent) {
        self.present = extent;
    }

    /// What were taken for two patterns of one page each are the beginning of this one.
    pub(crate) fn join(&mut self, extent: Extent) {
        if self.present.count == 1 && self.past[0].count == 1 {
            self.past = [self.past[1], Extent::default()];
        }
        self.present = extent;
    }
}
