//! A slab: 64 KiB of blocks of one size class, and the record of which are free.

use super::class::Class;
use super::layout::SLAB_BYTES;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Numbers a [`Cache`](super::Cache) and its inbox.
pub(super) type CacheId = u32;

/// The blocks of a slab that are free.
///
/// Only the cache that owns the slab hands out blocks, and only it writes the fields marked as its own; they are
/// atomic because other threads read them, and need no read-modify-write. Other threads return blocks through
/// `returned`. Ownership passes under the lock of the former owner's inbox, which orders the plain stores.
#[derive(Debug)]
pub(super) struct Slab {
    base: usize,
    class: Class,
    size: u32,
    /// `2^32 / size`, rounded up: multiplying by it divides offsets in a slab exactly.
    reciprocal: u64,
    capacity: u16,
    owner: AtomicU32,
    /// Where the owner's bin lists the slab. The owner's own.
    listing: AtomicU32,
    /// How many bits `free` has. The owner's own.
    free_count: AtomicU16,
    /// Blocks from this one on were never handed out. The owner's own.
    untouched: AtomicU16,
    /// One bit for each word of `free` that is not zero. The owner's own.
    summary: AtomicU64,
    /// One bit for each block that is free to the owner's knowledge. The owner's own.
    free: Box<[AtomicU64]>,
    /// Blocks that other threads returned and the owner has not collected.
    returned: Box<[AtomicU64]>,
    /// True while the slab is in an inbox, or about to be, because of `returned`.
    announced: AtomicBool,
}

/// A block just taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub address: usize,
    /// The block was never handed out before.
    pub fresh: bool,
}

/// The state of a block that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// It was live and is free now.
    Freed,
    /// As [`Returned::Freed`], and the owner must be notified.
    Announce,
    /// It was free already.
    NotLive,
}

impl Slab {
    /// A slab at `base` with all blocks free; `fresh` if none of its memory was ever allocated.
    pub(super) fn new(base: usize, class: Class, owner: CacheId, fresh: bool) -> Self {
        let capacity = SLAB_BYTES / class.size();
        let words = capacity.div_ceil(64);
        let full = |word: usize| u64::MAX >> (64 - (capacity - word * 64).min(64));
        let capacity = u16::try_from(capacity).expect("a slab has less than 65536 blocks");
        Self {
            base,
            class,
            size: u32::try_from(class.size()).expect("up to MAX_SMALL"),
            reciprocal: (1u64 << 32).div_ceil(class.size() as u64),
            capacity,
            owner: AtomicU32::new(owner),
            listing: AtomicU32::new(0),
            free_count: AtomicU16::new(capacity),
            untouched: AtomicU16::new(if fresh { 0 } else { capacity }),
            summary: AtomicU64::new(u64::MAX >> (64 - words)),
            free: (0..words).map(|word| AtomicU64::new(full(word))).collect(),
            returned: (0..words).map(|_| AtomicU64::new(0)).collect(),
            announced: AtomicBool::new(false),
        }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    pub(super) fn owner(&self) -> CacheId {
        self.owner.load(Ordering::Acquire)
    }

    /// To be called under the lock of the present owner's inbox.
    pub(super) fn set_owner(&self, owner: CacheId) {
        self.owner.store(owner, Ordering::Release);
    }

    pub(super) fn listing(&self) -> u32 {
        self.listing.load(Ordering::Relaxed)
    }

    pub(super) fn set_listing(&self, listing: u32) {
        self.listing.store(listing, Ordering::Relaxed);
    }

    /// How many blocks the owner can take.
    pub(super) fn free_count(&self) -> u16 {
        self.free_count.load(Ordering::Relaxed)
    }

    /// True if no block is live, as far as the owner knows.
    pub(super) fn is_empty(&self) -> bool {
        self.free_count() == self.capacity
    }

    /// True if a single block is live, as far as the owner knows.
    pub(super) fn is_last(&self) -> bool {
        self.free_count() + 1 == self.capacity
    }

    /// The number of the block that begins at an address of this slab.
    #[inline]
    pub(super) fn block_at(&self, address: usize) -> Option<u16> {
        let offset = (address - self.base) as u64;
        let block = u16::try_from((offset * self.reciprocal) >> 32).ok()?;
        (u64::from(block) * u64::from(self.size) == offset && block < self.capacity).then_some(block)
    }

    /// Takes the free block with the lowest address, so that live blocks keep to few pages. The owner only.
    #[inline]
    pub(super) fn take(&self) -> Option<Taken> {
        let summary = self.summary.load(Ordering::Relaxed);
        if summary == 0 {
            return None;
        }
        let number = summary.trailing_zeros();
        let index = number as usize;
        let word = self.free[index].load(Ordering::Relaxed);
        let rest = word & (word - 1);
        self.free[index].store(rest, Ordering::Relaxed);
        if rest == 0 {
            self.summary.store(summary & (summary - 1), Ordering::Relaxed);
        }
        self.free_count.store(self.free_count() - 1, Ordering::Relaxed);
        let block = u16::try_from(number * 64 + word.trailing_zeros()).expect("a bit of 64 words at most");
        let fresh = block >= self.untouched.load(Ordering::Relaxed);
        if fresh {
            self.untouched.store(block + 1, Ordering::Relaxed);
        }
        Some(Taken { address: self.base + usize::from(block) * self.size as usize, fresh })
    }

    /// Returns a block; false if it was not live. The owner only.
    #[inline]
    pub(super) fn put(&self, block: u16) -> bool {
        let (index, bit) = position(block);
        let word = self.free[index].load(Ordering::Relaxed);
        if (word | self.returned[index].load(Ordering::Relaxed)) & bit != 0 {
            return false;
        }
        self.free[index].store(word | bit, Ordering::Relaxed);
        self.summary.store(self.summary.load(Ordering::Relaxed) | 1 << index, Ordering::Relaxed);
        self.free_count.store(self.free_count() + 1, Ordering::Relaxed);
        true
    }

    /// Returns a block from a thread that does not own the slab.
    pub(super) fn put_from_outside(&self, block: u16) -> Returned {
        let (index, bit) = position(block);
        if self.free[index].load(Ordering::Relaxed) & bit != 0
            || self.returned[index].fetch_or(bit, Ordering::AcqRel) & bit != 0
        {
            return Returned::NotLive;
        }
        if self.announced.swap(true, Ordering::AcqRel) { Returned::Freed } else { Returned::Announce }
    }

    /// True if the block is in use.
    pub(super) fn is_live(&self, block: u16) -> bool {
        let (index, bit) = position(block);
        // In this order, because collecting moves bits from `returned` to `free`.
        let returned = self.returned[index].load(Ordering::Acquire);
        (returned | self.free[index].load(Ordering::Relaxed)) & bit == 0
    }

    /// Makes blocks that other threads returned available; true if there were any. The owner only.
    pub(super) fn collect(&self) -> bool {
        // First: a block returned after its word was read announces the slab again.
        self.announced.swap(false, Ordering::AcqRel);
        let mut collected = 0;
        let mut summary = self.summary.load(Ordering::Relaxed);
        for (index, returned) in self.returned.iter().enumerate() {
            let seen = returned.load(Ordering::Acquire);
            if seen == 0 {
                continue;
            }
            // A block is in both if two threads freed it at once; it counts once.
            let free = self.free[index].load(Ordering::Relaxed);
            let new = seen & !free;
            self.free[index].store(free | seen, Ordering::Relaxed);
            returned.fetch_and(!seen, Ordering::AcqRel);
            collected += u16::try_from(new.count_ones()).expect("up to 64");
            summary |= u64::from(new != 0) << index;
        }
        self.summary.store(summary, Ordering::Relaxed);
        self.free_count.store(self.free_count() + collected, Ordering::Relaxed);
        collected > 0
    }
}

/// The word and the bit of a block.
fn position(block: u16) -> (usize, u64) {
    (usize::from(block / 64), 1 << (block % 64))
}

#[cfg(test)]
mod tests {
    use super::super::class::CLASSES;
    use super::*;

