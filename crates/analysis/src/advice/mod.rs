//! Advice: what to change, and what it is expected to save.
//!
//! The model is that of pages with homes. A node that uses a page at its own home requests nothing; any other node
//! fetches the page after each change by another node, and sends a diff after each change of its own. A home's
//! accesses to its own pages are in no recording: estimates include them where misses of others show them.

mod balance;
mod blocks;
mod following;
mod gains;
mod homes;
mod layout;
mod pages;
mod replicas;
mod threads;

use crate::{Analysis, Area, Origin, Pattern};
use gondwana_plan::{Allocation, CodeLocation, Homes, Plan, ThreadGroup, Traffic, Variable};
use gondwana_rset::MemoryPolicy;
use serde::{Serialize, Serializer};

/// Advice that is expected to save less than this share of all requests is left out.
const LEAST_SHARE: f64 = 0.01;

/// The same for homes where homes follow the writers, whose accesses are not recorded while they are homes.
const LEAST_SHARE_OF_FLOATING: f64 = 0.05;

/// Areas with this share of all requests are listed even if no change helps.
const HOT_SHARE: f64 = 0.1;

/// The least size of allocations that get pages of their own, in bytes.
const SMALLEST_PLACED: u64 = 2048;

/// A recommendation about data or threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What it is about.
    pub area: String,
    /// The kind of change.
    pub kind: AdviceKind,
    /// Why, as a sentence with numbers.
    pub reason: String,
    /// The expected saving.
    pub saving: Traffic,
    /// The entries of a plan that do it, as a text; empty if a plan cannot.
    #[serde(rename = "plan", serialize_with = "as_text")]
    pub entries: Vec<Entry>,
    /// What to change in the source or the command; empty if the plan does it.
    pub change: String,
}

/// Kinds of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceKind {
    /// All pages on one node.
    Home,
    /// Contiguous parts of equal size, one for each node.
    Block,
    /// Stripes.
    Striped,
    /// Parts as they are used.
    Parts,
    /// On the node that allocates.
    Local,
    /// Prefetched by each node as a whole.
    Replicate,
    /// Work divided evenly among threads.
    Balance,
    /// Threads on one node.
    Together,
    /// Each node's elements on pages of their own.
    Pad,
    /// Fields that some nodes write on other pages than those that others read.
    Regroup,
    /// Let homes follow the writers.
    Follow,
    /// Only a change of the program's algorithm helps.
    Nothing,
}

impl AdviceKind {
    /// True if it changes the homes of pages.
    fn is_about_homes(self) -> bool {
        matches!(self, Self::Home | Self::Block | Self::Striped | Self::Parts | Self::Local)
    }

    /// The kind in a word or two.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Block => "block",
            Self::Striped => "striped",
            Self::Parts => "parts",
            Self::Local => "local",
            Self::Replicate => "replicate",
            Self::Balance => "uneven work",
            Self::Together => "together",
            Self::Pad => "pad",
            Self::Regroup => "regroup",
            Self::Follow => "left to those who write",
            Self::Nothing => "nothing to do",
        }
    }
}

/// An entry of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// About a variable.
    Variable(Variable),
    /// About what is allocated.
    Allocation(Allocation),
    /// About threads.
    Threads(ThreadGroup),
}

fn as_text<S: Serializer>(entries: &[Entry], serializer: S) -> Result<S::Ok, S::Error> {
    let mut plan = Plan::default();
    entries.iter().for_each(|entry| add(&mut plan, entry));
    let text = if entries.is_empty() { String::new() } else { plan.to_toml() };
    // The enclosing document has the version.
    serializer.serialize_str(text.split_once("\n\n").map_or("", |(_version, entries)| entries))
}

fn add(plan: &mut Plan, entry: &Entry) {
    match entry.clone() {
        Entry::Variable(variable) => plan.variables.push(variable),
        Entry::Allocation(allocation) => plan.allocations.push(allocation),
        Entry::Threads(threads) => plan.threads.push(threads),
    }
}

