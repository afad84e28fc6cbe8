//! Controls the load address of a library.
//!
//! The loader asks the kernel for free addresses, and the kernel gives the highest sufficient gap. So all gaps above
//! the wanted address are occupied during the load.

use crate::map::kernel;
use libc::c_void;
use std::fs;
use std::ops::Range;

/// The end of the addresses that a program can have.
const LAST: usize = 0x7fff_ffff_f000;

/// Bytes that the loader allocates at most for one library, less than what the C library has a mapping of its own for.
const LOADERS: usize = 100 << 10;

/// So many blocks of that size are for what else is allocated meanwhile.
const OTHERS: usize = 4;

/// How often gaps are looked for at most.
const MOST_PASSES: usize = 100;

/// The parts of some addresses where nothing is mapped.
pub(super) fn free_in(place: &Range<usize>) -> Vec<Range<usize>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let inside = |gap: Range<usize>| gap.start..gap.end.min(place.end);
    gaps(&maps, place.start).into_iter().map(inside).filter(|gap| gap.start < gap.end).collect()
}

/// Free addresses that are taken while this value lives.
pub(super) struct Filler {
    gaps: Vec<Range<usize>>,
    /// The end of the heap, so that what is free before it is not given back to the system.
    _last: Option<Vec<u8>>,
}

impl Filler {
    /// Takes the gaps of at least `bytes` above `from`, for the loading of so many libraries; `None` if the kernel refuses.
    pub(super) fn above(from: usize, bytes: usize, libraries: usize) -> Option<Self> {
        // What the loader allocates is to find room in the heap, which cannot grow meanwhile, and not in the place for a library:
        // there it would be taken for shared memory.
        let block = |_| std::hint::black_box(Vec::with_capacity(LOADERS));
        let mut room: Vec<Vec<u8>> = (0..libraries + OTHERS).map(block).collect();
        let mut filler = Self { gaps: vec![], _last: room.pop() };
        drop(room);
        // Other threads may map and unmap something meanwhile.
        (0..MOST_PASSES).map_while(|_| filler.fill(from, bytes)).any(|found| !found).then_some(filler)
    }

    /// Takes the gaps that are there now. False if there were none; `None` if the kernel refuses.
    fn fill(&mut self, from: usize, bytes: usize) -> Option<bool> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let mut found = false;
        for gap in gaps(&maps, from) {
            if gap.len() >= bytes {
                found = true;
                // SAFETY: the kernel does not touch what is mapped there already.
                let address = unsafe {
                    kernel::mmap(
                        gap.start as *mut c_void,
                        gap.len(),
                        libc::PROT_NONE,
                        libc::MAP_PRIVATE
                            | libc::MAP_ANONYMOUS
                            | libc::MAP_NORESERVE
                            | libc::MAP_FIXED_NOREPLACE,
                        -1,
                        0,
                    )
                };
                if address as usize == gap.start {
                    self.gaps.push(gap);
                } else if address == libc::MAP_FAILED && crate::errno::get() != libc::EEXIST {
                    return None;
                }
            }
        }
        Some(found)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        for gap in &self.gaps {
            // SAFETY: nobody uses what this value has mapped.
            unsafe { kernel::munmap(gap.start as *mut c_void, gap.len()) };
        }
    }
}

/// The gaps between mappings from an address on, without the one below the initial stack, which the kernel does not
/// use.
fn gaps(maps: &str, from: usize) -> Vec<Range<usize>> {
    let mut at = from;
    let mut gaps = vec![];
    for line in maps.lines() {
        let Some((start, end)) = line.split_once(' ').and_then(|(range, _)| range.split_once('-')) else {
            continue;
        };
        let number = |text| usize::from_str_radix(text, 16).unwrap_or(LAST);
        let (start, end) = (number(start), number(end));
        if start > at && !line.ends_with("[stack]") {
            gaps.push(at..start.min(LAST));
        }
        at = at.max(end);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_between() {
        let maps = "1000-3000 r--p 0 0 0 /bin/x\n5000-6000 rw-p 0 0 0\n6000-7000 rw-p 0 0 0\n\
                    9000-a000 rw-p 0 0 0 [stack]\nffffffffff600000-ffffffffff601000 --xp 0 0 0 [vsyscall]\n";
        assert_eq!(gaps(maps, 0x2000), [0x3000..0x5000, 0xa000..LAST]);
        assert_eq!(gaps(maps, 0x4000), [0x4000..0x5000, 0xa000..LAST]);
        assert_eq!(gaps(maps, 0x8000), gaps(maps, 0x6000));
        assert_eq!(gaps(maps, 0x6000).first(), Some(&(0xa000..LAST)));
    }
}
