//! Which arrivals the children of a node in a barrier's tree, and its own threads, may keep back until there are as many as
//! in the last episode, and when they must be told to hurry.

use gondwana_topology::NodeId;
use std::collections::VecDeque;

/// What one source of arrivals - a child in the tree, or the node's own threads - may keep back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Source {
    /// It may keep arrivals back until there are so many.
    expected: u32,
    /// Its arrivals that were received and not yet released.
    received: u32,
}

impl Source {
    /// More than this is not kept back.
    fn outstanding(self) -> u32 {
        self.expected.saturating_sub(self.received)
    }
}

/// A source's part in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Share {
    pub source: NodeId,
    /// How many of its threads go on: those that arrived first.
    pub threads: u32,
    /// One of them is the serial thread.
    pub serial: bool,
    /// How many arrivals it may wait for next time.
    pub expected: u32,
}

/// Arrivals at one barrier as one node of the tree has received them, in order.
///
/// A source that took part in the last episode with `k` threads keeps its arrivals back until there are `k` again.
/// That is safe as long as what was received and what may be kept back is together no more than the episode
/// needs: as a source keeps back *less* than it may (or it would send), the arrivals can then not be complete
/// while any is kept back. Whenever the sum is larger, the sources that may keep something back are told to hurry.
/// An inner node keeps the same rule towards its own parent's expectation, so the argument holds for each level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gathering {
    /// By node. No more than the tree's fan-in and this node itself, so a list is faster than a tree of them.
    sources: Vec<(NodeId, Source)>,
    /// Who sent how many, first come first.
    queue: VecDeque<(NodeId, u32)>,
    /// The length of the queue, in threads.
    received: u32,
}

impl Gathering {
    /// How many arrivals wait here.
    pub(super) fn received(&self) -> u32 {
        self.received
    }

    /// How many of a source's arrivals wait here.
    pub(super) fn received_from(&self, source: NodeId) -> u32 {
        self.source(source).received
    }

    /// How many arrivals a source may wait for.
    pub(super) fn expected_from(&self, source: NodeId) -> u32 {
        self.source(source).expected
    }

    fn source(&self, source: NodeId) -> Source {
        self.sources
            .iter()
            .find(|(node, _)| *node == source)
            .map_or_else(Source::default, |(_, known)| *known)
    }

    /// What is kept of a source, from now on at the latest.
    fn source_mut(&mut self, source: NodeId) -> &mut Source {
        // In the order of their numbers, so that machines in the same state are equal. They are few.
        let behind = self.sources.iter().position(|(node, _)| *node >= source);
        let place = behind.unwrap_or(self.sources.len());
        if self.sources.get(place).is_none_or(|(node, _)| *node != source) {
            self.sources.insert(place, (source, Source::default()));
        }
        &mut self.sources[place].1
    }

    /// More arrivals; false if there are more than can be.
    pub(super) fn receive(&mut self, source: NodeId, threads: u32) -> bool {
        let Some(received) = self.received.checked_add(threads) else { return false };
        self.received = received;
        self.source_mut(source).received += threads;
        match self.queue.back_mut() {
            Some((last, count)) if *last == source => *count += threads,
            _ => self.queue.push_back((source, threads)),
        }
        true
    }

    /// Takes back so many arrivals of a source, the last of those that were received.
    pub(super) fn withdraw(&mut self, source: NodeId, threads: u32) {
        let Some(place) = self.queue.iter().rposition(|(node, _)| *node == source) else { return };
        let (_, count) = &mut self.queue[place];
        *count -= threads;
        if *count == 0 {
            self.queue.remove(place);
        }
        self.source_mut(source).received -= threads;
        self.received -= threads;
    }

    /// A source keeps back nothing until its next part in an episode.
    pub(super) fn expect_nothing(&mut self, source: NodeId) {
        self.source_mut(source).expected = 0;
    }

    /// `wanted` is how many arrivals the next message or episode needs. If more could be here or kept back,
    /// nobody may keep back anything: returns whom to tell.
    pub(super) fn restrain(&mut self, wanted: u32) -> Vec<NodeId> {
        let outstanding: u64 = self.sources.iter().map(|(_, source)| u64::from(source.outstanding())).sum();
        if outstanding == 0 || outstanding + u64::from(self.received) <= u64::from(wanted) {
            return Vec::new();
        }
        let keeping = self.sources.iter_mut().filter(|(_, source)| source.outstanding() > 0);
        keeping
            .map(|(node, source)| {
                source.expected = 0;
                *node
            })
            .collect()
    }

    /// The first `threads` arrivals go on; the last of them is the serial thread if `serial`. Each source may
    /// expect its part to be the same next time, if `repeats`. There are at least so many arrivals. The parts are added
    /// to `shares`, which is empty.
    pub(super) fn release(&mut self, threads: u32, serial: bool, repeats: bool, shares: &mut Vec<Share>) {
        self.received -= threads;
        let mut left = threads;
        while left > 0
            && let Some((source, count)) = self.queue.front_mut()
        {
            let (source, part) = (*source, left.min(*count));
            *count -= part;
            if *count == 0 {
                self.queue.pop_front();
            }
            left -= part;
            let serial = serial && left == 0;
            match shares.iter_mut().find(|share| share.source == source) {
                Some(share) => {
                    share.threads += part;
                    share.serial |= serial;
                }
                None => shares.push(Share { source, threads: part, serial, expected: 0 }),
            }
        }
        for share in shares {
            let source = self.source_mut(share.source);
            source.received -= share.threads;
            source.expected = if repeats { share.threads } else { 0 };
        }
    }
}
