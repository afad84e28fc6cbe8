//! Detects whether the kernel has killed a process for lack of memory.

use crate::{cgroup, shortage};
use gondwana_topology::Bytes;
use std::path::Path;

/// The memory that was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfMemory {
    /// That of a control group of this process, with the limit if known.
    Group(Option<Bytes>),
    /// The whole computer's.
    Computer,
}

/// The kernel's counters before processes were started.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    in_groups: Option<u64>,
    in_all: Option<u64>,
}

impl Ended {
    /// Begins to watch.
    #[must_use]
    pub fn watch() -> Self {
        Self { in_groups: cgroup::times_killed(Path::new("/")), in_all: shortage::ended() }
    }

    /// Which memory was used up when the kernel killed a process since, if it has killed any. It may have been an
    /// unrelated process.
    #[must_use]
    pub fn found(&self) -> Option<OutOfMemory> {
        let now = Self::watch();
        let limit = || cgroup::limits(Path::new("/")).memory;
        self.differs(now, limit)
    }

    fn differs(&self, now: Self, limit: impl FnOnce() -> Option<Bytes>) -> Option<OutOfMemory> {
        if now.in_groups > self.in_groups {
            Some(OutOfMemory::Group(limit()))
        } else if now.in_all > self.in_all {
            Some(OutOfMemory::Computer)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_tells_whose_memory_it_was() {
        let counts = |in_groups, in_all| Ended { in_groups, in_all };
        let found = |before: Ended, now| before.differs(now, || Some(Bytes(64)));
        assert_eq!(found(counts(Some(2), Some(5)), counts(Some(2), Some(5))), None);
        // The kernel counts both kinds together as well.
        let group = Some(OutOfMemory::Group(Some(Bytes(64))));
        assert_eq!(found(counts(Some(2), Some(5)), counts(Some(3), Some(6))), group);
        assert_eq!(found(counts(Some(2), Some(5)), counts(Some(2), Some(6))), Some(OutOfMemory::Computer));
        assert_eq!(found(counts(None, Some(5)), counts(None, Some(6))), Some(OutOfMemory::Computer));
        assert_eq!(found(counts(None, None), counts(None, None)), None);
    }
}
