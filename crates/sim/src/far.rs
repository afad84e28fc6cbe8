//! The far memory cache of a node, also called remote cache or node cache: blocks of other nodes' memory, in the node's DRAM.
//!
//! It has every block of another node's memory of which a processor's cache of its node has a line (inclusion). NUMA-Q and
//! the Aviion keep the lists of SCI in the tags of this cache, so a node without a tag cannot have a line.

use crate::Time;
use crate::cache::Cache;
use crate::description::FarCachePart;
use crate::lines::Place;
use crate::machine::Machine;
use crate::resource::Resource;
use crate::statistics::Use;
use gondwana_coherence::directory::{Node, State};

/// One node's.
#[derive(Clone, Debug)]
pub(crate) struct FarCache {
    /// The blocks that it has, all as shared: what the node may do with them is what the directory says, and if the node
    /// owns a block of another node, memory there has not its contents.
    tags: Cache,
    dram: Resource,
}

impl FarCache {
    /// An empty one.
    pub(crate) fn new(part: &FarCachePart) -> Self {
        Self { tags: Cache::new(part.size.0, part.line, part.ways), dram: Resource::default() }
    }

    /// How much it was used.
    pub(crate) fn used(&self) -> Use {
        Use { busy: self.dram.busy(), uses: self.dram.uses() }
    }

    /// True if it has a block; of its number and its colour.
    pub(crate) fn has(&self, block: u64, colour: u64) -> bool {
        self.tags.state(block, colour) != State::Invalid
    }

    /// How many blocks it has.
    pub(crate) fn count(&self) -> usize {
        self.tags.held().count()
    }
}

impl Machine {
    /// The number and the colour of a line's block.
    pub(crate) fn block_of(&self, line: u64, place: Place) -> (u64, u64) {
        (line >> self.block_shift, self.lines.colour(place) >> self.block_shift)
    }

    /// True if a node's far memory cache has the block of a line.
    pub(crate) fn has_far(&self, node: Node, line: u64, place: Place) -> bool {
        let (block, colour) = self.block_of(line, place);
        self.nodes[usize::from(node)].far.as_ref().is_some_and(|far| far.has(block, colour))
    }

    /// True if a node's far memory cache has the block of a line, which becomes the most recently used.
    pub(crate) fn use_far(&mut self, node: Node, line: u64, place: Place) -> bool {
        let (block, colour) = self.block_of(line, place);
        let far = self.nodes[usize::from(node)].far.as_mut();
        far.is_some_and(|far| far.tags.touch(block, colour) != State::Invalid)
    }

    /// A node's far memory cache delivers or takes a line of a block that it has.
    pub(crate) fn far_memory(&mut self, node: Node, at: Time) -> Time {
        let far = self.nodes[usize::from(node)].far.as_mut();
        let far = far.expect("what no processor's cache owns is the home's or in a far memory cache");
        far.dram.reserve(at, self.times.far_busy) + self.times.far
    }

    /// A processor missed its second cache with a line that its node's far memory cache cannot give it.
    pub(crate) fn count_far_miss(&mut self, processor: usize, place: Place, had: bool) {
        let node = self.node_of[processor];
        if self.lines.home(place) != node && self.nodes[usize::from(node)].far.is_some() {
            self.counters[processor].far_misses[usize::from(had)] += 1;
        }
    }

    /// The block of a line has come from another node for a processor. Nobody waits until it is in the far memory cache.
    pub(crate) fn fill_far(&mut self, processor: usize, line: u64, place: Place, at: Time) {
        let node = self.node_of[processor];
        if self.lines.home(place) == node || self.fill_replica(node, line, place, at) {
            return;
        }
        if self.nodes[usize::from(node)].far.is_none() {
            return;
        }
        let (block, colour) = self.block_of(line, place);
        let far = self.nodes[usize::from(node)].far.as_mut().expect("it was there");
        let victim = match far.tags.touch(block, colour) {
            State::Invalid => far.tags.add(block, colour, State::Shared),
            _ => None,
        };
        for _ in 0..1 << self.block_shift {
            self.far_memory(node, at);
        }
        if let Some(victim) = victim {
            self.evict_far(processor, victim.line << self.block_shift, at);
        }
    }

    /// A block, of which this is a line, has to make room in the far memory cache: the processors' caches lose it, too.
    fn evict_far(&mut self, processor: usize, line: u64, at: Time) {
        let node = self.node_of[processor];
        // The page has been touched, so nobody asks where it is to be.
        let place = self.lines.find(line, |_| 0);
        let dirty = self.lines.block(place).entry.owner == node;
        let mut ready = at;
        for (line, place) in self.lines.block_lines(line, place) {
            let snooped = self.snoop(node, at);
            let owner = self.supplier(node, place);
            self.discard(self.members[usize::from(node)], line, place);
            if dirty {
                let read = match owner {
                    Some(_) => snooped + self.times.intervention,
                    None => self.far_memory(node, snooped),
                };
                ready = ready.max(read);
                self.counters[processor].written_back[1] += 1;
            }
        }
        self.counters[processor].far_evicted[usize::from(dirty)] += 1;
        if dirty {
            self.write_back(node, line, place, false, ready);
        }
    }

    /// A node has to forget the block of a line.
    pub(crate) fn forget_far(&mut self, node: Node, line: u64, place: Place) {
        let (block, colour) = self.block_of(line, place);
        if let Some(far) = &mut self.nodes[usize::from(node)].far {
            far.tags.change(block, colour, State::Invalid);
        }
    }
}
