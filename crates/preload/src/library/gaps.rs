//! Controls the load address of a library.
//!
//! The loader asks the kernel for free addresses, and the kernel gives the highest sufficient gap. So all gaps above
//! the wanted address are occupied during the load.

use crate::map::kernel;
use crate::ranges::{between, joined};
use gondwana_locks::lock;
use gondwana_page::PAGE_SIZE;
use libc::c_void;
use std::fs;
use std::ops::{Range, RangeInclusive};
use std::sync::Mutex;

/// The end of the addresses that a program can have.
const LAST: usize = 0x7fff_ffff_f000;

/// Bytes that the loader allocates at most for one library, less than what the C library has a mapping of its own for.
const LOADERS: usize = 100 << 10;

/// So many blocks of that size are for what else is allocated meanwhile.
const OTHERS: usize = 4;

/// The bytes of a huge page.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// How many pieces of memory are asked for at most: where hardly any are expected, and in any case.
const FEW_PIECES: usize = 8;
const MOST_PIECES: usize = 10_000;

/// The gaps that were taken the last time: mostly they are there again.
static KNOWN: Mutex<Vec<Range<usize>>> = Mutex::new(vec![]);

/// The parts of some addresses where nothing is mapped. At least these pages are `taken`, in no order; if only they are, the parts are mapped without access
/// afterwards, and no look at the list of all mappings is needed.
pub(super) fn free_in(place: &Range<usize>, mut taken: Vec<Range<usize>>) -> Vec<Range<usize>> {
    taken.sort_unstable_by_key(|pages| pages.start);
    let rest: Vec<_> = between(place.clone(), &taken).collect();
    if rest.iter().all(take) {
        return rest;
    }
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
    /// Takes all gaps of at least `bytes` above `from`, and most smaller ones, for the loading of so many libraries; `None` if the kernel refuses.
    pub(super) fn above(from: usize, bytes: usize, libraries: usize) -> Option<Self> {
        // What the loader allocates is to find room in the heap, which cannot grow meanwhile, and not in the place for a library:
        // there it would be taken for shared memory.
        let block = |_| std::hint::black_box(Vec::with_capacity(LOADERS));
        let mut room: Vec<Vec<u8>> = (0..libraries + OTHERS).map(block).collect();
        let mut filler = Self { gaps: vec![], _last: room.pop() };
        drop(room);
        // The kernel prefers a place for huge pages, be it lower, for what is as long as one.
        let least = bytes.next_multiple_of(PAGE_SIZE).min(HUGE_PAGE / 2);
        let known = std::mem::take(&mut *lock(&KNOWN));
        filler.gaps.extend(known.into_iter().filter(|gap| gap.start >= from && take(gap)));
        let is_full = filler.fill(from, least..=least, FEW_PIECES)
            || filler.fill(from, least..=LAST.next_power_of_two() / 2, MOST_PIECES);
        is_full.then_some(filler)
    }

    /// Takes what the kernel gives above an address, the largest pieces first: each is the highest for which there is room. With many
    /// mappings that is faster than a look at their list. False if it comes to no end, as there is more, the kernel refuses, or others
    /// unmap all the time.
    fn fill(&mut self, from: usize, sizes: RangeInclusive<usize>, most: usize) -> bool {
        let (least, mut size) = sizes.into_inner();
        for _ in 0..most {
            let given = anywhere(size);
            if let Some(start) = given.filter(|start| *start >= from) {
                self.gaps.push(start..start + size);
                continue;
            }
            // There is no room of this size but below.
            given.into_iter().for_each(|start| give_back(&(start..start + size)));
            if size == least {
                return given.is_some();
            }
            size = (size / 2).max(least);
        }
        false
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        self.gaps.sort_unstable_by_key(|gap| gap.start);
        let whole = joined(self.gaps.drain(..));
        whole.iter().for_each(give_back);
        *lock(&KNOWN) = whole;
    }
}

/// Maps memory that nobody can access where the kernel likes.
fn anywhere(bytes: usize) -> Option<usize> {
    kernel::map_anonymous(0, bytes, libc::PROT_NONE)
}

/// Maps such memory there, unless something is mapped there.
fn take(place: &Range<usize>) -> bool {
    kernel::map_anonymous(place.start, place.len(), libc::PROT_NONE) == Some(place.start)
}

fn give_back(piece: &Range<usize>) {
    // SAFETY: this module has mapped it, and nobody uses it.
    unsafe { kernel::munmap(piece.start as *mut c_void, piece.len()) };
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
