//! What a plan says about the program's memory and threads.

use crate::world::{World, aside};
use gondwana_control::{PlacementRule, ResolvedRules, ThreadGroup};
use gondwana_elf::loaded;
use gondwana_rset::Placement;
use gondwana_sim::{Machine, ThreadId};
use std::ops::Range;
use std::sync::Arc;

/// A plan for this process.
pub(crate) struct Plan {
    rules: ResolvedRules,
    groups: Vec<ThreadGroup>,
    /// Bytes of the machine's pages.
    page_bytes: usize,
}

impl Plan {
    /// Resolves a plan, and places the variables that it names.
    pub(crate) fn begin(
        rules: &[PlacementRule],
        groups: Vec<ThreadGroup>,
        machine: &mut Machine,
        topology: &gondwana_topology::Machine,
        page_bytes: u64,
    ) -> Result<Self, String> {
        let rules = ResolvedRules::new(rules, topology, loaded::base_of)
            .map_err(|error| format!("the plan: {error}"))?;
        // Of two rules about one page the first one counts.
        for (addresses, rule) in rules.variables().iter().rev() {
            if let Some(placement) = &rule.placement {
                machine.place_memory(&(addresses.start as u64..addresses.end as u64), Arc::clone(placement));
            }
        }
        Ok(Self { rules, groups, page_bytes: page_bytes as usize })
    }

    /// True if a thread is in a group.
    pub(crate) fn has_group(&self, thread: ThreadId) -> bool {
        self.groups.iter().any(|group| group.threads.contains(&(thread as u32)))
    }

    /// The processor of a thread that starts, where it would otherwise be on `usual`; `running` has the threads before it.
    pub(crate) fn processor(
        &self,
        machine: &Machine,
        thread: ThreadId,
        usual: usize,
        running: &[usize],
    ) -> usize {
        let holds = |group: &&ThreadGroup, thread: ThreadId| group.threads.contains(&(thread as u32));
        let Some(group) = self.groups.iter().find(|group| holds(group, thread)) else { return usual };
        let first = || {
            (0..running.len())
                .find(|other| holds(&group, *other))
                .map(|other| machine.node_of(running[other]))
        };
        let node = group.node.map(|node| node.0 as u8).or_else(first).unwrap_or(machine.node_of(usual));
        if machine.node_of(usual) == node {
            return usual;
        }
        let of_node = (0..machine.processors()).filter(|processor| machine.node_of(*processor) == node);
        let load = |processor: &usize| running.iter().filter(|other| *other == processor).count();
        of_node.min_by_key(load).unwrap_or(usual)
    }
}

/// Where a block goes.
pub(crate) struct Asked {
    placement: Arc<Placement>,
    /// The alignment of a block with pages of its own.
    pub alignment: usize,
}

/// What the plan says about so many bytes that a call allocates whose return address is at `slot`.
pub(crate) fn asked(world: &World, bytes: usize, slot: *const usize) -> Option<Asked> {
    let plan = world.placed.as_ref()?;
    // SAFETY: the call has not returned yet.
    let caller = unsafe { *slot };
    let rule = aside(|| plan.rules.site(caller, bytes))?;
    let placement = rule.placement.as_ref().filter(|_| !rule.is_local_and_small(bytes))?;
    Some(Asked { placement: Arc::clone(placement), alignment: plan.page_bytes })
}

impl Asked {
    /// Places the block.
    pub(crate) fn place(self, world: &mut World, block: &Range<usize>) {
        world.machine.place_memory(&(block.start as u64..block.end as u64), self.placement);
    }
}
