//! Advice for people.

use gondwana_analysis::{Advice, Analysis};
use gondwana_console::clean::line;
use gondwana_console::columns::{amount, grouped};
use std::fmt::Write;

/// All advice as lines without control characters, that with the greatest saving first.
pub fn text(analysis: &Analysis, advice: &[Advice]) -> String {
    let mut lines = String::new();
    let all = analysis.totals.requests();
    let (command, bytes) = (line(&analysis.run.command.join(" ")), amount(analysis.totals.bytes));
    // Writing to a text does not fail.
    let _ = writeln!(lines, "{command}: {} nodes, {} requests, {bytes}", analysis.run.nodes, grouped(all));
    if advice.is_empty() {
        lines.push_str("There is nothing to advise.\n");
    }
    for (number, advice) in (1..).zip(advice) {
        let _ = write!(lines, "{number}. {}\n   {}\n", short(advice, all), line(&advice.reason));
        if !advice.change.is_empty() {
            let _ = writeln!(lines, "   To do: {}", line(&advice.change));
        }
    }
    lines
}

/// Advice in a few words: what to do, and how many of `all` requests it saves.
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
mod tests {
    use super::*;
    use crate::sample::sample;

    #[test]
    fn each_advice_has_its_reason_and_saving() {
        let (analysis, advice) = sample();
        assert_eq!(
            text(&analysis, &advice),
            "./sor 100: 2 nodes, 2,000 requests, 5 MiB\n\
             1. grid: block, saves about 1,500 requests (75 %) and 1 MiB\n   blocks\n\
             2. counters: pad, saves about 20 requests (1 %)\n   they share a page\n   To do: pad counters\n"
        );
        assert!(text(&analysis, &[]).ends_with("There is nothing to advise.\n"));
    }
}
