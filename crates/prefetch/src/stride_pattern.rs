//! Pages at equal distances that a thread touches in turn.

use crate::extents::{Extent, Predicted};
use crate::fault::{Fault, Kind};
use crate::read_then_write::Writer;
use std::ops::{Range, RangeInclusive};

/// How many pages may be left out in a stream of pages that no node has touched.
const GAP: u32 = 16;

/// A sequential stream (adjacent pages), or a 2-D stride (the beginnings of such streams at equal distances).
#[derive(Clone, Debug, Default)]
pub(crate) struct StridePattern {
    /// The address of the instruction that began it.
    pub code: usize,
    /// Of the faults in it.
    pub kind: Kind,
    /// Where it faulted first.
    first: u32,
    /// Where it faulted last.
    last: u32,
    /// The distance from each page to the next; 0 while that is open.
    stride: i32,
    /// How many steps beyond the last fault were requested.
    window: u32,
    /// How many steps to request the next time, where nothing is predicted.
    pace: u32,
    predicted: Predicted,
    /// Prefetched pages were evicted before use, so that no more are prefetched.
    evicted_before_use: bool,
    /// Pages that it reads are requested for writing, because this will write them. Never set beyond the pages that this
    /// covers.
    writer: Option<Writer>,
    /// What has been written of what it read, with whatever lies between.
    written: Range<u32>,
}

impl StridePattern {
    /// A pattern begins with a fault at `page` and will go as far as is predicted.
    pub(crate) fn begin(fault: Fault, (predicted, writer): (Predicted, Option<Writer>), limit: u32) -> Self {
        let Fault { page, code, kind, .. } = fault;
        let mut pattern = Self {
            code,
            kind,
            first: page,
            last: page,
            stride: predicted.extent.stride,
            predicted,
            writer,
            ..Self::default()
        };
        if predicted.is_trusted() {
            pattern.window = pattern.look_ahead(limit);
        }
        pattern
    }

    /// A pattern whose third page is `page`.
    pub(crate) fn third(code: usize, kind: Kind, page: u32, stride: i32, limit: u32) -> Self {
        let first = page.wrapping_sub_signed(stride.wrapping_mul(2));
        let window = 1.min(limit);
        Self { code, kind, first, last: page, stride, window, pace: 1, ..Self::default() }
    }

    /// True if `page` continues the pattern: it is on the way, and not farther than the first page that was not requested.
    pub(crate) fn leads_to(&self, page: u32) -> bool {
        self.steps_to(page).is_some_and(|steps| steps <= self.window + 1)
    }

    /// As [`Self::leads_to`] for a stream: one of a single page goes on in either direction, and of pages that no node has
    /// touched, some may be left out.
    pub(crate) fn is_continued_as_stream_by(&self, page: u32) -> bool {
        let turns = self.first == self.last && self.window == 0 && page + 1 == self.last;
        let gap = if self.kind == Kind::First { GAP } else { 0 };
        turns || self.steps_to(page).is_some_and(|steps| steps <= self.window + 1 + gap)
    }

    /// How many steps lie between its last fault and this page, if it is on the way.
    fn steps_to(&self, page: u32) -> Option<u32> {
        let distance = i64::from(page) - i64::from(self.last);
        let stride = i64::from(self.stride);
        if stride == 0 || distance % stride != 0 {
            return None;
        }
        u32::try_from(distance / stride).ok().filter(|&steps| steps > 0)
    }

    /// True if `page` is between the first page and the last one that was requested.
    pub(crate) fn holds(&self, page: u32) -> bool {
        self.between(self.last, self.window).contains(&i64::from(page))
    }

    /// The pages between the first one and the one that is so many steps from another, including both.
    fn between(&self, page: u32, steps: u32) -> RangeInclusive<i64> {
        let far = i64::from(page) + i64::from(steps) * i64::from(self.stride);
        let first = i64::from(self.first);
        first.min(far)..=first.max(far)
    }

    /// How far it goes, as far as is known: what was predicted, unless that has been seen to be wrong.
    pub(crate) fn extent(&self) -> Extent {
        if self.evicted_before_use {
            return Extent::single(self.stride);
        }
        let count = self.steps_made() + 1;
        let so_far = Extent { stride: self.stride, count, most: count + self.window };
        let predicted = self.predicted.extent;
        let fits = predicted.stride == self.stride && (so_far.count..=so_far.most).contains(&predicted.count);
        if fits { predicted } else { so_far }
    }

