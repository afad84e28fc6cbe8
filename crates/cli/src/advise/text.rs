//! Advice for people.

use crate::clean::line;
use crate::columns::{amount, grouped};
use gondwana_analysis::{Advice, Analysis};
use std::fmt::Write;

/// All advice as lines without control characters, that with the greatest saving first.
pub fn of(analysis: &Analysis, advice: &[Advice]) -> String {
    let mut text = String::new();
    let all = analysis.totals.requests();
    let (command, bytes) = (line(&analysis.run.command.join(" ")), amount(analysis.totals.bytes));
    // Writing to a text does not fail.
    let _ = writeln!(text, "{command}: {} nodes, {} requests, {bytes}", analysis.run.nodes, grouped(all));
    if advice.is_empty() {
        text.push_str("There is nothing to advise.\n");
    }
    for (number, advice) in (1..).zip(advice) {
        let _ = write!(text, "{number}. {}\n   {}\n", short(advice, all), line(&advice.reason));
        if !advice.change.is_empty() {
            let _ = writeln!(text, "   To do: {}", line(&advice.change));
        }
    }
    text
}

/// Advice in half a line: what to do, and how many of `all` requests that saves.
pub fn short(advice: &Advice, all: u64) -> String {
    let saving = advice.saving;
    // Writing to a text does not fail.
    let mut text = format!("{}: {}", line(&advice.area), advice.kind.name());
    if saving.requests > 0 {
        let share = saving.requests as f64 / all.max(1) as f64 * 100.0;
        let _ = write!(text, ", saves about {} requests ({share:.0} %)", grouped(saving.requests));
    }
    if saving.bytes > 0 {
        let _ = write!(text, " and {}", amount(saving.bytes));
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use gondwana_analysis::{AdviceKind, Entry, Totals};
    use gondwana_plan::{Homes, Traffic, Variable};
    use gondwana_recording::RunRecord;
    use gondwana_rset::MemoryPolicy;

    /// A run with an entry for a plan and something to be done by hand.
    pub fn sample() -> (Analysis, Vec<Advice>) {
        let run = RunRecord {
            nodes: 2,
            command: vec!["./sor".to_owned(), "100".to_owned()],
            ..RunRecord::default()
        };
        let totals = Totals { reads: 1000, diffs: 1000, bytes: 5 << 20, ..Totals::default() };
        let saving = Traffic { requests: 1500, bytes: 1 << 20 };
        let entry = Variable {
            line: 0,
            name: "grid".to_owned(),
            library: None,
            homes: Homes::Policy(MemoryPolicy::Block),
            replicate: false,
            reason: "blocks".to_owned(),
            saving: Some(saving),
        };
        let block = Advice {
            area: "grid".to_owned(),
            kind: AdviceKind::Block,
            reason: "blocks".to_owned(),
            saving,
            entries: vec![Entry::Variable(entry)],
            change: String::new(),
        };
        let pad = Advice {
            area: "counters".to_owned(),
            kind: AdviceKind::Pad,
            reason: "they share a page".to_owned(),
            saving: Traffic { requests: 20, bytes: 0 },
            entries: vec![],
            change: "pad counters".to_owned(),
        };
        (Analysis { run, totals, ..Analysis::default() }, vec![block, pad])
    }

    #[test]
    fn each_advice_has_its_reason_and_saving() {
        let (analysis, advice) = sample();
        assert_eq!(
            of(&analysis, &advice),
            "./sor 100: 2 nodes, 2,000 requests, 5 MiB\n\
             1. grid: block, saves about 1,500 requests (75 %) and 1 MiB\n   blocks\n\
             2. counters: pad, saves about 20 requests (1 %)\n   they share a page\n   To do: pad counters\n"
        );
        assert!(of(&analysis, &[]).ends_with("There is nothing to advise.\n"));
    }
}
