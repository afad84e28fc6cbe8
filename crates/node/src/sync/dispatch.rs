//! Dispatch buffers: where threads of all nodes of one computer claim the iterations of work-sharing constructs, without a message, by
//! atomic instructions on memory that all nodes map.
//!
//! A team that has a *ring* of buffers uses them in turn for the constructs whose iterations are dealt out while they run. A buffer is
//! used again when no thread is in its last construct any more, so nobody prepares it: each word says for which construct it is, and one that
//! says another stands for what a construct begins with.
//!
//! Iterations are given out as `coherence::sync` does it by messages: see there for parts, and why the last iteration comes last.

use crate::Node;
use gondwana_coherence::sync::{Claim, Part};
use gondwana_page::to_usize;
use gondwana_topology::NodeId;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rings of a run.
const RINGS: u32 = 16;

/// Buffers of a ring.
const BUFFERS: usize = 8;

/// Parts of a buffer.
const PARTS: usize = DispatchRing::MOST_THREADS as usize;

/// Words of a cache line: threads that claim of different parts are not in each other's way.
const LINE: usize = 8;

/// Of a ring, in front of its buffers: its state, and where the thread of each part is.
const HEADER: usize = LINE + PARTS;

/// Of a buffer: what is given out in order, then a line for each part.
const BUFFER: usize = LINE * (1 + PARTS);

const RING: usize = HEADER + BUFFERS * BUFFER;

/// The bits of a word of a buffer above these are its mark: they say for which construct it is. No construct has the mark 0.
const MARK: u32 = 48;

/// Those below it: the next iteration, or two halves with the first one that is left of a part and the one behind the last.
const HALF: u32 = MARK / 2;

/// There are so many marks, which come again.
const MARKS: u64 = u16::MAX as u64;

/// After so many constructs, words that are for none of the present ones get the mark 0: well before their marks come again.
const REFRESHED: u64 = MARKS.next_power_of_two() / 4 * BUFFERS as u64;

/// A ring is somebody's.
const TAKEN: u64 = 1 << 63;

/// The rings of a run.
pub(crate) struct DispatchRings(&'static [AtomicU64]);

/// The dispatch buffers of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchRing(u32);

/// The buffer of a construct.
#[derive(Clone, Copy)]
struct Buffer {
    words: &'static [AtomicU64],
    nodes: &'static [AtomicU64],
    /// In its place: for this construct.
    mark: u64,
}

impl DispatchRing {
    /// Between two barriers, so many constructs of a team have buffers at most.
    pub const BUFFERS: u64 = BUFFERS as u64;

    /// A team with a ring has no more threads.
    pub const MOST_THREADS: u32 = 64;

    /// The ring with a number of [`DispatchRing::number`].
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        let ring = u32::try_from(number.checked_sub(1)?).ok()?;
        (ring < RINGS).then_some(Self(ring))
    }

    /// Its number, from 1 on.
    #[must_use]
    pub fn number(self) -> u64 {
        u64::from(self.0) + 1
    }

    /// True if a construct with so many iterations, in so many parts unless they are given out in order, can be in a buffer.
    #[must_use]
    pub fn fits(iterations: u64, in_parts: bool) -> bool {
        iterations < 1 << if in_parts { HALF } else { MARK }
    }
}

impl DispatchRings {
    pub(crate) const WORDS: usize = RINGS as usize * RING;

    /// In memory that all nodes map, and that is zero at first.
    pub(crate) fn new(words: &'static [AtomicU64]) -> Self {
        Self(words)
    }