    /// Pages are written: how many of them it is known to have, and were not written before.
    pub(crate) fn write(&mut self, pages: Range<u32>) -> u32 {
        let known = self.between(self.first, self.extent().count - 1);
        let mut written = 0;
        for page in pages.filter(|&page| known.contains(&i64::from(page))) {
            if !self.written.contains(&page) {
                written += 1;
                let so_far = if self.written.is_empty() { page..page } else { self.written.clone() };
                self.written = so_far.start.min(page)..so_far.end.max(page + 1);
            }
        }
        written
    }

    /// Where it began.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// True if it is the beginnings of more than two streams, of which `page` is one.
    pub(crate) fn is_stride_of(&self, page: u32) -> bool {
        let distance = i64::from(page) - i64::from(self.first);
        self.extent().count > 2 && self.holds(page) && distance % i64::from(self.stride) == 0
    }

    /// True if it has prefetched, so that it is more than a page or two.
    pub(crate) fn is_proven(&self) -> bool {
        self.window > 0
    }

    /// How many steps beyond the last fault are prefetched.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// The distance from each page to the next.
    pub(crate) fn stride(&self) -> i32 {
        self.stride
    }

    /// A stream goes on at `page`. Fewer pages may have come than were requested; a fault at a requested page that was
    /// evicted before use halves the pace.
    pub(crate) fn continue_stream(&mut self, page: u32, absent: bool, limit: u32) {
        let backwards = page < self.last;
        let turns = backwards && self.stride == 1;
        if turns {
            self.stride = -1;
            self.predicted = Predicted::default();
        }
        if absent && self.has_requested(page) {
            self.pace /= 2;
        }
        self.last = page;
        self.writer = self.writer.filter(|writer| !turns && self.steps_made() < writer.pages);
        // Two pages in sequence are a stream; backwards it takes three.
        self.window = if turns { 0 } else { self.look_ahead(limit) };
    }

    /// A 2-D stride goes on at `page`. Each stream was requested by itself: one that faults again was evicted before use.
    pub(crate) fn continue_stride(&mut self, page: u32, absent: bool, limit: u32) {
        self.evicted_before_use |= absent && self.has_requested(page);
        self.last = page;
        self.window = if self.evicted_before_use { 0 } else { self.look_ahead(limit) };
    }

    /// True if `page`, at which it goes on, was requested.
    fn has_requested(&self, page: u32) -> bool {
        self.steps_to(page).is_some_and(|steps| steps <= self.window)
    }

    fn steps_made(&self) -> u32 {
        if self.stride == 0 {
            0
        } else {
            let steps = (i64::from(self.last) - i64::from(self.first)) / i64::from(self.stride);
            u32::try_from(steps).unwrap_or(u32::MAX)
        }
    }

    /// The instruction that will write the pages that it requests, if one will.
    pub(crate) fn writer(&self) -> Option<usize> {
        self.writer.map(|writer| writer.code)
    }

    /// How many steps are predicted beyond the last fault; `None` beyond the end of the prediction.
    fn rest(&self) -> Option<u32> {
        self.predicted.extent.count.checked_sub(self.steps_made() + 1)
    }

    /// The next window: the rest of what is predicted. Beyond that, and while the prediction is sampled, windows double.
    /// Pages that will be written are requested by themselves.
    fn look_ahead(&mut self, limit: u32) -> u32 {
        match self.writer {
            Some(writer) => self.next_window(limit).min(writer.pages - 1 - self.steps_made()),
            None => self.next_window(limit),
        }
    }

    fn next_window(&mut self, limit: u32) -> u32 {
        let (trusted, rest) = (self.predicted.is_trusted(), self.rest());
        let most = rest.map_or(limit, |rest| rest.min(limit));
        if trusted && rest.is_some() {
            return most;
        }
        let slowest = if trusted { self.predicted.extent.count / 4 } else { 0 };
        self.pace = (self.pace * 2).max(slowest).clamp(1, limit.max(1));
        self.pace.min(most)
    }
}
