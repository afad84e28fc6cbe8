//! Blocks of the heap and where they were allocated.

use gondwana_recording::{BlockRecord, BlockSeries, SiteRecord};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most blocks that a recording has.
const MOST_BLOCKS: u64 = 1 << 21;

/// The blocks that were allocated last at each address, and the chains of calls that lead to allocations.
#[derive(Default)]
pub(crate) struct Blocks {
    /// By address, each with the node of the thread that allocated it. They do not overlap.
    blocks: BTreeMap<u64, (u16, BlockRecord)>,
    /// The addresses of those that are not in the file yet.
    fresh: BTreeSet<u64>,
    /// The numbers of chains, from 1.
    sites: HashMap<Vec<u64>, u32>,
    /// Nodes know sites by numbers of their own: the pairs that are in the file, and those that are not yet.
    known: BTreeSet<(u16, u32)>,
    fresh_sites: Vec<(u16, SiteRecord)>,
    written: u64,
    omitted: u64,
}

impl Blocks {
    /// A block was allocated; blocks that it overlaps are gone.
    pub(super) fn note(&mut self, node: u16, address: u64, bytes: u64, stack: Vec<u64>, thread: u32) {
        let end = address + bytes.max(1);
        while let Some((&before, (_, block))) = self.blocks.range(..end).next_back()
            && before + block.bytes.max(1) > address
        {
            self.blocks.remove(&before);
            self.fresh.remove(&before);
        }
        if self.written + self.fresh.len() as u64 >= MOST_BLOCKS {
            self.omitted += 1;
            return;
        }
        let site = self.site(node, stack);
        self.blocks.insert(address, (node, BlockRecord { address, bytes, site, thread }));
        self.fresh.insert(address);
    }

    /// The number of a chain of calls; 0 if it is empty.
    fn site(&mut self, node: u16, stack: Vec<u64>) -> u32 {
        if stack.is_empty() {
            return 0;
        }
        let next = self.sites.len() as u32 + 1;
        let number = *self.sites.entry(stack.clone()).or_insert(next);
        if self.known.insert((node, number)) {
            self.fresh_sites.push((node, SiteRecord { number, stack }));
        }
        number
    }

    /// The length of the block that begins at an address.
    pub(super) fn bytes_at(&self, address: u64) -> Option<u64> {
        self.blocks.get(&address).map(|(_, block)| block.bytes)
    }

    /// Sites that are not in the file yet, by node.
    pub(super) fn new_sites(&mut self) -> BTreeMap<u16, Vec<SiteRecord>> {
        let mut by_node: BTreeMap<u16, Vec<SiteRecord>> = BTreeMap::new();
        for (node, site) in self.fresh_sites.drain(..) {
            by_node.entry(node).or_default().push(site);
        }
        by_node
    }

    /// Blocks that are not in the file yet, by node.
    pub(super) fn new_blocks(&mut self) -> BTreeMap<u16, Vec<BlockSeries>> {
        let mut by_node: BTreeMap<u16, Vec<BlockRecord>> = BTreeMap::new();
        for address in std::mem::take(&mut self.fresh) {
            self.written += 1;
            let (node, block) = self.blocks[&address];
            by_node.entry(node).or_default().push(block);
        }
        by_node.into_iter().map(|(node, blocks)| (node, BlockSeries::gather(blocks))).collect()
    }

    /// How many blocks the recording leaves out.
    pub(super) fn omitted(&self) -> u64 {
        self.omitted
    }
}
