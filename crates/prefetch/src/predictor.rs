//! Finds patterns in the faults of one thread and predicts the pages that it will touch next.

use crate::fault::{Fault, Kind};
use crate::interleaved::InterleavedStreams;
use crate::prediction::{Prediction, Prefetch};
use crate::prediction_table::PredictionTable;
use crate::spatial_footprint::SpatialFootprints;
use crate::stride_pattern::StridePattern;

/// How many streams, and how many 2-D strides, of one thread are told apart.
const PATTERNS: usize = 12;

/// Access patterns of one thread.
#[derive(Clone, Debug, Default)]
pub struct Predictor {
    /// Sequential streams, the most recently used first.
    streams: [StridePattern; PATTERNS],
    /// 2-D strides: beginnings of streams at equal distances, the most recently used first.
    strides: [StridePattern; PATTERNS],
    table: PredictionTable,
    /// Streams that are not the latest ones.
    interleaved: InterleavedStreams,
    footprints: SpatialFootprints,
}

impl Predictor {
    /// What to prefetch after this fault: at most `limit` adjacent pages, and as many in further streams.
    ///
    /// Windows double as long as faults continue where the last window ended. A stream begins with two pages in sequence,
    /// a 2-D stride with three streams at any other distance. A fault anywhere else prefetches nothing, unless the last
    /// streams, or 2-D strides, that began with the same instruction went on for some pages: then as many. Likewise,
    /// streams are requested for writing if the last ones that began with the same instruction were read and then
    /// written.
    pub fn predict(&mut self, fault: Fault, limit: u32) -> Prediction {
        let known = |stream: &StridePattern| {
            let goes_on = stream.kind == fault.kind && stream.is_continued_as_stream_by(fault.page);
            goes_on && (stream.is_proven() || !self.is_of_column(stream, fault))
        };
        let mut prediction = match self.streams.iter().position(known) {
            Some(place) => self.go_on(place, fault, limit),
            None => self.go_on_interleaved(fault, limit).unwrap_or_else(|| self.begin(fault, limit)),
        };
        if fault.kind == Kind::Upgrade {
            self.note_write(fault, 1 + prediction.prefetch.stream);
        }
        if fault.kind == Kind::Read {
            let again = self.footprints.read(fault.page, fault.absent);
            if prediction.writer.is_none() && again.count() > prediction.prefetch.count() {
                prediction.prefetch = Prefetch::footprint(fault.page, again);
            }
        }
        prediction.prefetch = prediction.prefetch.limited(limit);
        prediction
    }

    /// True if `stream`, of a single page so far, is part of a 2-D stride that the same instruction makes or has made:
    /// then the page right behind it is another column.
    fn is_of_column(&self, stream: &StridePattern, fault: Fault) -> bool {
        let is_same = |other: &&StridePattern| other.code == fault.code && other.kind == fault.kind;
        let mut strides = self.strides.iter().filter(is_same);
        let latest = self.streams.iter().find(is_same);
        let left = latest.is_some_and(|latest| !latest.holds(stream.first()));
        strides.any(|stride| {
            stride.is_proven() && continues(stride, fault) || left && stride.is_stride_of(stream.first())
        })
    }

    /// The stream at `place` goes on.
    fn go_on(&mut self, place: usize, fault: Fault, limit: u32) -> Prediction {
        let stream = to_front(&mut self.streams, place);
        stream.continue_stream(fault.page, fault.absent, limit);
        self.table.entry(stream.code, stream.kind).streams.go_on(stream.extent());
        let prefetch = Prefetch { stream: stream.window(), backwards: stream.stride() < 0, ..Prefetch::NONE };
        Prediction { prefetch, writer: stream.writer() }
    }

    /// One of many streams goes on.
    fn go_on_interleaved(&mut self, fault: Fault, limit: u32) -> Option<Prediction> {
        let entry = self.table.entry(fault.code, fault.kind);
        let stream = self.interleaved.predict(fault, &mut entry.interleaving, limit)?;
        Some(Prediction { prefetch: Prefetch { stream, ..Prefetch::NONE }, writer: None })
    }

    /// A stream begins.
    fn begin(&mut self, fault: Fault, limit: u32) -> Prediction {
        let Fault { page, code, kind, .. } = fault;
        let begun @ (predicted, _) = self.table.entry(code, kind).begin_stream(page);
        // What was known about these pages before is known better now.
        let again = self.streams.iter().position(|stream| stream.kind == kind && stream.holds(page));
        let stream = to_front(&mut self.streams, again.unwrap_or(PATTERNS - 1));
        *stream = StridePattern::begin(fault, begun, limit);
        let writer = stream.writer();
        let backwards = predicted.extent.stride < 0;
        let prefetch = Prefetch { stream: stream.window(), backwards, ..Prefetch::NONE };
        let prefetch = match kind {
            Kind::First => prefetch,
            Kind::Read | Kind::Write => self.with_stride(fault, prefetch, predicted.extent.count, limit),
            // The pages right behind are not taken for written: those that are read there would be requested for writing.
            Kind::Upgrade => {
                let strided = self.with_stride(fault, prefetch, predicted.extent.count, limit);
                Prefetch { stream: prefetch.stream, ..strided }
            }
        };
        Prediction { prefetch, writer }
    }

    /// Adds the 2-D stride of a stream that begins and is `width` pages wide.
    fn with_stride(&mut self, fault: Fault, mut prefetch: Prefetch, mut width: u32, limit: u32) -> Prefetch {
        let Fault { page, code, kind, absent } = fault;
        let entry = self.table.entry(code, kind);
        let place = self.strides.iter().position(|stride| continues(stride, fault));
        let stride = to_front(&mut self.strides, place.unwrap_or(PATTERNS - 1));
        if place.is_some() {
            stride.continue_stride(page, absent, limit / width);
            entry.strides.go_on(stride.extent());
        } else if entry.strides.usual().is_none()
            && let Some(distance) = entry.stride()
        {
            *stride = StridePattern::third(code, kind, page, distance, limit / width);
            entry.strides.join(stride.extent());
        } else {
            let predicted = entry.strides.begin(0);
            if predicted.is_trusted() {
                width = entry.widen(page, width, (limit + 1) / predicted.extent.count);
                if !prefetch.backwards {
                    prefetch.stream = prefetch.stream.max(width - 1);
                }
            }
            *stride = StridePattern::begin(fault, (predicted, None), limit / width);
        }
        Prefetch { stride: stride.stride(), repeats: stride.window(), width, ..prefetch }
    }

    /// Pages that are resident, and were perhaps read before, are about to be written.
    fn note_write(&mut self, Fault { page, code, .. }: Fault, count: u32) {
        let known = |stream: &&mut StridePattern| {
            stream.kind == Kind::Read && stream.writer().is_none() && stream.holds(page)
        };
        if let Some(stream) = self.streams.iter_mut().find(known) {
            let written = stream.write(page..page + count);
            self.table.entry(stream.code, Kind::Read).read_then_write.note(written, code);
        }
    }
}

/// True if a stream that begins with this fault is the next one of this 2-D stride.
fn continues(stride: &StridePattern, fault: Fault) -> bool {
    stride.code == fault.code && stride.kind == fault.kind && stride.leads_to(fault.page)
}

/// Moves a pattern to the first place; those before it move down.
fn to_front(patterns: &mut [StridePattern], place: usize) -> &mut StridePattern {
    patterns[..=place].rotate_right(1);
    &mut patterns[0]
}
