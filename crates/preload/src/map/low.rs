//! Mappings at low addresses ([`LOW`]), which programs ask for by `MAP_32BIT` or by the address: code that others jump to with
//! 32 bits, data whose pointers have as many.
//!
//! Which addresses are in use is in the library's page, under a mutex, as any node may map there.

use super::kernel;
use crate::process::{MUTEX_BYTES, holding};
use crate::ranges::{between, joined};
use gondwana_memory::{LOW, PAGE_SIZE};
use gondwana_node::{MutexKind, Node};
use gondwana_page::whole_pages;
use libc::c_void;
use std::ops::Range;

/// Where in the library's page the table is, up to the mutexes.
pub(crate) const START: usize = PAGE_SIZE / 2;

/// Ranges that the table has room for.
const MOST: usize = (PAGE_SIZE - MUTEX_BYTES - START - size_of::<usize>()) / size_of::<[u32; 2]>();

/// The ranges in use, by the numbers of their pages, in order, no two adjacent. All zero at first.
#[repr(C)]
struct Table {
    count: usize,
    ranges: [[u32; 2]; MOST],
}

impl Table {
    fn taken(&self) -> Vec<Range<u32>> {
        self.ranges[..self.count].iter().map(|[start, end]| *start..*end).collect()
    }
}

/// Takes addresses for a mapping: those from `wanted` on if they are free, otherwise others; `None` if there are none.
pub(super) fn take(node: &'static Node, wanted: usize, length: usize) -> Option<usize> {
    let length = pages_of(length).filter(|_| node.is_low(LOW.start))?;
    change(node, |taken| {
        let first = free(taken, wanted.checked_sub(LOW.start).map(whole_pages), length)?;
        Some((with(taken, first..first + length), LOW.start + first as usize * PAGE_SIZE))
    })
}

/// Takes exactly these addresses, of which some may be in use unless they are to be `new`. False if that cannot be.
pub(super) fn take_at(node: &'static Node, bytes: &Range<usize>, new: bool) -> bool {
    let Some(pages) = numbers(bytes) else { return false };
    let taken = change(node, |taken| {
        let is_new = !taken.iter().any(|range| range.start < pages.end && pages.start < range.end);
        (is_new || !new).then(|| (with(taken, pages.clone()), ()))
    });
    taken.is_some()
}

/// Gives addresses back.
pub(super) fn give_back(node: &'static Node, bytes: &Range<usize>) {
    let Some(pages) = numbers(bytes) else { return };
    change(node, |taken| Some((without(taken, &pages), ())));
}

/// In the child of a `fork`, which is no node: the kernel has the addresses that are not in use.
pub(crate) fn leave_rest(node: &Node) {
    if !node.is_low(LOW.start) {
        return;
    }
    // SAFETY: the child has its own copy of what was shared, and one thread.
    let taken = unsafe { &*((node.library_page() + START) as *const Table) }.taken();
    for gap in between(all(), &taken) {
        let address = LOW.start + gap.start as usize * PAGE_SIZE;
        // SAFETY: nothing of the program is there.
        unsafe { kernel::munmap(address as *mut c_void, gap.len() * PAGE_SIZE) };
    }
}

/// The numbers of all pages there.
fn all() -> Range<u32> {
    0..whole_pages(LOW.len())
}

/// Whole pages; `None` if there are more than low addresses.
fn pages_of(length: usize) -> Option<u32> {
    (1..=LOW.len()).contains(&length).then(|| whole_pages(length.next_multiple_of(PAGE_SIZE)))
}

/// The pages with these bytes, by their numbers; `None` if not all are at low addresses.
fn numbers(bytes: &Range<usize>) -> Option<Range<u32>> {
    let inside = LOW.start <= bytes.start && bytes.start < bytes.end && bytes.end <= LOW.end;
    inside.then(|| {
        whole_pages(bytes.start - LOW.start)..whole_pages((bytes.end - LOW.start).next_multiple_of(PAGE_SIZE))
    })
}

