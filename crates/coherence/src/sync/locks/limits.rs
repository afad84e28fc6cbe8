//! What tests may choose and compare of the machine of lock tokens.

use super::hot::HotMutexes;
use super::{Locks, ManagerOf, staying};
use crate::slices::{SliceRules, Slices};
use crate::sync::LockTable;
use gondwana_topology::NodeId;
use std::sync::Arc;
use std::time::Duration;

/// What tests may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sync) struct Limits {
    pub local_handovers: u32,
    pub kept_uses: u32,
    /// Any token that comes back is kept for a slice, which ends with [`Locks::let_go`].
    pub slices: bool,
    /// As [`COMMON_AFTER`](super::common::COMMON_AFTER).
    pub common_after: u32,
}

impl Locks {
    /// A machine with other limits, so that small tests reach them.
    pub(in crate::sync) fn with_limits(
        me: NodeId,
        manager: ManagerOf,
        Limits { local_handovers, kept_uses, slices, common_after }: Limits,
    ) -> Self {
        let table = Arc::new(LockTable::with_first_bits(1));
        let shortest = if slices { staying::SLICES.longest } else { Duration::ZERO };
        let slices = Slices::new(SliceRules { shortest, least: 1, remembered: 4, ..staying::SLICES });
        Self {
            local_handovers,
            kept_uses,
            common_after,
            hot: HotMutexes::new(1),
            slices,
            ..Self::new(me, 2, table, manager)
        }
    }

    pub(in crate::sync) fn table(&self) -> &LockTable {
        &self.table
    }

    /// An independent machine in the same state.
    pub(in crate::sync) fn duplicate(&self) -> Self {
        let Self { local_handovers, kept_uses, common_after, .. } = *self;
        let limits = Limits { local_handovers, kept_uses, slices: false, common_after };
        let mut copy = Self::with_limits(self.me, Arc::clone(&self.manager), limits);
        for (object, entry) in self.table.contents() {
            copy.table.entry(object).copy_from(entry);
        }
        copy.queues.clone_from(&self.queues);
        copy.lines.clone_from(&self.lines);
        copy.hot.clone_from(&self.hot);
        copy.walks.clone_from(&self.walks);
        copy.slices.clone_from(&self.slices);
        copy.kept.clone_from(&self.kept);
        copy.newly_kept = self.newly_kept;
        copy.attempts = self.attempts;
        copy.counters = self.counters;
        copy
    }

    /// All that decides how the machine goes on.
    pub(in crate::sync) fn essence(&self) -> impl Eq + std::hash::Hash + std::fmt::Debug {
        // Where they do not count, they must not make states differ for ever.
        let counted = if self.common_after == u32::MAX { 0 } else { self.common_after };
        let words: Vec<_> = self
            .table
            .contents()
            .into_iter()
            .map(|(object, entry)| (object, entry.parts(), entry.departures().min(counted)))
            .collect();
        let staying = (self.hot.clone(), self.walks.clone(), self.slices.clone(), &self.kept);
        (words, self.queues.contents(), self.lines.contents(), self.attempts, staying)
    }

    /// True if a token stays for uses of this node.
    pub(in crate::sync) fn is_keeping(&self) -> bool {
        !self.kept.is_empty()
    }

    /// True if nobody waits for anything.
    pub(in crate::sync) fn is_quiet(&self) -> bool {
        self.queues.is_empty()
    }
}
