//! What one processor did.

use crate::Time;
use serde::{Deserialize, Serialize};

/// Why a line was not in the processor's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The processor never had it.
    Cold,
    /// It had to make room for others: the cache is too small, or lines that are used together fall into one set.
    Replaced,
    /// Another processor wrote the word that is accessed.
    TrueSharing,
    /// Another processor wrote other words of the line.
    FalseSharing,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// Memory of the processor's node.
    LocalMemory,
    /// A cache of the processor's node.
    LocalCache,
    /// Memory of the line's home, another node.
    RemoteMemory,
    /// A cache of another node, its far memory cache included, where requester, home and owner are two nodes.
    RemoteCache,
    /// A cache of a third node: requester, home and owner are three.
    ThreeHop,
    /// The far memory cache of the processor's node.
    FarCache,
}

/// Counts of one processor, or sums of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Loads.
    pub reads: u64,
    /// Stores; an atomic read-modify-write is one.
    pub writes: u64,
    /// Accesses to memory that the machine does not have: data of libraries, files mapped by the program.
    pub outside: u64,
    /// Accesses whose page was not in the translation buffer: never before, and no longer.
    pub tlb_misses: [u64; 2],
    /// Picoseconds for which the processor waited for the translation.
    pub tlb_stalled: Time,
    /// Accesses that missed the first cache.
    pub l1_misses: u64,
    /// Accesses that missed the second cache as well, by cause in the order of [`Cause`].
    pub l2_misses: [u64; 4],
    /// The same misses by supply in the order of [`Supply`].
    pub supplied: [u64; 6],
    /// Picoseconds for which the processor waited for them, by supply.
    pub stalled: [Time; 6],
    /// Writes to lines that the processor had, but could not write.
    pub upgrades: u64,
    /// Of these, those for which other nodes had to be asked.
    pub remote_upgrades: u64,
    /// Picoseconds for which the processor waited for them.
    pub upgrade_stalled: Time,
    /// Misses of the second cache to other nodes' memory for which the node's far memory cache did not do: it did not
    /// have the line, or had it while the node was not allowed to write it. Its hits are in `supplied`.
    pub far_misses: [u64; 2],
    /// Blocks for which the far memory cache had no room any more when the processor got another one: as the home has
    /// them, and written back to the home.
    pub far_evicted: [u64; 2],
    /// Lines written back to the memory of the node, of another node, and to the far memory cache.
    pub written_back: [u64; 3],
    /// Lines that the processor lost because another one wrote.
    pub invalidated: u64,
    /// Picoseconds for which the operating system had the processor: its daemon ran there, or worked on a page that the
    /// processor wanted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub system_stalled: Time,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(time: &Time) -> bool {
    *time == 0
}

impl Counters {
    /// Accesses that hit the first cache.
    #[must_use]
    pub fn l1_hits(&self) -> u64 {
        (self.reads + self.writes).saturating_sub(self.outside + self.l1_misses)
    }

    /// Accesses that missed the first cache, and for which the second one had what they take.
    #[must_use]
    pub fn l2_hits(&self) -> u64 {
        self.l1_misses.saturating_sub(self.misses() + self.upgrades)
    }

    /// Picoseconds for which processors waited for lines, the right to write them, translations, and the operating system.
    #[must_use]
    pub fn waited(&self) -> Time {
        self.stalled.iter().sum::<Time>() + self.upgrade_stalled + self.tlb_stalled + self.system_stalled
    }

    /// Misses of the second cache.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.l2_misses.iter().sum()
    }

    /// Those that were supplied in the node, as a share of all; 1 if there were none.
    #[must_use]
    pub fn locality(&self) -> f64 {
        let local = [Supply::LocalMemory, Supply::LocalCache, Supply::FarCache];
        let local: u64 = local.iter().map(|supply| self.supplied[*supply as usize]).sum();
        if self.misses() == 0 { 1.0 } else { local as f64 / self.misses() as f64 }
    }

    /// Adds another processor's.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.outside += other.outside;
        self.tlb_stalled += other.tlb_stalled;
        self.l1_misses += other.l1_misses;
        self.upgrades += other.upgrades;
        self.remote_upgrades += other.remote_upgrades;
        self.upgrade_stalled += other.upgrade_stalled;
        self.invalidated += other.invalidated;
        self.system_stalled += other.system_stalled;
        let pairs = [
            (&mut self.tlb_misses[..], &other.tlb_misses[..]),
            (&mut self.l2_misses[..], &other.l2_misses[..]),
            (&mut self.supplied[..], &other.supplied[..]),
            (&mut self.stalled[..], &other.stalled[..]),
            (&mut self.far_misses[..], &other.far_misses[..]),
            (&mut self.far_evicted[..], &other.far_evicted[..]),
            (&mut self.written_back[..], &other.written_back[..]),
        ];
        for (sums, terms) in pairs {
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += term;
            }
        }
    }
}
