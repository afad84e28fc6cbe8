//! Sample data for the tests of this crate.

use gondwana_analysis::{Advice, AdviceKind, Analysis, Entry, Totals};
use gondwana_plan::{Homes, Traffic, Variable};
use gondwana_recording::RunRecord;
use gondwana_rset::MemoryPolicy;

/// A run with an entry for a plan and something to be done by hand.
pub(crate) fn sample() -> (Analysis, Vec<Advice>) {
    let run =
        RunRecord { nodes: 2, command: vec!["./sor".to_owned(), "100".to_owned()], ..RunRecord::default() };
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
