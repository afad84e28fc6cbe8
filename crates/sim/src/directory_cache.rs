//! The directory cache of a node's controller: entries of the directory that the home finds at once. Those of other blocks of its
//! memory are in memory, and a request waits until they have been read.

use crate::cache::Cache;
use crate::description::{Wrong, require, time};
use crate::lines::Place;
use crate::machine::Machine;
use crate::{NANOSECOND, Time};
use gondwana_coherence::directory::{Node, State};
use serde::{Deserialize, Serialize};

/// The directory cache of each node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryCachePart {
    /// Entries that it has; 0 is as good as no directory cache: all entries are found at once.
    pub entries: u64,
    /// Entries in a set (associativity).
    pub ways: u64,
    /// What a miss adds to `controller.home`, in nanoseconds.
    pub miss: u64,
}

/// How often homes looked entries up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryLookups {
    /// Those that the directory cache had.
    pub hits: u64,
    /// Those that had to be read from memory.
    pub misses: u64,
}

/// One node's.
#[derive(Clone, Debug)]
pub(crate) struct DirectoryCache {
    /// The blocks whose entries it has.
    tags: Cache,
    miss: Time,
    pub lookups: DirectoryLookups,
}

impl DirectoryCachePart {
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        require(self.entries <= 1 << 24, &["directory_cache", "entries"], || {
            format!("{} entries: a directory cache has at most {}", self.entries, 1 << 24)
        })?;
        require((1..=64).contains(&self.ways), &["directory_cache", "ways"], || {
            format!("{} ways: a set has 1 to 64 entries", self.ways)
        })?;
        let sets = self.entries / self.ways;
        let fits = sets.is_power_of_two() && sets * self.ways == self.entries;
        require(self.entries == 0 || fits, &["directory_cache", "entries"], || {
            format!(
                "{} entries in sets of {}: the number of sets must be a power of two",
                self.entries, self.ways
            )
        })?;
        time(self.miss, &["directory_cache", "miss"])
    }
}

impl DirectoryCache {
    /// An empty one; none if the part has no entries.
    pub(crate) fn new(part: &DirectoryCachePart) -> Option<Self> {
        (part.entries > 0).then(|| Self {
            tags: Cache::new(part.entries, 1, part.ways),
            miss: part.miss * NANOSECOND,
            lookups: DirectoryLookups::default(),
        })
    }
}

impl Machine {
    /// The home looks the entry of a line's block up, which its directory cache has afterwards. Returns what that adds to its
    /// time. An entry that has to make room goes to memory, for which nobody waits.
    pub(crate) fn look_up_entry(&mut self, home: Node, line: u64, place: Place) -> Time {
        let (block, colour) = self.block_of(line, place);
        let Some(cache) = &mut self.nodes[usize::from(home)].directory else { return 0 };
        if cache.tags.touch(block, colour) != State::Invalid {
            cache.lookups.hits += 1;
            return 0;
        }
        cache.tags.add(block, colour, State::Shared);
        cache.lookups.misses += 1;
        cache.miss
    }
}