/// Advice for a recorded run, that with the greatest saving first.
#[must_use]
pub fn advise(analysis: &Analysis) -> Vec<Advice> {
    let all_requests = analysis.totals.requests() as f64;
    let least = all_requests * LEAST_SHARE;
    let worthwhile = |advice: &Advice| advice.saving.requests as f64 >= least.max(1.0);
    // Homes are for threads where they will be.
    let (moved, together) = threads::advise(analysis);
    let areas = pages::by_area(analysis, &moved);
    let mut all: Vec<Advice> = together.into_iter().filter(worthwhile).collect();
    all.extend(balance::advise(analysis));
    let rc = analysis.run.consistency != "sc";
    // A machine with coherent caches replicates no pages.
    let copies = rc && !analysis.run.exchanges_lines();
    let floats = rc && blocks::follow_writers(&analysis.run);
    let least_of_homes = if floats { least.max(all_requests * LEAST_SHARE_OF_FLOATING) } else { least };
    for (area, pages) in analysis.areas.iter().zip(&areas) {
        let placed = rc.then(|| homes::advise(analysis, area, pages)).flatten();
        let placed = placed.filter(|placed| placed.saving.requests as f64 >= least_of_homes);
        let copied = copies.then(|| replicas::advise(analysis, area, pages)).flatten();
        let best = [placed, copied].into_iter().flatten().max_by_key(|advice| advice.saving.requests);
        let layout = layout::advise(analysis, area);
        let some: Vec<Advice> = best.into_iter().filter(worthwhile).chain(layout).collect();
        if some.is_empty() && is_hot(analysis, area) {
            all.push(nothing(analysis, area));
        }
        all.extend(some);
    }
    if floats && !all.iter().any(|advice| advice.kind.is_about_homes()) {
        all.extend(following::advise(analysis, &areas));
    }
    all.sort_by_key(|advice| std::cmp::Reverse(advice.saving.requests));
    all
}

/// The plan for the advice that a plan can carry out. Of several pieces about allocations that a plan cannot
/// separate, it takes the one with the greatest saving, and those that agree with it.
#[must_use]
pub fn plan(analysis: &Analysis, advice: &[Advice]) -> Plan {
    let before = Traffic { requests: analysis.totals.requests(), bytes: analysis.totals.bytes };
    let mut expected = before;
    let mut plan = Plan::default();
    let can_be_written =
        |advice: &&Advice| !advice.entries.is_empty() && advice.entries.iter().all(can_be_written);
    for advice in advice.iter().filter(can_be_written) {
        let entries: Vec<_> = advice.entries.iter().map(|entry| (entry, alike(&plan, entry))).collect();
        if entries.iter().any(|(entry, alike)| alike.is_some_and(|alike| !wants_the_same(entry, alike))) {
            continue;
        }
        let new: Vec<_> =
            entries.into_iter().filter(|(_, alike)| alike.is_none()).map(|(entry, _)| entry).collect();
        expected.requests = expected.requests.saturating_sub(advice.saving.requests);
        expected.bytes = expected.bytes.saturating_sub(advice.saving.bytes);
        new.into_iter().for_each(|entry| add(&mut plan, entry));
    }
    Plan { before: Some(before), expected: Some(expected), ..plan }
}

/// True if a plan with this entry can be read: a recording or a program can have names that are invalid in a plan.
fn can_be_written(entry: &Entry) -> bool {
    match entry {
        Entry::Variable(variable) => !variable.name.is_empty(),
        Entry::Allocation(Allocation { site, caller, .. }) => {
            site.can_be_written() && caller.as_ref().is_none_or(CodeLocation::can_be_written)
        }
        Entry::Threads(group) => !group.threads.is_empty(),
    }
}

/// The entry of a plan about the same allocations.
fn alike<'a>(plan: &'a Plan, entry: &Entry) -> Option<&'a Allocation> {
    let Entry::Allocation(entry) = entry else { return None };
    let about = |one: &Allocation| {
        (one.site.clone(), one.caller.clone(), one.library.clone(), one.min_bytes, one.max_bytes)
    };
    plan.allocations.iter().find(|one| about(one) == about(entry))
}

