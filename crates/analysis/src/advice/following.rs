//! Advice for runs whose homes should follow the writers.

use super::pages::Pages;
use super::{Advice, AdviceKind, percent};
use crate::Analysis;
use gondwana_plan::Traffic;

/// Advises to let homes follow the writers, with the number of pages that had several homes by turns; `None` if no
/// request went to a home.
pub(super) fn advise(analysis: &Analysis, areas: &[Pages]) -> Option<Advice> {
    let asked = areas.iter().flat_map(Pages::values).filter(|page| page.home().is_some());
    let (mut pages, mut wandering, mut requests) = (0_u64, 0_u64, 0.0);
    for page in asked {
        pages += 1;
        if page.wanders() {
            wandering += 1;
            requests += page.uses.values().map(|uses| uses.requests()).sum::<f64>();
        }
    }
    if pages == 0 {
        return None;
    }
    let share = percent(requests, analysis.totals.requests() as f64);
    let wandering = match wandering {
        0 => "none went back and forth".to_owned(),
        _ => format!("{wandering} went back and forth, which makes {share} of all requests"),
    };
    let elsewhere = if analysis.run.plan.is_empty() { "" } else { " where the plan says nothing" };
    let reason = format!(
        "they move to those who write{elsewhere}; of the {pages} pages that nodes asked each other for, {wandering}: a plan for \
         homes would hardly save anything"
    );
    Some(Advice {
        area: "homes".to_owned(),
        kind: AdviceKind::Follow,
        reason,
        saving: Traffic::default(),
        entries: vec![],
        change: String::new(),
    })
}
