//! Which pages of private memory the kernel has given frames to.

use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// An entry of `/proc/self/pagemap` whose page is in memory (bit 63) or in the swap area (bit 62).
const HAS_FRAME: u64 = 3 << 62;

/// Entries that one system call reads: 1 GiB of memory takes 64 calls.
const ENTRIES: u32 = 4096;

/// The runs among `count` pages from `address` on that have been touched, in ascending order, counted from 0. All others
/// of an anonymous mapping read as zero.
///
/// # Errors
/// If `/proc/self/pagemap` cannot be read.
pub(crate) fn pages(address: usize, count: u32) -> Result<Vec<Range<u32>>, MemoryError> {
    let mut runs: Vec<Range<u32>> = vec![];
    if count == 0 {
        return Ok(runs);
    }
    let failed = |source| MemoryError::System { what: "reading /proc/self/pagemap", source };
    let map = File::open("/proc/self/pagemap").map_err(failed)?;
    let mut entries = [0; ENTRIES as usize * size_of::<u64>()];
    let mut done = 0;
    while done < count {
        let some = ENTRIES.min(count - done);
        let entries = &mut entries[..some as usize * size_of::<u64>()];
        let first = address / PAGE_SIZE + done as usize;
        map.read_exact_at(entries, (first * size_of::<u64>()) as u64).map_err(failed)?;
        let (entries, _) = entries.as_chunks();
        for (page, entry) in (done..).zip(entries) {
            if u64::from_ne_bytes(*entry) & HAS_FRAME == 0 {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        done += some;
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::map_private;

    #[test]
    fn pages_that_were_touched_are_found_across_the_pieces_that_are_read() {
        let count = ENTRIES + 10;
        let base = map_private(count as usize * PAGE_SIZE).unwrap();
        // Otherwise one access may allocate a whole huge page. SAFETY: the mapping is this test's own.
        unsafe { libc::madvise(base.cast(), count as usize * PAGE_SIZE, libc::MADV_NOHUGEPAGE) };
        assert_eq!(pages(base as usize, count).unwrap(), []);
        for page in [1, 2, ENTRIES - 1, ENTRIES, count - 1] {
            // SAFETY: inside the mapping, which nobody else uses.
            unsafe { base.add(page as usize * PAGE_SIZE).write(1) };
        }
        let (edge, end) = (ENTRIES, count);
        assert_eq!(pages(base as usize, count).unwrap(), [1..3, edge - 1..edge + 1, end - 1..end]);
        assert_eq!(pages(base as usize, 0).unwrap(), []);
    }
}
