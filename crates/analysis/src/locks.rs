//! Locks that passed between nodes.

use crate::LockHandOffs;
use gondwana_monitor::Kind;
use gondwana_recording::Recording;
use std::collections::BTreeMap;

/// The locks, hottest first, without names.
pub(crate) fn locks(recording: &Recording, nodes: usize) -> Vec<LockHandOffs> {
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (node, interval) in recording.intervals.iter().filter(|(node, _)| usize::from(*node) < nodes) {
        for row in interval.rows.iter().filter(|row| row.kind == Kind::LockHandOff) {
            let to = &mut found.entry(row.address).or_insert_with(|| vec![0; nodes])[usize::from(*node)];
            *to = to.saturating_add(u64::from(row.count));
        }
    }
    let mut locks: Vec<LockHandOffs> = found
        .into_iter()
        .map(|(address, hand_offs)| LockHandOffs { name: String::new(), address, hand_offs })
        .collect();
    let sum = |lock: &LockHandOffs| lock.hand_offs.iter().fold(0_u64, |sum, &more| sum.saturating_add(more));
    locks.sort_by_key(|lock| (std::cmp::Reverse(sum(lock)), lock.address));
    locks
}
