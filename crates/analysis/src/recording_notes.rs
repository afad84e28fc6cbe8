//! Notes about the recording itself.

use crate::naming::Codes;
use crate::row_sums::Shape;
use gondwana_recording::{Omitted, Recording};
use std::collections::BTreeMap;

/// The sentences.
pub(crate) fn recording_notes(recording: &Recording, shape: &Shape, codes: &Codes<'_>) -> Vec<String> {
    let mut notes = vec![];
    if let Some(cut) = &recording.cut {
        notes.push(format!("The recording is cut: {cut}. What follows is about what is before that."));
    }
    let nodes = usize::from(recording.run.nodes);
    if nodes > shape.nodes {
        notes.push(format!(
            "The recording is of {nodes} nodes, and only the first {} are shown.",
            shape.nodes
        ));
    }
    let missing = |has: &dyn Fn(u16) -> bool| -> Vec<usize> {
        (0..shape.nodes).filter(|&node| !u16::try_from(node).is_ok_and(has)).collect()
    };
    let started = |node: u16| recording.started.iter().any(|(other, _)| *other == node);
    let ended = |node: u16| recording.ended.iter().any(|(other, _)| *other == node);
    let silent = missing(&started);
    if !silent.is_empty() {
        notes.push(format!("Nothing was recorded of {}.", list(&silent)));
    }
    let unfinished = missing(&|node| ended(node) || !started(node));
    if !unfinished.is_empty() {
        notes.push(format!(
            "The recording has no end of {}: what happened there last may be missing.",
            list(&unfinished)
        ));
    }
    let lost = recording.ended.iter().fold(0_u64, |sum, (_, end)| sum.saturating_add(end.lost));
    if lost > 0 {
        notes.push(format!("{lost} transactions were too many to be kept and are not counted."));
    }
    notes.extend(omitted(recording));
    if recording.unknown > 0 {
        notes.push(format!(
            "The recording has {} records that this version does not know: a later one has made it.",
            recording.unknown
        ));
    }
    if codes.asked() && !codes.have_lines() {
        notes.push("No lines of the source are known: compile with -g to see them.".to_owned());
    }
    notes
}

/// Records that the nodes have omitted.
fn omitted(recording: &Recording) -> Vec<String> {
    // The last record of a node counts.
    let last: BTreeMap<u16, Omitted> = recording.omitted.iter().copied().collect();
    let sum = |of: fn(&Omitted) -> u64| last.values().map(of).fold(0_u64, u64::saturating_add);
    let kinds = [
        (sum(|omitted| omitted.objects), "blocks of memory", "they count as parts of the heap"),
        (sum(|omitted| omitted.sites), "places of allocation", "their blocks are of unknown origin"),
        (sum(|omitted| omitted.diffs), "diffs", "what they wrote is not known"),
        (sum(|omitted| omitted.references), "pointers", "what they point to is not called by them"),
    ];
    let missing = kinds.into_iter().filter(|(count, _, _)| *count > 0);
    missing.map(|(count, what, so)| format!("{count} {what} are not in the recording: {so}.")).collect()
}

/// `node 1`, `nodes 1, 2 and 5`.
fn list(nodes: &[usize]) -> String {
    let texts: Vec<String> = nodes.iter().map(usize::to_string).collect();
    match texts.split_last() {
        Some((last, [])) => format!("node {last}"),
        Some((last, rest)) => format!("nodes {} and {last}", rest.join(", ")),
        None => "no node".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoNames;
    use gondwana_recording::{Cut, End, RunRecord, Started};

    #[test]
    fn what_is_missing_is_said() {
        let recording = Recording {
            run: RunRecord { nodes: 3, ..RunRecord::default() },
            started: vec![(0, Started::default()), (1, Started::default())],
            ended: vec![(0, End { lost: 7, ..End::default() })],
            omitted: vec![
                (0, Omitted { objects: 1, ..Omitted::default() }),
                (0, Omitted { objects: 5, ..Omitted::default() }),
                (1, Omitted { objects: 2, ..Omitted::default() }),
            ],
            unknown: 2,
            cut: Some(Cut::Short(99)),
            ..Recording::default()
        };
        let mut codes = Codes::new(&NoNames);
        codes.place(5);
        assert_eq!(
            recording_notes(&recording, &Shape::of(&recording), &codes),
            [
                "The recording is cut: the file ends within a chunk at byte 99, as if the run had been killed. What \
                 follows is about what is before that.",
                "Nothing was recorded of node 2.",
                "The recording has no end of node 1: what happened there last may be missing.",
                "7 transactions were too many to be kept and are not counted.",
                "7 blocks of memory are not in the recording: they count as parts of the heap.",
                "The recording has 2 records that this version does not know: a later one has made it.",
                "No lines of the source are known: compile with -g to see them.",
            ]
        );
        assert_eq!(list(&[1, 2, 5]), "nodes 1, 2 and 5");
    }
}
