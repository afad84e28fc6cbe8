//! Advice as the page shows it.

use super::{limits, words};
use gondwana_analysis::{Advice, AdviceKind, Analysis, plan};
use gondwana_console::columns::{amount, grouped};
use gondwana_plan::Plan;

/// Something that the user can change.
pub(super) struct Item {
    pub title: String,
    /// The index of the area in the table, if the advice is about one.
    pub area: Option<usize>,
    pub reason: String,
    pub change: String,
    pub saving: String,
    /// The plan of the run with this advice added; empty if no plan can do it.
    pub plan: String,
}

impl Item {
    /// Some advice.
    pub(super) fn new(advice: &Advice, analysis: &Analysis, earlier: &Plan) -> Self {
        let areas = analysis.areas.iter().take(limits::MOST_AREAS);
        Self {
            title: words::name(&title(advice)),
            area: areas.clone().position(|area| area.name == advice.area),
            reason: sentence(&advice.reason),
            change: sentence(&advice.change),
            saving: saving(advice, analysis),
            plan: if advice.entries.is_empty() {
                String::new()
            } else {
                plan_of(std::slice::from_ref(advice), analysis, earlier)
            },
        }
    }
}

/// The plan of the run with all advice added that a plan can do; empty if there is none.
pub(super) fn plan_of(advice: &[Advice], analysis: &Analysis, earlier: &Plan) -> String {
    let plan = plan(analysis, advice).keeping(earlier);
    if plan.is_empty() { String::new() } else { words::text(plan.to_toml().trim_end()) }
}

/// What to do.
fn title(advice: &Advice) -> String {
    let area = &advice.area;
    match advice.kind {
        AdviceKind::Home => format!("Keep {area} on one node"),
        AdviceKind::Block => format!("Give each node a part of {area}, in one piece"),
        AdviceKind::Striped => format!("Give each node stripes of {area}"),
        AdviceKind::Parts => format!("Keep the parts of {area} where they are used"),
        AdviceKind::Local => format!("Keep {area} on the nodes that allocate it"),
        AdviceKind::Replicate => format!("Bring {area} to each node as a whole"),
        AdviceKind::Balance => format!("Divide the work of {area} evenly"),
        AdviceKind::Together => format!("Bring {area} that exchange much to the same node"),
        AdviceKind::Pad => format!("Give each node's part of {area} pages of its own"),
        AdviceKind::Regroup => format!("Keep the fields of {area} that are written apart from the others"),
        AdviceKind::Follow => format!("Leave {area} to those who write"),
        AdviceKind::Nothing => format!("{area}: only a change of the program's logic would help"),
    }
}

fn saving(advice: &Advice, analysis: &Analysis) -> String {
    let (saved, all) = (advice.saving.requests, analysis.totals.requests());
    if saved == 0 {
        return String::new();
    }
    let share = words::percent(saved, all);
    let bytes = match advice.saving.bytes {
        0 => String::new(),
        bytes => format!(" and {}", amount(bytes)),
    };
    format!("{} of {} requests ({share}){bytes}", grouped(saved), grouped(all))
}

/// A text as a sentence of its own.
fn sentence(text: &str) -> String {
    let text = words::text(text.trim());
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return text };
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    // A first word that looks like a name is one.
    let word = text.split(' ').next().unwrap_or_default();
    let first = if word.chars().all(char::is_alphabetic) {
        first.to_uppercase().to_string()
    } else {
        first.to_string()
    };
    format!("{first}{}{end}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_sentence() {
        assert_eq!(sentence("nodes write it"), "Nodes write it.");
        assert_eq!(sentence("counters[1] is written"), "counters[1] is written.");
        assert_eq!(sentence(""), "");
    }
}
