//! Homes of the program's pages by policy.
//!
//! A node decides about what its own threads allocate, when they do: the addresses are of its part of the span, so it
//! manages the pages, and no other node need be told. The program's data is node 0's to place, before `main`.

mod asked;
mod rule;

pub(crate) use asked::Asked;
pub use rule::{Homes, Rule, Target};

use crate::boot::Boot;
use crate::wire::Wire;
use crate::{Node, Thread};
use gondwana_coherence::{Page, Standing};
use gondwana_memory::PAGE_SIZE;
use gondwana_memory::heap::Block;
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet};
use gondwana_topology::{Bytes, MAX_PROCESSORS, Machine, NodeId, View};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most pages that one message asks about.
const MOST_ASKED: u32 = 8192;

/// The nodes of a run as a machine: each has its processors, and its part of the span as memory.
#[must_use]
pub fn machine(nodes: u16, processors_each: u16, span: u64) -> Machine {
    // More than sets can hold would only be numbers: threads are placed on nodes.
    let most = (MAX_PROCESSORS / usize::from(nodes)) as u16;
    let memory = Bytes(span / u64::from(nodes));
    Machine { view: View::Cluster, ..Machine::uniform(nodes, processors_each.min(most), memory) }
}

/// An allocation whose homes a rule decides.
struct Site {
    calls: Vec<Range<usize>>,
    bytes: (u64, u64),
    placement: Arc<Placement>,
}

/// Where pages go, if anybody has said anything about that.
pub struct Placer {
    everything: Option<Arc<Placement>>,
    sites: Vec<Site>,
    variables: Vec<(Range<usize>, Arc<Placement>)>,
}

impl Placer {
    /// `None` if the user has left everything to the system. `base_of` finds out where the executable (`None`) or a
    /// library was loaded.
    pub fn new(
        boot: &Boot,
        base_of: impl Fn(Option<&str>) -> Option<usize>,
    ) -> Result<Option<Self>, PlacementError> {
        let Homes { policy, rules } = &boot.homes;
        if *policy == MemoryPolicy::Float && rules.is_empty() {
            return Ok(None);
        }
        let machine = machine(boot.nodes, boot.processors_each, boot.span);
        let global = RSet::global(&machine);
        let prepare = |policy: MemoryPolicy| Placement::new(policy, &global, &machine).map(Arc::new);
        let everything = (*policy != MemoryPolicy::Float).then(|| prepare(*policy)).transpose()?;
        let mut placer = Self { everything, sites: vec![], variables: vec![] };
        for rule in rules {
            let Some(base) = base_of(rule.library.as_deref()) else { continue };
            let here = |range: &Range<u64>| base + range.start as usize..base + range.end as usize;
            let placement = prepare(rule.policy)?;
            match &rule.target {
                Target::Variable(range) => placer.variables.push((here(range), placement)),
                Target::Site { calls, bytes } => {
                    let calls = calls.iter().map(here).collect();
                    placer.sites.push(Site { calls, bytes: *bytes, placement });
                }
            }
        }
        Ok(Some(placer))
    }

    /// What a rule says about `bytes` bytes that the call before `caller` allocates.
    pub fn site(&self, caller: usize, bytes: usize) -> Option<&Arc<Placement>> {
        let meant = |site: &&Site| {
            (site.bytes.0..=site.bytes.1).contains(&(bytes as u64))
                && site.calls.iter().any(|calls| calls.contains(&caller.wrapping_sub(1)))
        };
        self.sites.iter().find(meant).map(|site| &site.placement)
    }
}

/// Pages that belong together: what a policy divides.
#[derive(Clone, Copy)]
struct Region {
    first: u32,
    count: u32,
    /// The number of the first page within the region that the policy divides, and how many pages that has.
    offset: u64,
    of: u64,
}