/// Changes the table, if `new` gives other ranges and the table has room for them.
fn change<R>(
    node: &'static Node,
    new: impl FnOnce(&[Range<u32>]) -> Option<(Vec<Range<u32>>, R)>,
) -> Option<R> {
    let address = node.library_page() + START;
    holding(node, address, MutexKind::Normal, || {
        // SAFETY: the page is shared memory of the library, whose zeros are a table without ranges, and the mutex is held.
        let table = unsafe { &mut *(address as *mut Table) };
        let (ranges, result) = new(&table.taken()).filter(|(ranges, _)| ranges.len() <= MOST)?;
        for (place, range) in table.ranges.iter_mut().zip(&ranges) {
            *place = [range.start, range.end];
        }
        table.count = ranges.len();
        Some(result)
    })
}

/// Where so many pages are free: at `wanted`, or else the first place.
fn free(taken: &[Range<u32>], wanted: Option<u32>, pages: u32) -> Option<u32> {
    let mut gaps = between(all(), taken).filter(|gap| gap.end - gap.start >= pages);
    let at_wanted = wanted.filter(|&at| gaps.clone().any(|gap| gap.start <= at && at <= gap.end - pages));
    at_wanted.or_else(|| gaps.next().map(|gap| gap.start))
}

/// The ranges without these pages.
fn without(taken: &[Range<u32>], gone: &Range<u32>) -> Vec<Range<u32>> {
    let parts =
        |range: &Range<u32>| [range.start..range.end.min(gone.start), range.start.max(gone.end)..range.end];
    taken.iter().flat_map(parts).filter(|range| !range.is_empty()).collect()
}

/// The ranges and these pages.
fn with(taken: &[Range<u32>], new: Range<u32>) -> Vec<Range<u32>> {
    let mut ranges = without(taken, &new);
    ranges.push(new);
    ranges.sort_by_key(|range| range.start);
    joined(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ALL: u32 = 1 << 18;

    #[test]
    fn a_place_that_is_wanted_is_taken_if_it_is_free() {
        let taken = [10..20, 30..40];
        assert_eq!(free(&taken, Some(20), 10), Some(20));
        assert_eq!(free(&taken, Some(21), 10), Some(0));
        assert_eq!(free(&taken, None, 11), Some(40));
        assert_eq!(free(&taken, Some(ALL - 5), 6), Some(0));
        assert_eq!(free(&taken, Some(ALL - 6), 6), Some(ALL - 6));
        assert_eq!(free(&taken, None, ALL - 40), Some(40));
        assert_eq!(free(&taken, None, ALL - 39), None);
        assert_eq!((free(&[], None, ALL), free(std::slice::from_ref(&(0..ALL)), None, 1)), (Some(0), None));
    }

    #[test]
    fn only_low_addresses_have_numbers() {
        assert_eq!(numbers(&(LOW.start..LOW.end)), Some(0..ALL));
        assert_eq!(numbers(&(LOW.start + 4096..LOW.start + 4097)), Some(1..2));
        assert_eq!(numbers(&(LOW.start - 1..LOW.end)), None);
        assert_eq!(numbers(&(LOW.start..LOW.end + 1)), None);
        assert_eq!((pages_of(0), pages_of(1), pages_of(LOW.len() + 1)), (None, Some(1), None));
    }

    proptest! {
        #[test]
        fn the_table_is_the_set_of_pages(changes in prop::collection::vec((any::<bool>(), 0..60_u32, 1..20_u32), 0..40)) {
            let (mut ranges, mut set) = (vec![], BTreeSet::new());
            for (takes, start, pages) in changes {
                let these = start..start + pages;
                if takes {
                    set.extend(these.clone());
                    ranges = with(&ranges, these);
                } else {
                    set.retain(|page| !these.contains(page));
                    ranges = without(&ranges, &these);
                }
                prop_assert!(ranges.iter().flat_map(Clone::clone).eq(set.iter().copied()));
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
