//! The rules of this process, and the arena of each.

use crate::arena::Arena;
use crate::site::{MOST, Sites};
use crate::{fork, inside, message};
use gondwana_host::{MALLOC_VARIABLE, MallocPlan};
use gondwana_rset::{AllocationRule, RSet, Registry, Selector};
use gondwana_topology::Machine;
use std::ffi::c_char;
use std::sync::OnceLock;

pub(crate) struct Rules {
    pub plan: MallocPlan,
    pub rules: Vec<Rule>,
    sites: Option<Sites>,
    /// The process that has read them; its forked children report nothing.
    pub process: u32,
}

/// Some allocations.
pub(crate) struct Rule {
    /// The user's text of it.
    pub text: String,
    selector: Selector,
    /// The bit of its site.
    site: u16,
    /// `None` if the rule is impossible on this computer, or there are no addresses for it.
    arena: OnceLock<Option<Arena>>,
}

static RULES: OnceLock<Option<Rules>> = OnceLock::new();

/// The rules, if there are any.
#[inline]
pub(crate) fn rules() -> Option<&'static Rules> {
    match RULES.get() {
        Some(rules) => rules.as_ref(),
        None => first(),
    }
}

#[cold]
fn first() -> Option<&'static Rules> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // The loader allocates before the environment exists. SAFETY: the C library's variable, which is only compared
    // with null.
    if unsafe { environ.is_null() } {
        return None;
    }
    let _inside = inside::enter()?;
    RULES.get_or_init(read).as_ref()
}

fn read() -> Option<Rules> {
    let plan: MallocPlan = std::env::var(MALLOC_VARIABLE).ok()?.parse().ok()?;
    let mut sites = vec![];
    let mut rules = vec![];
    for text in &plan.rules {
        let (selector, _) = Selector::parse_prefix(text).ok()?;
        let site = match &selector.site {
            Some(site) if sites.len() < MOST => {
                sites.push(site.clone());
                1 << (sites.len() - 1)
            }
            _ => 0,
        };
        rules.push(Rule { text: text.clone(), selector, site, arena: OnceLock::new() });
    }
    if plan.report.is_some() {
        message::keep_standard_error();
    }
    fork::begin();
    let sites = (!sites.is_empty()).then(|| Sites::new(sites));
    Some(Rules { plan, rules, sites, process: std::process::id() })
}

/// Locks all memory of the program, if requested.
pub(crate) fn lock_all() {
    let Some(rules) = rules() else { return };
    if rules.plan.extras.lock && rules.rules.is_empty() {
        // SAFETY: locking changes nothing that a program could read.
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
    }
}

impl Rules {
    /// The first rule that matches an allocation of `bytes` bytes with the return addresses `callers`.
    #[inline]
    pub(crate) fn of(&self, bytes: usize, callers: &[usize]) -> Option<&Rule> {
        let is_at = |sites: &Sites, rule: &Rule| callers.iter().any(|&at| sites.of(at) & rule.site != 0);
        self.rules.iter().find(|rule| {
            rule.selector.has_size(bytes)
                && (rule.selector.site.is_none()
                    || self.sites.as_ref().is_some_and(|sites| is_at(sites, rule)))
        })
    }

    /// The arena whose memory an address is in.
    #[inline]
    pub(crate) fn owner(&self, address: usize) -> Option<&Arena> {
        self.rules.iter().filter_map(Rule::arena_so_far).find(|arena| arena.has(address))
    }

    /// Forgets which calls are at which sites.
    pub(crate) fn forget_sites(&self) {
        if let Some(sites) = &self.sites {
            sites.forget();
        }
    }
}

impl Rule {
    /// The arena, if it was used.
    pub(crate) fn arena_so_far(&self) -> Option<&Arena> {
        self.arena.get()?.as_ref()
    }

    /// The arena, which the first call makes.
    pub(crate) fn arena(&self, rules: &Rules) -> Option<&Arena> {
        self.arena.get_or_init(|| self.make_arena(rules)).as_ref()
    }

    fn make_arena(&self, rules: &Rules) -> Option<Arena> {
        static MACHINE: OnceLock<Option<Machine>> = OnceLock::new();
        let machine = MACHINE.get_or_init(|| gondwana_host::discover_nodes().ok()).as_ref()?;
        let rule = AllocationRule::parse(&self.text, machine, &Registry::default()).ok()?;
        let rset = rule.rset.unwrap_or_else(|| RSet::allowed(machine));
        Arena::new(&self.text, rule.memory, &rset, machine, &rules.plan)
    }
}
