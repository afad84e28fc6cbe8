//! Data that different nodes use on the same pages, and how to lay it out instead.

use super::{Advice, AdviceKind, LEAST_SHARE};
use crate::numbers::whole;
use crate::{Analysis, Area, FalselySharedPage, Totals, UsedBytes};
use gondwana_page::PAGE_SIZE;
use gondwana_plan::Traffic;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// How many ranges of bytes are named.
const SHOWN: usize = 6;

/// Advises to separate data of different nodes, if they share pages of the area, and enough of them come again:
/// of all pages that nodes receive in the run.
///
/// Pages that come along with others count here, though nobody requests them: they went because another node wrote,
/// and each of its first writes afterwards waits.
pub(super) fn advise(analysis: &Analysis, area: &Area) -> Option<Advice> {
    let again = again(area) as f64;
    if again < (received(&analysis.totals) as f64 * LEAST_SHARE).max(1.0) {
        return None;
    }
    let run = &analysis.run;
    let lines = run.exchanges_lines();
    let unit = if lines { "lines" } else { "pages" };
    let aligned = if lines { String::new() } else { format!(" (aligned to {PAGE_SIZE} bytes)") };
    let hottest = area.falsely_shared.first()?;
    let requests = saved(area, again);
    let share = requests as f64 / area.totals.requests().max(1) as f64;
    let saving = Traffic { requests, bytes: whole(area.totals.bytes as f64 * share.min(1.0)) };
    let fetched: u64 = area.falsely_shared.iter().map(|shared| shared.fetches).sum();
    let pages = area.falsely_shared.len();
    let reason = format!(
        "{} on {} page{}, fetched {fetched} times",
        listed(hottest),
        if pages == 1 { "1".to_owned() } else { format!("the hottest of {pages}") },
        if pages == 1 { "" } else { "s" },
    );
    let is_own = |writer: &&UsedBytes| area.ranges.iter().any(|range| range.contains(&writer.bytes.start));
    let (own, others): (Vec<&UsedBytes>, Vec<&UsedBytes>) =
        hottest.writers.iter().filter(|writer| writer.writes).partition(is_own);
    let (kind, change) = match written_fields(area) {
        _ if own.is_empty() && !others.is_empty() => {
            let names: BTreeSet<String> =
                others.into_iter().map(|writer| without_numbers(&name(writer))).collect();
            let names: Vec<String> = names.into_iter().collect();
            (AdviceKind::Pad, format!("move {} to {unit} without {}{aligned}", names.join(", "), area.name))
        }
        Some(fields) => {
            (AdviceKind::Regroup, format!("move {fields} of {} away from what other nodes use", area.name))
        }
        None => (
            AdviceKind::Pad,
            format!(
                "pad {} so that what each node uses has {unit} of its own{aligned}, or group it by thread",
                area.name
            ),
        ),
    };
    Some(Advice { area: area.name.clone(), kind, reason, saving, entries: vec![], change })
}

/// Fetches of falsely shared pages beyond the first by each node.
fn again(area: &Area) -> u64 {
    let again = |shared: &FalselySharedPage| {
        let nodes: BTreeSet<u16> = shared.writers.iter().map(|writer| writer.node).collect();
        shared.fetches.saturating_sub(nodes.len() as u64)
    };
    area.falsely_shared.iter().map(again).fold(0, u64::saturating_add)
}

/// The pages that nodes received, for requests and along with others.
fn received(totals: &Totals) -> u64 {
    [totals.reads, totals.writes, totals.ahead].into_iter().fold(0, u64::saturating_add)
}

/// The requests that would go: the share of fetches that would, which are `again`, with the diffs and notices that go with them.
fn saved(area: &Area, again: f64) -> u64 {
    let all = area.totals.requests() as f64;
    whole((again / received(&area.totals).max(1) as f64 * all).min(all))
}

