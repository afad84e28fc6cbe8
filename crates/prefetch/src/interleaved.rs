//! Sequential streams of which one instruction makes hundreds in turn, as a sort does that deals keys to many places.

use crate::fault::{Fault, Kind};

/// How many streams are remembered. One takes the place of another.
const PLACES: usize = 1024;

/// Most pages that are prefetched at once: where such a stream ends, that of another thread often begins.
const MOST: u8 = 4;

/// From so many more continuations than beginnings on, an instruction is taken to make such streams.
const TRUSTED: u8 = 16;

/// More are not counted, so that an instruction that does something else is soon known to.
const LIMIT: u8 = 2 * TRUSTED;

/// How often faults of one instruction continued a remembered stream, less how often they began one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interleaving(u8);

impl Interleaving {
    fn note(&mut self, continues: bool) {
        self.0 = if continues { (self.0 + 1).min(LIMIT) } else { self.0.saturating_sub(1) };
    }

    fn is_trusted(self) -> bool {
        self.0 >= TRUSTED
    }
}

/// One stream, as far as it was requested.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The page behind; 0 of a place that is not in use.
    next: u32,
    /// How many pages were prefetched the last time.
    window: u8,
    kind: Kind,
    code: usize,
}

/// The streams of one thread that are not the latest ones, by the page at which each would go on.
#[derive(Clone, Debug)]
pub(crate) struct InterleavedStreams(Box<[Place]>);

impl Default for InterleavedStreams {
    fn default() -> Self {
        // Not inline: a thread that begins may have a small stack.
        Self(vec![Place::default(); PLACES].into())
    }
}

impl InterleavedStreams {
    /// A fault that continues none of the latest streams: how many pages to prefetch behind it, if it continues one of these.
    ///
    /// A page that faults again is in no stream: the thread touches pages in any order, or loses them to other nodes.
    pub(crate) fn predict(
        &mut self,
        fault: Fault,
        interleaving: &mut Interleaving,
        limit: u32,
    ) -> Option<u32> {
        let Fault { page, code, kind, .. } = fault;
        let again = self.take(page.saturating_add(1), fault).is_some();
        let before = self.take(page, fault).filter(|_| !again);
        interleaving.note(before.is_some());
        let before = before.filter(|_| interleaving.is_trusted());
        let window = before.map_or(0, |before| (2 * before).clamp(1, MOST));
        let prefetched = limit.min(window.into());
        let next = page.saturating_add(prefetched + 1);
        *self.place(next) = Place { next, window, kind, code };
        before.map(|_| prefetched)
    }

    /// Forgets the stream that would go on at `page` with such a fault; returns how many pages were prefetched for it.
    fn take(&mut self, page: u32, fault: Fault) -> Option<u8> {
        let place = self.place(page);
        let found = page != 0 && place.next == page && place.code == fault.code && place.kind == fault.kind;
        found.then(|| std::mem::take(place).window)
    }

    fn place(&mut self, page: u32) -> &mut Place {
        // Streams lie at all kinds of distances, mostly powers of two.
        let scattered = page.wrapping_mul(0x9E37_79B1) >> 16;
        &mut self.0[scattered as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pages were prefetched by one instruction that faults at these pages.
    fn prefetched(pages: impl IntoIterator<Item = u32>) -> u32 {
        let (mut streams, mut interleaving) = (InterleavedStreams::default(), Interleaving::default());
        let fault = |page| Fault { page, code: 0x40_1000, kind: Kind::Write, absent: true };
        pages.into_iter().filter_map(|page| streams.predict(fault(page), &mut interleaving, 64)).sum()
    }

    #[test]
    fn streams_in_turn_are_prefetched_once_they_are_many() {
        let turns = |steps: u32| (0..steps).flat_map(|step| (1..=100).map(move |stream| stream * 64 + step));
        assert_eq!(prefetched(turns(1)), 0);
        let second = prefetched(turns(2));
        assert!((60..=100).contains(&second), "one page for each after the first {TRUSTED}: {second}");
    }

    /// Other nodes take the pages away all the time.
    #[test]
    fn pages_in_any_order_are_no_streams() {
        for pages in [16, 64, 512, 4096, 65_536] {
            let mut place = 1_u64;
            let any_order = (0..20_000).map(move |_| {
                place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (place >> 33) as u32 % pages
            });
            assert_eq!(prefetched(any_order), 0, "{pages} pages");
        }
    }
}