    fn ring(&self, ring: DispatchRing) -> &'static [AtomicU64] {
        let start = to_usize(ring.0.into()) * RING;
        &self.0[start..start + RING]
    }

    /// A ring that is nobody's, and how many constructs its buffers have been used for.
    fn take(&self) -> Option<(DispatchRing, u64)> {
        (0..RINGS).map(DispatchRing).find_map(|ring| {
            let before = self.ring(ring)[0].fetch_or(TAKEN, Ordering::AcqRel);
            (before & TAKEN == 0).then_some((ring, before))
        })
    }

    /// The ring is nobody's any more. Its buffers have been used for `met` constructs.
    fn give_back(&self, ring: DispatchRing, met: u64) {
        self.ring(ring)[0].store(met & !TAKEN, Ordering::Release);
    }

    /// The buffers have not been used yet. No thread is in any of their constructs.
    fn clear(&self, ring: DispatchRing) {
        for word in &self.ring(ring)[HEADER..] {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// A thread of a team of `threads` enters a construct.
    fn enter(&self, ring: DispatchRing, construct: u64, thread: u32, threads: u32, node: NodeId) {
        let (thread, threads) = (to_usize(thread.into()), to_usize(threads.into()));
        let (place, node) = (&self.ring(ring)[LINE + thread], u64::from(node.0) + 1);
        if place.load(Ordering::Relaxed) != node {
            place.store(node, Ordering::Relaxed);
        }
        if construct.is_multiple_of(REFRESHED) {
            // Other threads may be as many constructs behind or ahead as there are buffers, but not more.
            let present =
                [construct.wrapping_sub(BUFFERS as u64), construct, construct + BUFFERS as u64].map(mark);
            for word in self.ring(ring)[HEADER..].iter().skip(thread).step_by(threads) {
                let found = word.load(Ordering::Relaxed);
                if found != 0 && !present.contains(&(found & !low(MARK))) {
                    // Otherwise it is for a present one now.
                    let _ = word.compare_exchange(found, 0, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        }
    }

    fn buffer(&self, ring: DispatchRing, construct: u64) -> Buffer {
        let (header, buffers) = self.ring(ring).split_at(HEADER);
        let start = to_usize(construct % BUFFERS as u64) * BUFFER;
        Buffer { words: &buffers[start..start + BUFFER], nodes: &header[LINE..], mark: mark(construct) }
    }
}

/// The mark of a construct, in its place.
fn mark(construct: u64) -> u64 {
    (1 + construct / BUFFERS as u64 % MARKS) << MARK
}

impl Buffer {
    /// What a word says, or what a construct begins with.
    fn read(self, word: u64, first: u64) -> u64 {
        if word & !low(MARK) == self.mark { word & low(MARK) } else { first }
    }

    /// Changes a word from what it says to what it says then; `None` to leave it. Also returns what `change` does beside.
    fn update<R>(self, word: &AtomicU64, first: u64, change: impl Fn(u64) -> Option<(u64, R)>) -> Option<R> {
        let mut found = word.load(Ordering::Relaxed);
        loop {
            let (new, result) = change(self.read(found, first))?;
            match word.compare_exchange(found, self.mark | new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(result),
                Err(other) => found = other,
            }
        }
    }

    /// The next iterations; empty if there are none.
    fn claim(self, node: NodeId, claim: &Claim) -> Range<u64> {
        let range = match claim.part {
            None => self.claim_in_order(claim.total, |left| claim.amount(left)),
            Some(part) => self.claim_of_part(node, claim, part),
        };
        range.unwrap_or(claim.total..claim.total)
    }

    fn claim_in_order(self, total: u64, amount: impl Fn(u64) -> u64) -> Option<Range<u64>> {
        self.update(&self.words[0], 0, |next| {
            let end = next + amount(total.saturating_sub(next));
            (next < end).then_some((end, next..end))
        })
    }

    fn part(self, number: u32) -> &'static AtomicU64 {
        &self.words[LINE * (1 + to_usize(number.into()))]
    }

    fn claim_of_part(self, node: NodeId, claim: &Claim, part: Part) -> Option<Range<u64>> {
        let last = claim.total.checked_sub(1)?;
        let first = |number| {
            let Range { start, end } = claim.part_at_first(Part { number, ..part });
            start << HALF | end
        };
        let own = self.update(self.part(part.number), first(part.number), |word| {
            let Range { start, end } = halves(word);
            let next = start + claim.amount(end - start);
            (start < next).then_some((next << HALF | end, start..next))
        });
        if own.is_some() {
            return own;
        }
        while let Some(number) = self.fullest(node, part, first) {
            let taken = self.update(self.part(number), first(number), |word| {
                let Range { start, end } = halves(word);
                let rest = end - claim.amount(end - start);
                (rest < end).then_some((start << HALF | rest, rest..end))
            });
            if taken.is_some() {
                return taken;
            }
        }
        self.claim_in_order(1, |left| left).map(|_| last..claim.total)
    }

    /// Another part that has iterations left: the one with most, of those of the node if there are any.
    fn fullest(self, node: NodeId, part: Part, first: impl Fn(u32) -> u64) -> Option<u32> {
        let left = |number: u32| {
            let Range { start, end } =
                halves(self.read(self.part(number).load(Ordering::Relaxed), first(number)));
            (end - start, number)
        };
        let others =
            (0..part.of).filter(|number| *number != part.number).map(left).filter(|(left, _)| *left > 0);
        let best = others.max_by_key(|&(left, number)| (self.is_on(number, node), left));
        best.map(|(_, number)| number)
    }

    fn is_on(self, number: u32, node: NodeId) -> bool {
        self.nodes[to_usize(number.into())].load(Ordering::Relaxed) == u64::from(node.0) + 1
    }
}

/// What a word says of a part.
fn halves(word: u64) -> Range<u64> {
    word >> HALF..word & low(HALF)
}

fn low(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Node {
    /// A ring of dispatch buffers for a team, if nodes have memory in common and one is left, and for how many constructs it has been used.
    pub fn take_dispatch_ring(&self) -> Option<(DispatchRing, u64)> {
        self.sync.dispatch_rings.as_ref()?.take()
    }

    /// No thread is in a construct of the team any more. The ring has been used for `met` constructs.
    pub fn give_back_dispatch_ring(&self, ring: DispatchRing, met: u64) {
        if let Some(rings) = &self.sync.dispatch_rings {
            rings.give_back(ring, met);
        }
    }

    /// Threads have left constructs without meeting all of them; no thread of the team is in one any more. The ring has been used for none
    /// now.
    pub fn clear_dispatch_ring(&self, ring: DispatchRing) {
        if let Some(rings) = &self.sync.dispatch_rings {
            rings.clear(ring);
        }
    }

    /// The calling thread, by its number in its team of `threads`, enters a construct, by its number among those that the ring was used for.
    /// All threads of the team are past the construct [`DispatchRing::BUFFERS`] before it.
    pub fn enter_dispatched(&self, ring: DispatchRing, construct: u64, thread: u32, threads: u32) {
        if let Some(rings) = &self.sync.dispatch_rings {
            rings.enter(ring, construct, thread, threads, self.me);
        }
    }

    /// The iterations that the calling thread gets of a construct that it has entered; empty if there are no more.
    pub fn claim_dispatched(&self, ring: DispatchRing, construct: u64, claim: &Claim) -> Range<u64> {
        match &self.sync.dispatch_rings {
            Some(rings) => rings.buffer(ring, construct).claim(self.me, claim),
            None => claim.total..claim.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Barrier;

    fn rings() -> DispatchRings {
        DispatchRings::new(Vec::leak((0..DispatchRings::WORDS).map(|_| AtomicU64::new(0)).collect()))
    }

    fn claim(total: u64, least: u64, shares: u64, part: Option<Part>) -> Claim {
        Claim { total, least, shares, part }
    }

    #[test]
    fn a_ring_is_one_teams_and_remembers_its_constructs() {
        let rings = rings();
        let taken: Vec<_> = std::iter::from_fn(|| rings.take()).collect();
        assert_eq!(taken.len(), RINGS as usize);
        rings.give_back(taken[3].0, 77);
        assert_eq!(rings.take(), Some((taken[3].0, 77)));
        assert_eq!(rings.take(), None);
        assert_eq!(DispatchRing::from_number(taken[3].0.number()), Some(taken[3].0));
        assert_eq!(DispatchRing::from_number(0), None);
        assert_eq!(DispatchRing::from_number(u64::from(RINGS) + 1), None);
    }

    #[test]
    fn a_thread_has_its_own_part_first_and_then_others_of_its_node() {
        let rings = rings();
        let (ring, _) = rings.take().unwrap();
        let of = |number| claim(12, 1, u64::MAX, Some(Part { number, of: 3 }));
        let claim = |number, node| rings.buffer(ring, 5).claim(NodeId(node), &of(number));
        for (number, node) in [(0, 1), (1, 0), (2, 1)] {
            rings.enter(ring, 5, number, 3, NodeId(node));
        }
        assert_eq!((claim(0, 1), claim(1, 0), claim(2, 1)), (0..1, 4..5, 8..9));
        assert_eq!((claim(2, 1), claim(2, 1)), (9..10, 10..11));
        // Of its node's, then of the others, from the ends; the last one of all at last.
        assert_eq!((claim(2, 1), claim(2, 1), claim(2, 1)), (3..4, 2..3, 1..2));
        assert_eq!((claim(2, 1), claim(2, 1), claim(1, 0)), (7..8, 6..7, 5..6));
        assert_eq!((claim(0, 1), claim(0, 1), claim(1, 0)), (11..12, 12..12, 12..12));
    }

    #[test]
    fn a_cleared_ring_begins_anew() {
        let rings = rings();
        let (ring, _) = rings.take().unwrap();
        let one = claim(1, 1, u64::MAX, None);
        let claim = |construct| rings.buffer(ring, construct).claim(NodeId(0), &one);
        assert_eq!((claim(0), claim(0), claim(8)), (0..1, 1..1, 0..1));
        rings.clear(ring);
        assert_eq!((claim(0), claim(8)), (0..1, 0..1));
    }

    #[test]
    fn what_is_left_of_a_mark_is_gone_when_it_comes_again() {
        let rings = rings();
        let (ring, _) = rings.take().unwrap();
        let part = |number| Some(Part { number, of: 3 });
        let later = MARKS * DispatchRing::BUFFERS;
        assert_eq!(mark(2), mark(2 + later));
        let claim = |construct, number| {
            rings.buffer(ring, construct).claim(NodeId(0), &claim(30, 5, u64::MAX, part(number)))
        };
        assert_eq!((claim(2, 1), claim(9, 1)), (10..15, 10..15));
        // In between, a smaller team has work that is given out in order.
        for construct in 10..2 + later {
            for thread in 0..2 {
                rings.enter(ring, construct, thread, 2, NodeId(0));
            }
        }
        assert_eq!((claim(2 + later, 1), claim(9 + later, 1)), (10..15, 10..15));
    }

    proptest! {
        /// Threads go through constructs of all kinds, a few ahead of each other, and get each iteration once.
        #[test]
        fn each_iteration_is_given_out_once(
            threads in 1_u32..5,
            constructs in prop::collection::vec((0_u64..60, 1_u64..5, 1_u64..6, any::<bool>()), 1..40),
            begin in prop_oneof![Just(0_u64), Just(REFRESHED - 10), Just(MARKS * DispatchRing::BUFFERS - 10)],
        ) {
            let (rings, barrier) = (rings(), Barrier::new(threads as usize));
            let (ring, _) = rings.take().unwrap();
            let run = |number| {
                let mut got = vec![];
                for (construct, &(total, least, shares, in_parts)) in (begin..).zip(&constructs) {
                    if (construct - begin).is_multiple_of(DispatchRing::BUFFERS) {
                        barrier.wait();
                    }
                    rings.enter(ring, construct, number, threads, NodeId((number % 2) as u16));
                    let part = in_parts.then_some(Part { number, of: threads });
                    let shares = if shares == 5 { u64::MAX } else { shares };
                    let claim = claim(total, least, shares, part);
                    loop {
                        let range = rings.buffer(ring, construct).claim(NodeId((number % 2) as u16), &claim);
                        if range.is_empty() {
                            break;
                        }
                        got.extend(range.map(|iteration| (construct, iteration)));
                    }
                }
                got
            };
            let mut all: Vec<_> = std::thread::scope(|scope| {
                let run = &run;
                let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || run(number))).collect();
                running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            all.sort_unstable();
            let expected: Vec<_> =
                (begin..).zip(&constructs).flat_map(|(construct, &(total, ..))| (0..total).map(move |at| (construct, at))).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
