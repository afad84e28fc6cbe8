//! `--malloc`: the rules for a program's own allocations.

use super::linkage;
use gondwana_console::failure::Failure;
use gondwana_host::{AnonymousMemory, Extras, MallocPlan, Reporter, UnmetRequest, place_untouched};
use gondwana_page::PAGE_SIZE;
use gondwana_rset::{AllocationRule, MemoryPolicy, Placement, RSet, Registry, Selector, TextError};
use gondwana_topology::{Machine, NodeSet};
use std::path::Path;

/// The most call sites that the library can distinguish.
const MOST_SITES: usize = 16;

/// From this size on, policies for regions apply to allocations without a rule: the C library gives them whole pages
/// too.
const LARGE: usize = 128 << 10;

/// Pages that are tried for each node.
const TRIED: usize = 16;

/// Rules for a program in a set.
pub(super) struct Rules<'a> {
    machine: &'a Machine,
    rset: &'a RSet,
    rules: Vec<AllocationRule>,
}

impl<'a> Rules<'a> {
    /// Reads rules as the user wrote them.
    pub(super) fn parse(
        texts: &[String],
        program: Option<&Path>,
        machine: &'a Machine,
        registry: &Registry,
        rset: &'a RSet,
    ) -> Result<Self, Failure> {
        let mut rules = vec![];
        for text in texts {
            let wrong = |error: TextError| Failure::usage(format!("--malloc: {error}"));
            let rule = AllocationRule::parse(text, machine, registry).map_err(wrong)?;
            let outside = rule.rset.map(|own| own.difference(rset)).filter(|outside| !outside.is_empty());
            if let Some(outside) = outside {
                let set = text.split_once('@').map_or("", |(_, set)| set);
                let message = format!("{outside} isn't in the set of the program, {rset}");
                return Err(wrong(TextError::about(text, set, message)));
            }
            // A rule without a set of its own gets the set of the program.
            let rule = AllocationRule { rset: Some(rule.rset.unwrap_or(*rset)), ..rule };
            placement(&rule, rset, machine).map_err(|error| {
                wrong(TextError::about(text, &text[text.find('=').unwrap_or(0)..], error.to_string()))
            })?;
            if let Some(program) = program {
                check_site(&rule.selector, program, text).map_err(wrong)?;
            }
            rules.push(rule);
        }
        if rules.iter().filter(|rule| rule.selector.site.is_some()).count() > MOST_SITES {
            return Err(Failure::usage(format!("--malloc: at most {MOST_SITES} rules can name functions")));
        }
        Ok(Self { machine, rset, rules })
    }

    /// Adds one for all large allocations, after the others.
    pub(super) fn add_for_large(&mut self, memory: MemoryPolicy) {
        let selector = Selector { sizes: LARGE..=usize::MAX, site: None };
        self.rules.push(AllocationRule { selector, memory, rset: Some(*self.rset) });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Tries each rule, and returns the unmet requests.
    pub(super) fn try_out(&self, extras: Extras) -> Vec<UnmetRequest> {
        let tried = self.rules.iter().filter_map(|rule| {
            let placement = placement(rule, self.rset, self.machine).ok()?;
            let region = match AnonymousMemory::new(TRIED * placement.nodes().len() * PAGE_SIZE) {
                Ok(region) => region,
                Err(error) => {
                    return Some(vec![UnmetRequest::Other(format!("memory cannot be tried: {error}"))]);
                }
            };
            Some(place_untouched(&region, &placement, 0, extras).remarks)
        });
        let mut remarks: Vec<UnmetRequest> = vec![];
        for remark in tried.flatten() {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        remarks
    }

    /// The nodes for the memory of each rule.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeSet> + '_ {
        let placements = self.rules.iter().filter_map(|rule| placement(rule, self.rset, self.machine).ok());
        placements.map(|placement| placement.nodes().iter().copied().collect())
    }

    /// The plan for the program.
    pub(super) fn plan(&self, report: Option<Reporter>, extras: Extras) -> MallocPlan {
        MallocPlan { report, extras, rules: self.rules.iter().map(ToString::to_string).collect() }
    }
}

/// Where the pages of a rule's allocations go.
fn placement(
    rule: &AllocationRule,
    rset: &RSet,
    machine: &Machine,
) -> Result<Placement, gondwana_rset::PlacementError> {
    Placement::new(rule.memory, rule.rset.as_ref().unwrap_or(rset), machine)
}

/// Refuses functions that the executable does not have. Libraries are not checked: which are loaded is known only at
/// run time.
fn check_site(selector: &Selector, program: &Path, text: &str) -> Result<(), TextError> {
    let Some(site) = selector.site.as_ref().filter(|site| site.object.is_none()) else { return Ok(()) };
    match gondwana_elf::functions(program, &site.function) {
        Ok(functions) if functions.is_empty() => {
            let stripped = linkage::is_stripped(program);
            let why = if stripped {
                ", or it was stripped of its name"
            } else {
                ", or the compiler has inlined it"
            };
            let message = format!("{} has no function '{}'{why}", program.display(), site.function);
            Err(TextError::about(text, &site.function, message))
        }
        // Scripts: functions of interpreters are not checked.
        _ => Ok(()),
    }
}