/// The users of the parts of a page: `counters[0] to counters[3] (node 0 writes) and counters[4] (node 1 reads) are`;
/// if that gets long, without the numbers of elements: `bodies[].mass (nodes 0 and 1 read) and bodies[].moves (nodes
/// 0 and 1 write) are`.
fn listed(shared: &FalselySharedPage) -> String {
    let mut spans: Vec<(&UsedBytes, &UsedBytes)> = vec![];
    for writer in &shared.writers {
        match spans.last_mut() {
            Some((_, last)) if last.node == writer.node && last.writes == writer.writes => *last = writer,
            _ => spans.push((writer, writer)),
        }
    }
    if spans.len() > SHOWN {
        return together(shared);
    }
    let mut text = String::new();
    for (place, (first, last)) in spans.iter().enumerate() {
        let between = match place {
            0 => "",
            _ if place + 1 == spans.len() => " and ",
            _ => ", ",
        };
        let does = if first.writes { "writes" } else { "reads" };
        let from = name(first);
        let to = if name(last) == from { String::new() } else { format!(" to {}", name(last)) };
        // Writing to a text does not fail.
        let _ = write!(text, "{between}{from}{to} (node {} {does})", first.node);
    }
    text + if spans.len() == 1 { " is" } else { " are" }
}

/// Who uses which kinds of elements and fields.
fn together(shared: &FalselySharedPage) -> String {
    let mut uses: BTreeMap<(String, bool), BTreeSet<u16>> = BTreeMap::new();
    for writer in &shared.writers {
        uses.entry((without_numbers(&name(writer)), writer.writes)).or_default().insert(writer.node);
    }
    let parts = uses.iter().take(SHOWN).map(|((name, writes), nodes)| {
        let numbers: Vec<String> = nodes.iter().map(u16::to_string).collect();
        let does = if *writes { "write" } else { "read" };
        match &numbers[..] {
            [one] => format!("{name} (node {one} {does}s)"),
            [first @ .., last] => format!("{name} (nodes {} and {last} {does})", first.join(", ")),
            [] => name.clone(),
        }
    });
    let mut parts: Vec<String> = parts.collect();
    if uses.len() > SHOWN {
        parts.push(format!("{} more", uses.len() - SHOWN));
    }
    match parts.split_last() {
        Some((only, [])) => format!("{only} is"),
        Some((last, first)) => format!("{} and {last} are", first.join(", ")),
        None => String::new(),
    }
}

/// A name with nothing between the brackets of elements, and without its distance from the beginning of a block.
fn without_numbers(name: &str) -> String {
    let start = name.rsplit_once("+0x").map_or(name, |(start, _)| start);
    let mut inside = false;
    let outside = start.chars().filter(|&letter| {
        let shown = !inside || letter == ']';
        inside = letter == '[' || inside && letter != ']';
        shown
    });
    outside.collect()
}

fn name(writer: &UsedBytes) -> String {
    match writer.name.is_empty() {
        true => format!("{:#x} to {:#x}", writer.bytes.start, writer.bytes.end),
        false => writer.name.clone(),
    }
}

/// The written fields, if they differ from the read fields, on any falsely shared page. `None` if nodes write
/// different elements.
fn written_fields(area: &Area) -> Option<String> {
    let fields = |writes: bool| -> BTreeSet<String> {
        let names = area
            .falsely_shared
            .iter()
            .flat_map(|shared| &shared.writers)
            .filter(|writer| writer.writes == writes)
            .map(|writer| field(area, &writer.name));
        names.collect()
    };
    let (written, read) = (fields(true), fields(false));
    let apart = written.iter().all(|field| !field.is_empty()) && written.is_disjoint(&read);
    let texts: Vec<String> = written.into_iter().collect();
    (apart && !texts.is_empty() && !read.is_empty()).then(|| texts.join(", "))
}

/// The field of a name in an area, `.position` of `bodies[17].position` in `bodies`; empty if it has none. Of a range of
/// names, the first counts.
fn field(area: &Area, name: &str) -> String {
    let variable = area.name.split('[').next().unwrap_or_default();
    let first = name.split("..").next().unwrap_or_default();
    let Some(part) = first.strip_prefix(variable) else { return String::new() };
    let tail = part.rsplit_once(']').map_or(part, |(_, tail)| tail);
    tail.find('.').map_or(String::new(), |dot| tail[dot..].to_owned())
}
