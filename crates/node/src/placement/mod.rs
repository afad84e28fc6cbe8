//! Homes of the program's pages by policy.
//!
//! A node decides about what its own threads allocate, when they do: the addresses are of its part of the span, so it
//! manages the pages, and no other node need be told. The program's data is node 0's to place, before `main`.

mod asked;
mod block;
mod found;
mod replicas;

use asked::Asked;
pub(crate) use found::HomeRun;
use gondwana_locks::lock;
pub(crate) use replicas::Replicated;

use crate::{Node, Thread};
use gondwana_coherence::Page;
use gondwana_control::{Boot, Homes, ResolvedRule, ResolvedRules, machine};
use gondwana_memory::heap::Block;
use gondwana_memory::{Geometry, PAGE_SIZE};
use gondwana_page::whole_pages;
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where pages go, by the rules and the policy that the user has given.
pub(crate) struct Placer {
    everything: Option<Arc<Placement>>,
    rules: ResolvedRules,
    /// What rules say about sites whose blocks are to be on the node that allocates.
    local: Arc<Placement>,
}

impl Placer {
    /// `None` if the user has left everything to the system. `base_of` finds out where the executable (`None`) or a
    /// library was loaded.
    pub(crate) fn new(
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
        let local = prepare(MemoryPolicy::Local)?;
        Ok(Some(Self { everything, rules: ResolvedRules::new(rules, &machine, base_of)?, local }))
    }

    /// The variables that are mostly read.
    pub(crate) fn replicated_variables(&self) -> impl Iterator<Item = &Range<usize>> {
        self.rules.variables().iter().filter(|(_, rule)| rule.replicate).map(|(addresses, _)| addresses)
    }
}

/// The pages that hold a variable: the first one, and how many.
pub(crate) fn pages_of(geometry: &Geometry, addresses: &Range<usize>) -> Option<(u32, u32)> {
    let last = addresses.end.saturating_sub(1).max(addresses.start);
    let (first, last) = (geometry.page_of(addresses.start)?, geometry.page_of(last)?);
    Some((first, last + 1 - first))
}

/// Where pages of this node go, and what it knows of where others are.
pub(crate) struct PagePlacement {
    /// Where pages go, unless that is left to the system.
    pub(crate) placer: Option<Placer>,
    /// The program has allocated memory with a policy of its own.
    own_policies: AtomicBool,
    asked: Mutex<Asked>,
    /// Areas that are mostly read.
    pub(crate) replicated: Replicated,
    /// Homes that other nodes have named, by the number of the question.
    found: Mutex<HashMap<u64, Vec<HomeRun>>>,
    /// Questions for homes so far.
    questions: AtomicU64,
}

impl PagePlacement {
    /// With the variables that rules replicate.
    pub(crate) fn new(placer: Option<Placer>, geometry: &Geometry) -> Self {
        let replicated = Replicated::default();
        for addresses in placer.iter().flat_map(Placer::replicated_variables) {
            if let Some((first, count)) = pages_of(geometry, addresses) {
                replicated.insert(first, count);
            }
        }
        Self {
            placer,
            own_policies: AtomicBool::new(false),
            asked: Mutex::default(),
            replicated,
            found: Mutex::default(),
            questions: AtomicU64::new(0),
        }
    }

    /// What a rule says about `bytes` bytes that the call before `caller` allocates; 0 stands for the runtime itself.
    #[inline]
    fn rule_for(&self, caller: usize, bytes: usize) -> Option<&ResolvedRule> {
        self.placer.as_ref().filter(|_| caller != 0)?.rules.site(caller, bytes)
    }

    /// The program allocates memory with a policy of its own.
    fn note_own_policy(&self) {
        self.own_policies.store(true, Ordering::Relaxed);
    }

    /// True once the program has allocated memory with a policy of its own.
    fn has_own_policies(&self) -> bool {
        self.own_policies.load(Ordering::Relaxed)
    }

    /// The number of the next question for homes.
    fn next_question(&self) -> u64 {
        self.questions.fetch_add(1, Ordering::Relaxed)
    }

    /// Another node has answered a question for homes.
    fn note_homes(&self, question: u64, homes: Vec<HomeRun>) {
        lock(&self.found).insert(question, homes);
    }