impl Node {
    /// The cluster as a machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        machine(self.boot.nodes, self.boot.processors_each, self.boot.span)
    }

    /// The node that the calling thread runs on.
    #[must_use]
    pub fn number(&self) -> NodeId {
        self.me
    }

    /// Allocates whole pages, with homes by policy, that read as zero. `None` when this node's part of the span is used
    /// up. To be given back with [`Node::free`].
    pub fn allocate_placed(&'static self, bytes: usize, placement: &Arc<Placement>) -> Option<usize> {
        let block = self.place_block(self.heap.allocate_block(bytes, PAGE_SIZE)?, bytes, Some(placement));
        if !block.fresh {
            // SAFETY: the block was just allocated for this caller, and is at least that long.
            unsafe { std::ptr::write_bytes(block.address as *mut u8, 0, bytes) };
        }
        Some(block.address)
    }

    /// The home of each page that has a byte in a range of addresses, as found now: `None` for pages that nobody has
    /// touched, that are not shared, or whose home is just moving. Asks every node once.
    pub fn homes(&'static self, addresses: &Range<usize>) -> Vec<Option<NodeId>> {
        let start = addresses.start / PAGE_SIZE * PAGE_SIZE;
        let pages: Vec<Option<u32>> =
            (start..addresses.end).step_by(PAGE_SIZE).map(|address| self.geometry.page_of(address)).collect();
        let mut homes = vec![None; pages.len()];
        for run in pages.chunk_by(|a, b| a.is_some() && a.map(|page| page + 1) == *b) {
            let Some(first) = run[0] else { continue };
            let offset = pages.iter().position(|page| *page == run[0]).unwrap_or(0);
            for (node, at, count) in self.homes_of_pages(first, run.len() as u32) {
                let at = offset + (at - first) as usize;
                homes[at..at + count as usize].fill(Some(node));
            }
        }
        homes
    }

    /// The homes of pages, as runs of pages that have the same one.
    fn homes_of_pages(&'static self, first: u32, count: u32) -> Vec<(NodeId, u32, u32)> {
        let end = first + count;
        let mut found = vec![];
        for start in (first..end).step_by(MOST_ASKED as usize) {
            let count = MOST_ASKED.min(end - start);
            for node in (0..self.boot.nodes).map(NodeId) {
                let runs = match node == self.me {
                    true => self.privately(move || self.own_homes(start, count)),
                    false => self.ask_homes(node, start, count),
                };
                found.extend(runs.into_iter().map(|(first, count)| (node, first, count)));
            }
        }
        found
    }

    fn ask_homes(&'static self, node: NodeId, first: u32, count: u32) -> Vec<(u32, u32)> {
        let name = self.stamps.fetch_add(1, Ordering::Relaxed);
        self.ask(node, move |ticket| Wire::Homes { ticket, name, first, count });
        self.privately(move || self.found.lock().expect("not poisoned").remove(&name)).unwrap_or_default()
    }

    /// Another node has said of which pages it is home; the answer to the question as such follows.
    pub(crate) fn note_homes(&self, name: u64, runs: Vec<(u32, u32)>) {
        self.found.lock().expect("not poisoned").insert(name, runs);
    }

    /// The pages of which this node is home, as runs.
    pub(crate) fn own_homes(&self, first: u32, count: u32) -> Vec<(u32, u32)> {
        let core = self.core();
        let mut runs: Vec<(u32, u32)> = vec![];
        for page in first..first + count {
            if core.standing(Page(page)) != Standing::Home {
                continue;
            }
            match runs.last_mut() {
                Some((start, length)) if *start + *length == page => *length += 1,
                _ => runs.push((page, 1)),
            }
        }
        runs
    }

    /// What a rule says about `bytes` bytes that the call before `caller` allocates.
    #[inline]
    pub(crate) fn rule_for(&self, caller: usize, bytes: usize) -> Option<&Arc<Placement>> {
        self.placer.as_ref()?.site(caller, bytes)
    }

    /// Decides the homes of a block of whole pages, by a rule or else by what was said about everything.
    pub(crate) fn place_block(
        &'static self,
        block: Block,
        bytes: usize,
        rule: Option<&Arc<Placement>>,
    ) -> Block {
        if (self.placer.is_some() || rule.is_some())
            && let Some(first) = self.geometry.page_of(block.address)
        {
            let count = bytes.div_ceil(PAGE_SIZE).max(1) as u32;
            let region = Region { first, count, offset: 0, of: count.into() };
            let everything = self.placer.as_ref().and_then(|placer| placer.everything.as_ref());
            self.place(region, rule.or(everything), !block.fresh);
        }
        block
    }

    /// A stack is nobody's but its thread's, wherever its pages were before.
    pub(crate) fn unplace_block(&'static self, block: Block, bytes: usize) {
        if self.placer.is_some()
            && let Some(first) = self.geometry.page_of(block.address)
        {
            let count = bytes.div_ceil(PAGE_SIZE) as u32;
            self.place(Region { first, count, offset: 0, of: count.into() }, None, !block.fresh);
        }
    }

    /// Decides the homes of pages that small blocks will be in.
    pub(crate) fn place_slab(&'static self, addresses: &Range<usize>, fresh: bool) {
        let everything = self.placer.as_ref().and_then(|placer| placer.everything.as_ref());
        let (Some(placement), Some(first)) = (everything, self.geometry.page_of(addresses.start)) else {
            return;
        };
        let count = (addresses.len() / PAGE_SIZE) as u32;
        // Stripes go on from one slab to the next: each by itself might be too short for more than one.
        let region = match placement.policy() {
            MemoryPolicy::Striped(_) => {
                let offset = (addresses.start - self.heap.layout().part(self.me)) / PAGE_SIZE;
                Region { first, count, offset: offset as u64, of: u64::MAX }
            }
            _ => Region { first, count, offset: 0, of: count.into() },
        };
        self.place(region, Some(placement), !fresh);
    }

    /// Node 0, before the program begins: decides the homes of its data. Somebody must be receiving already: the C
    /// library itself reads a variable that may be among them.
    pub fn place_data(&'static self) {
        let Some(placer) = self.placer.as_ref().filter(|_| self.is_first()) else { return };
        if let Some(placement) = &placer.everything {
            for segment in self.geometry.overlays() {
                let of = segment.pages.into();
                let region = Region { first: segment.first, count: segment.pages, offset: 0, of };
                self.place(region, Some(placement), false);
            }
        }
        // Of two rules about one page the first one counts.
        for (addresses, placement) in placer.variables.iter().rev() {
            let last = addresses.end.saturating_sub(1).max(addresses.start);
            let ends = (self.geometry.page_of(addresses.start), self.geometry.page_of(last));
            let (Some(first), Some(last)) = ends else { continue };
            let count = last + 1 - first;
            self.place(Region { first, count, offset: 0, of: count.into() }, Some(placement), false);
        }
    }

    fn place(&'static self, region: Region, placement: Option<&Arc<Placement>>, used: bool) {
        let Some(placement) = placement.filter(|placement| placement.policy() != MemoryPolicy::Float) else {
            let forgotten = self.note_asked(|asked| asked.remove(region.first, region.count));
            if forgotten {
                self.privately(move || self.core().place(Page(region.first), region.count, None, used));
            }
            return;
        };
        let Region { first, count, offset, of } = region;
        self.note_asked(|asked| asked.insert(first, count, offset, of, Arc::clone(placement)));
        let placement = Arc::clone(placement);
        self.privately(move || {
            let home = |index: u32| placement.node_of(offset + u64::from(index), of, self.me);
            let mut core = self.core();
            let mut from = 0;
            while from < count {
                let here = home(from);
                let length = (from..count).take_while(|index| home(*index) == here).count() as u32;
                core.place(Page(first + from), length, here, used);
                from += length;
            }
        });
    }

    fn note_asked<R>(&self, note: impl FnOnce(&mut Asked) -> R) -> R {
        Thread::in_runtime(|| note(&mut self.asked.lock().expect("not poisoned")))
    }

    /// For `--stats`: how many pages were asked to be where, and how many of those that were asked for are here.
    pub(crate) fn placement_stats(&self) -> Option<Value> {
        let asked = self.note_asked(|asked| asked.by_node(self.boot.nodes, self.me));
        if self.placer.is_none() && asked.iter().all(|pages| *pages == 0) {
            return None;
        }
        let found = self.core().placed();
        Some(json!({"asked_of": asked, "found": found.home, "untouched": found.untouched}))
    }
}
