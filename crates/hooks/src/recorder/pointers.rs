//! Pointers to blocks in the program's variables, by which reports name the blocks.

use super::blocks::Blocks;
use crate::heap::REGION;
use gondwana_elf::data_segments;
use gondwana_page::PAGE_SIZE;
use gondwana_recording::Reference;
use std::collections::HashMap;
use std::ops::Range;

/// The most pointers that are recorded.
const MOST: usize = 64 * 1024;

/// The smallest blocks whose pointers are recorded, in bytes.
const LEAST_BYTES: u64 = 64;

/// What was found so far.
pub(super) struct Pointers {
    /// Where variables are that may change.
    variables: Vec<Range<usize>>,
    /// By the address of the variable.
    found: HashMap<u64, u64>,
    omitted: u64,
    /// When to look again, in nanoseconds.
    due: u64,
}

impl Pointers {
    /// None yet, in the variables of the executable, which is at these addresses.
    pub(super) fn new(image: &Range<usize>) -> Self {
        let own = Self::new as *const () as usize;
        let ranges = data_segments(own)
            .into_iter()
            .map(|data| data.base..data.base + data.pages as usize * PAGE_SIZE)
            .filter(|range| image.contains(&range.start));
        Self { variables: ranges.collect(), found: HashMap::new(), omitted: 0, due: 0 }
    }

    /// True if the run has become twice as long since the last time that this was true: a program may clear its pointers
    /// before it ends.
    pub(super) fn are_due(&mut self, now: u64) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now.saturating_mul(2);
        }
        is_due
    }

    /// The pointers that are new or have changed.
    pub(super) fn look(&mut self, blocks: &Blocks) -> Vec<Reference> {
        let mut new = vec![];
        for at in self.variables.iter().cloned().flat_map(|range| range.step_by(size_of::<usize>())) {
            // SAFETY: the loader has mapped the variables, and one host thread at a time runs.
            let value = unsafe { (at as *const usize).read_volatile() };
            if !REGION.contains(&value) {
                continue;
            }
            let (address, value) = (at as u64, value as u64);
            let is_long = blocks.bytes_at(value).is_some_and(|bytes| bytes >= LEAST_BYTES);
            if !is_long || self.found.get(&address) == Some(&value) {
                continue;
            }
            if self.found.len() >= MOST && !self.found.contains_key(&address) {
                self.omitted += 1;
                continue;
            }
            self.found.insert(address, value);
            new.push(Reference { address, value });
        }
        new
    }

    /// How many pointers the recording leaves out.
    pub(super) fn omitted(&self) -> u64 {
        self.omitted
    }
}
