//! Advice to prefetch areas as a whole.

use super::pages::{Pages, page_bytes};
use super::{Advice, AdviceKind, entry, percent};
use crate::numbers::whole;
use crate::{Analysis, Area, Pattern};
use gondwana_plan::{Homes, Traffic};

/// Reads for each write of an area that is mostly read.
const MOSTLY: u64 = 4;

/// A node that reads less than this share of an area does without the rest.
const LEAST_READ: f64 = 0.25;

/// Pages that come for one request, at least.
const TOGETHER: u64 = 128;

/// Advises to prefetch the area as a whole, if that saves requests.
pub(super) fn advise(analysis: &Analysis, area: &Area, pages: &Pages) -> Option<Advice> {
    let totals = &area.totals;
    // Writes of homes show only in notices, one for each copy that is lost.
    let written = (totals.writes + totals.upgrades).max(totals.notices);
    let mostly_read = area.pattern == Pattern::ReadOnly || totals.reads + totals.ahead >= MOSTLY * written;
    // Each of several blocks takes a request.
    if !mostly_read || area.ranges.len() != 1 {
        return None;
    }
    let all = area.bytes.div_ceil(page_bytes(analysis)).max(1);
    let mut saved = 0.0;
    let mut readers = 0;
    for (number, node) in (0_u16..).zip(&area.nodes).filter(|(_, node)| node.totals.reads > 0) {
        let read =
            pages.values().filter(|page| page.uses.get(&number).is_some_and(|it| it.reads > 0.0)).count()
                as u64;
        if (read + node.totals.ahead).min(all) < whole(all as f64 * LEAST_READ) {
            return None;
        }
        let rounds = (node.totals.reads as f64 / read.max(1) as f64).max(1.0);
        saved += (node.totals.reads as f64 - rounds * all.div_ceil(TOGETHER) as f64).max(0.0);
        readers += 1;
    }
    let saving = Traffic { requests: whole(saved), bytes: 0 };
    let (reads, requests) = (totals.reads, totals.requests());
    let reason = format!(
        "{readers} {} it: {reads} of the {requests} requests ({}) are fetches for reads, which can come together",
        if readers == 1 { "node reads" } else { "nodes read" },
        percent(reads as f64, requests as f64)
    );
    let entry = entry(analysis, area, Homes::default(), true, &reason, saving)?;
    let (area, kind) = (area.name.clone(), AdviceKind::Replicate);
    Some(Advice { area, kind, reason, saving, entries: vec![entry], change: String::new() })
}
