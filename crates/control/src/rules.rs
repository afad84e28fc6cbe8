//! Placement rules in a running program: which one is about an allocation or a variable.

use crate::{PlacementRule, PlacementTarget, RuleMemory};
use gondwana_interpose::callers;
use gondwana_page::{PAGE_SIZE, to_usize};
use gondwana_rset::{MemoryPolicy, Placement, PlacementError, RSet};
use gondwana_topology::Machine;
use std::ops::Range;
use std::sync::Arc;

/// What a rule says about memory.
#[derive(Debug)]
pub struct ResolvedRule {
    /// `None` if its homes are as those of all other memory.
    pub placement: Option<Arc<Placement>>,
    /// A node that reads one of its pages gets those around it as well.
    pub replicate: bool,
}

impl ResolvedRule {
    /// True if blocks of so many bytes share pages on the node that allocates, rather than have some of their own.
    #[must_use]
    pub fn is_local_and_small(&self, bytes: usize) -> bool {
        let is_local = self.placement.as_ref().is_some_and(|it| it.policy() == MemoryPolicy::Local);
        is_local && !self.replicate && bytes < PAGE_SIZE / 2
    }
}

/// An allocation that a rule is about.
#[derive(Debug)]
struct Site {
    calls: Vec<Range<usize>>,
    /// The calls around those, if they matter.
    callers: Option<Vec<Range<usize>>>,
    bytes: (u64, u64),
    rule: ResolvedRule,
}

/// Rules with the addresses that they mean in this process.
#[derive(Debug)]
pub struct ResolvedRules {
    sites: Vec<Site>,
    variables: Vec<(Range<usize>, ResolvedRule)>,
    /// The code of the executable.
    program: Range<usize>,
}

impl ResolvedRules {
    /// Resolves rules for a machine. `base_of` finds out where the executable (`None`) or a library was loaded; rules about
    /// a library that was not are left out.
    ///
    /// # Errors
    /// If the machine does not have a node that a rule names.
    pub fn new(
        rules: &[PlacementRule],
        machine: &Machine,
        base_of: impl Fn(Option<&str>) -> Option<usize>,
    ) -> Result<Self, PlacementError> {
        let global = RSet::global(machine);
        let mut resolved =
            Self { sites: vec![], variables: vec![], program: gondwana_elf::loaded::program_text() };
        for rule in rules {
            let Some(base) = base_of(rule.library.as_deref()) else { continue };
            let here = |range: &Range<u64>| base + to_usize(range.start)..base + to_usize(range.end);
            let placement = match &rule.target {
                None => None,
                Some(PlacementTarget::Policy(policy)) => Some(Placement::new(*policy, &global, machine)?),
                Some(PlacementTarget::Parts(parts)) => Some(Placement::of_parts(parts, &global, machine)?),
            };
            let said = ResolvedRule { placement: placement.map(Arc::new), replicate: rule.replicate };
            match &rule.memory {
                RuleMemory::Variable(range) => resolved.variables.push((here(range), said)),
                RuleMemory::Site { calls, callers, bytes } => {
                    let all_here = |calls: &Vec<Range<u64>>| calls.iter().map(here).collect();
                    let (calls, callers) = (all_here(calls), callers.as_ref().map(all_here));
                    resolved.sites.push(Site { calls, callers, bytes: *bytes, rule: said });
                }
            }
        }
        Ok(resolved)
    }

    /// What a rule says about `bytes` bytes that the call before `caller` allocates. Where that is none of the
    /// program's, the call of the program behind it counts as well. The walk through the calls takes a while: it is made
    /// for sizes that some rule is about, and for calls that a rule tells apart by their callers.
    #[must_use]
    pub fn site(&self, caller: usize, bytes: usize) -> Option<&ResolvedRule> {
        let fits = |site: &&Site| (site.bytes.0..=site.bytes.1).contains(&(bytes as u64));
        let contain = |calls: &[Range<usize>], returns_to: usize| {
            calls.iter().any(|calls| calls.contains(&returns_to.wrapping_sub(1)))
        };
        let of = |caller: usize| {
            let mut around = None;
            let mut is_called_by = |callers: &[Range<usize>]| {
                around
                    .get_or_insert_with(|| callers::around(caller))
                    .is_some_and(|around| contain(callers, around))
            };
            let mut fitting = self.sites.iter().filter(fits).filter(|site| contain(&site.calls, caller));
            let found = fitting.find(|site| site.callers.as_deref().is_none_or(&mut is_called_by));
            found.map(|site| &site.rule)
        };
        of(caller).or_else(|| {
            self.sites.iter().find(fits)?;
            of(callers::beyond(caller, &self.program)?)
        })
    }

    /// The variables that rules are about, with their addresses. Of two rules about one page the first one counts.
    #[must_use]
    pub fn variables(&self) -> &[(Range<usize>, ResolvedRule)] {
        &self.variables
    }
}