    #[test]
    fn every_class_fills_a_slab_and_finds_its_blocks() {
        for class in (0..CLASSES).filter_map(Class::from_index) {
            let slab = Slab::new(7 * SLAB_BYTES, class, 1, true);
            let mut next = 7 * SLAB_BYTES;
            while let Some(taken) = slab.take() {
                assert_eq!(taken, Taken { address: next, fresh: true });
                assert_eq!(
                    slab.block_at(next).map(usize::from),
                    Some((next - 7 * SLAB_BYTES) / class.size())
                );
                assert_eq!(slab.block_at(next + 1), None);
                assert_eq!(slab.block_at(next + class.size() - 1), None);
                next += class.size();
            }
            assert!(8 * SLAB_BYTES - next < class.size(), "no room is left over");
            assert_eq!(slab.block_at(next).filter(|_| next < 8 * SLAB_BYTES), None);
        }
    }

    #[test]
    fn blocks_return_by_both_ways_and_only_once() {
        let slab = Slab::new(SLAB_BYTES, Class::fitting(4096, 1).unwrap(), 1, true);
        for _ in 0..16 {
            slab.take().unwrap();
        }
        assert_eq!(slab.take(), None);
        assert!(slab.put(3) && !slab.put(3));
        assert_eq!(slab.put_from_outside(3), Returned::NotLive);
        assert_eq!(slab.put_from_outside(5), Returned::Announce);
        assert_eq!(slab.put_from_outside(6), Returned::Freed);
        assert_eq!(slab.put_from_outside(6), Returned::NotLive);
        assert!(!slab.put(6) && !slab.is_live(6) && slab.is_live(7));
        assert!(slab.collect() && !slab.collect());
        assert_eq!(slab.free_count(), 3);
        assert_eq!(slab.put_from_outside(7), Returned::Announce, "collecting asks for a new announcement");
        assert_eq!(slab.take(), Some(Taken { address: SLAB_BYTES + 3 * 4096, fresh: false }));
    }
}