    /// The answer to a question for homes, once.
    fn take_homes(&self, question: u64) -> Option<Vec<HomeRun>> {
        lock(&self.found).remove(&question)
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
    /// What a rule says about `bytes` bytes that the call before `caller` allocates; 0 stands for the runtime itself.
    #[inline]
    pub(crate) fn rule_for(&self, caller: usize, bytes: usize) -> Option<&ResolvedRule> {
        self.placement.rule_for(caller, bytes)
    }

    /// Decides the homes of a block of whole pages, by a rule or else by what was said about everything.
    pub(crate) fn place_block(
        &'static self,
        block: Block,
        bytes: usize,
        rule: Option<&ResolvedRule>,
    ) -> Block {
        if (self.placement.placer.is_some() || rule.is_some())
            && let Some(first) = self.geometry.page_of(block.address)
        {
            let count = whole_pages(bytes.next_multiple_of(PAGE_SIZE)).max(1);
            let region = Region { first, count, offset: 0, of: count.into() };
            let everything = self.placement.placer.as_ref().and_then(|placer| placer.everything.as_ref());
            let asked = rule.and_then(|rule| rule.placement.as_ref());
            self.place(region, asked.or(everything), !block.fresh);
            self.replicate(first, count, rule.is_some_and(|rule| rule.replicate));
        }
        block
    }

    /// A stack is nobody's but its thread's, wherever its pages were before.
    pub(crate) fn unplace_block(&'static self, block: Block, bytes: usize) {
        if self.placement.placer.is_some()
            && let Some(first) = self.geometry.page_of(block.address)
        {
            let count = whole_pages(bytes.next_multiple_of(PAGE_SIZE));
            self.place(Region { first, count, offset: 0, of: count.into() }, None, !block.fresh);
        }
    }

    /// Decides the homes of pages that small blocks will be in.
    pub(crate) fn place_slab(&'static self, addresses: &Range<usize>, fresh: bool) {
        let is_local = Thread::current(self).takes_local_slabs.get();
        let placed =
            |placer: &'static Placer| if is_local { Some(&placer.local) } else { placer.everything.as_ref() };
        let placement = self.placement.placer.as_ref().and_then(placed);
        let (Some(placement), Some(first)) = (placement, self.geometry.page_of(addresses.start)) else {
            return;
        };
        let count = whole_pages(addresses.len());
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
        let Some(placer) = self.placement.placer.as_ref().filter(|_| self.is_first()) else { return };
        if let Some(placement) = &placer.everything {
            for segment in self.geometry.overlays() {
                let of = segment.pages.into();
                let region = Region { first: segment.first, count: segment.pages, offset: 0, of };
                self.place(region, Some(placement), false);
            }
        }
        // Of two rules about one page the first one counts.
        for (addresses, rule) in placer.rules.variables().iter().rev() {
            let Some((first, count)) = pages_of(&self.geometry, addresses) else { continue };
            let Some(placement) = &rule.placement else { continue };
            self.place(Region { first, count, offset: 0, of: count.into() }, Some(placement), false);
        }
    }

    fn place(&'static self, region: Region, placement: Option<&Arc<Placement>>, used: bool) {
        let Some(placement) = placement.filter(|placement| placement.policy() != MemoryPolicy::Float) else {
            let forgotten = self.note_asked(move |asked| asked.remove(region.first, region.count));
            if forgotten {
                self.privately(move || self.core().place(Page(region.first), region.count, None, used));
            }
            return;
        };
        let Region { first, count, offset, of } = region;
        let placement = Arc::clone(placement);
        let noted = Arc::clone(&placement);
        self.note_asked(move |asked| asked.insert(first, count, offset, of, noted));
        self.privately(move || {
            let home = |index: u32| placement.node_of(offset + u64::from(index), of, self.me);
            let mut core = self.core();
            let mut from = 0;
            while from < count {
                let here = home(from);
                let end = (from..count).find(|&index| home(index) != here).unwrap_or(count);
                core.place(Page(first + from), end - from, here, used);
                from = end;
            }
        });
    }

    /// Messages note it, too: see [`Node::undisturbed`].
    fn note_asked<R>(&'static self, note: impl FnOnce(&mut Asked) -> R + 'static) -> R {
        self.undisturbed(move || note(&mut lock(&self.placement.asked)))
    }

    /// For `--stats`: how many pages were asked to be where, and how many of those that were asked for are here.
    pub(crate) fn placement_stats(&'static self) -> Option<Value> {
        let asked = self.note_asked(move |asked| asked.by_node(self.boot.nodes, self.me));
        if self.placement.placer.is_none() && asked.iter().all(|pages| *pages == 0) {
            return None;
        }
        let found = self.core().placed();
        Some(json!({"asked_of": asked, "found": found.home, "untouched": found.untouched}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::NodeId;

    #[test]
    fn an_answer_is_taken_once_by_the_question_that_it_is_for() {
        let placement = PagePlacement::new(None, &Geometry::new(1 << 10, &[]));
        let (one, other) = (placement.next_question(), placement.next_question());
        assert_ne!(one, other);
        placement.note_homes(other, vec![(5, 2, NodeId(1))]);
        assert_eq!(placement.take_homes(one), None);
        assert_eq!(placement.take_homes(other), Some(vec![(5, 2, NodeId(1))]));
        assert_eq!(placement.take_homes(other), None);
    }

    #[test]
    fn without_a_placer_no_rule_is_about_an_allocation() {
        let placement = PagePlacement::new(None, &Geometry::new(1 << 10, &[]));
        assert!(placement.rule_for(0x40_1000, 100).is_none() && !placement.has_own_policies());
        placement.note_own_policy();
        assert!(placement.has_own_policies());
    }
}