fn wants_the_same(entry: &Entry, other: &Allocation) -> bool {
    matches!(entry, Entry::Allocation(entry) if (&entry.homes, entry.replicate) == (&other.homes, other.replicate))
}

fn is_hot(analysis: &Analysis, area: &Area) -> bool {
    let all = analysis.totals.requests();
    all > 0 && area.totals.requests() as f64 >= all as f64 * HOT_SHARE
}

fn nothing(analysis: &Analysis, area: &Area) -> Advice {
    let why = match area.pattern {
        Pattern::Migratory => "its parts are read and written by one node after the other",
        Pattern::WidelyWritten => "many nodes write the same bytes",
        Pattern::ProducerConsumer => {
            "one node writes what others read, and must send it wherever the home is"
        }
        _ if blocks::follow_writers(&analysis.run) => {
            "its homes follow those who write, and no plan does better"
        }
        _ => "no node uses its pages so much more than the others that another home would save anything",
    };
    Advice {
        area: area.name.clone(),
        kind: AdviceKind::Nothing,
        reason: format!("{why} ({} requests)", area.totals.requests()),
        saving: Traffic::default(),
        entries: vec![],
        change: String::new(),
    }
}

/// The entry that places an area; `None` if a plan has no name for it, or if its blocks are too small for pages of
/// their own.
fn entry(
    analysis: &Analysis,
    area: &Area,
    homes: Homes,
    replicate: bool,
    why: &str,
    saving: Traffic,
) -> Option<Entry> {
    let (reason, saving) = (why.to_owned(), Some(saving));
    let named = |library: &String| (!library.is_empty()).then(|| library.clone());
    match &area.origin {
        Origin::Variable { name, library } => Some(Entry::Variable(Variable {
            line: 0,
            name: name.clone(),
            library: named(library),
            homes,
            replicate,
            reason,
            saving,
        })),
        // Small blocks share pages only with others that are local.
        Origin::Allocation { site, caller, library, .. }
            if average(area) >= SMALLEST_PLACED || homes == Homes::Policy(MemoryPolicy::Local) =>
        {
            let (by_caller, (min_bytes, max_bytes)) = told_apart(analysis, area);
            let caller = if by_caller { Some(caller.parse().ok()?) } else { None };
            Some(Entry::Allocation(Allocation {
                line: 0,
                site: site.parse().ok()?,
                caller,
                library: named(library),
                min_bytes,
                max_bytes,
                homes,
                replicate,
                reason,
                saving,
            }))
        }
        _ => None,
    }
}

/// The average size of an area's blocks in bytes.
fn average(area: &Area) -> u64 {
    area.bytes / area.objects.max(1)
}

/// The caller and the sizes of an entry, as far as they are needed to separate its blocks from others of the same
/// call.
fn told_apart(analysis: &Analysis, area: &Area) -> (bool, (u64, u64)) {
    let call = |area: &Area| match &area.origin {
        Origin::Allocation { site, caller, library, .. } => {
            Some(((site.clone(), library.clone()), caller.clone()))
        }
        _ => None,
    };
    let own = call(area).unwrap_or_default();
    let alike: Vec<_> = analysis.areas.iter().filter_map(call).filter(|(call, _)| *call == own.0).collect();
    let by_caller = alike.len() > 1 && !own.1.is_empty();
    let still_alike = alike.iter().filter(|other| !by_caller || other.1 == own.1).count();
    // If there are very many blocks, one range has several of them.
    let single = area.ranges.len() as u64 == area.objects;
    let lengths = area.ranges.iter().map(|range| range.end - range.start).filter(|_| single);
    let sizes = match (lengths.clone().min(), lengths.max()) {
        (Some(least), Some(most)) if still_alike > 1 => (least, most),
        (least, _) if least.unwrap_or(average(area)) >= SMALLEST_PLACED => (SMALLEST_PLACED, u64::MAX),
        _ => (0, u64::MAX),
    };
    (by_caller, sizes)
}

/// A share in per cent, as text.
fn percent(part: f64, of: f64) -> String {
    format!("{:.0} %", if of > 0.0 { part / of * 100.0 } else { 0.0 })
}

#[cfg(test)]
mod tests;
