//! Sparse memory: large ranges of which the program has used few pages. The others are neither read nor written when the
//! range is cleared or copied, so that they still cost nothing afterwards.

use crate::Node;
use crate::wire::Wire;
use gondwana_memory::PAGE_SIZE;
use gondwana_topology::NodeId;
use std::ops::Range;

/// Bytes for which it is worth asking other nodes what they have used of them.
const LARGE: usize = 2 << 20;

/// A run of pages as one number.
pub(crate) fn packed(run: &Range<u32>) -> i64 {
    i64::from(run.start) << 32 | i64::from(run.end - run.start)
}

/// The run of pages that a number stands for, as far as they were asked about: a peer's number can be any.
fn unpacked(run: i64, asked: &Range<u32>) -> Option<Range<u32>> {
    let run = run.cast_unsigned();
    let (first, count) = ((run >> 32) as u32, (run & 0xffff_ffff) as u32);
    let part = first.max(asked.start)..first.saturating_add(count).min(asked.end);
    Some(part).filter(|part| !part.is_empty())
}

impl Node {
    /// Clears memory that was in use before, so that most of it needs to be written.
    ///
    /// # Safety
    /// The program can write all of it and gives up what is there.
    pub(crate) unsafe fn clear_again(&'static self, bytes: Range<usize>) {
        // SAFETY: the caller's promise.
        unsafe {
            if bytes.len() < LARGE {
                std::ptr::write_bytes(bytes.start as *mut u8, 0, bytes.len());
            } else {
                self.discard(bytes);
            }
        }
    }

    /// Clears shared memory of which the program may have used little.
    ///
    /// # Safety
    /// The program can write all of it and gives up what is there.
    pub unsafe fn discard(&'static self, bytes: Range<usize>) {
        self.visit_used(bytes, |used| {
            // SAFETY: the caller's promise.
            unsafe { clear_pages(used) };
        });
    }

    /// Copies shared memory to where all reads as zero.
    ///
    /// # Safety
    /// The program can read what is copied and write its new place; they do not overlap.
    pub unsafe fn copy_to_zeros(&'static self, from: Range<usize>, to: usize) {
        let start = from.start;
        self.visit_used(from, |used| {
            // SAFETY: the caller's promise.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    used.start as *const u8,
                    (to + (used.start - start)) as *mut u8,
                    used.len(),
                );
            }
        });
    }

    /// Calls `visit` with the parts of a range of shared addresses that may hold something other than zeros, in their order.
    pub(crate) fn visit_used(&'static self, bytes: Range<usize>, mut visit: impl FnMut(Range<usize>)) {
        let pages = self.geometry.page_of(bytes.start).zip(self.geometry.page_of(bytes.end - 1));
        let Some((first, last)) = pages.filter(|_| bytes.len() >= LARGE) else { return visit(bytes) };
        let base = bytes.start / PAGE_SIZE * PAGE_SIZE;
        let (mut at, end) = (first, last + 1);
        // What each node has next, as far as that was asked.
        let mut next: Vec<Range<u32>> = vec![first..first; self.nodes()];
        while at < end {
            for (node, run) in (0..).map(NodeId).zip(&mut next).filter(|(_, run)| run.end <= at) {
                *run = self.next_used(node, at..end).unwrap_or(end..end + 1);
            }
            let Some(run) = next.iter().min_by_key(|run| run.start).filter(|run| run.start < end) else {
                return;
            };
            let run = run.start.max(at)..run.end;
            let address = |page: u32| base + (page - first) as usize * PAGE_SIZE;
            visit(address(run.start).max(bytes.start)..address(run.end).min(bytes.end));
            at = run.end;
        }
    }

    /// The first run of these pages to which a node has given memory.
    fn next_used(&'static self, node: NodeId, pages: Range<u32>) -> Option<Range<u32>> {
        if node == self.me {
            return self.privately(move || self.core().env.pages.next_used(pages));
        }
        let Range { start: first, end } = pages;
        unpacked(self.ask(node, move |ticket| Wire::Used { ticket, first, end }), &pages)
    }
}

/// Clears memory. Pages that read as zero already are not written: no node may have them yet, or another one, which keeps
/// them.
///
/// # Safety
/// The program can read and write it.
unsafe fn clear_pages(bytes: Range<usize>) {
    let mut at = bytes.start;
    while at < bytes.end {
        let next = (at / PAGE_SIZE + 1) * PAGE_SIZE;
        // SAFETY: the caller's promise.
        let part = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, next.min(bytes.end) - at) };
        let is_zero = |bytes: &[u8]| bytes.iter().fold(0, |all, &byte| all | byte) == 0;
        if !part.chunks(256).all(is_zero) {
            part.fill(0);
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_pages_are_numbers() {
        for run in [5..6, (1 << 30)..(1 << 30) + 7, 3..u32::MAX] {
            assert_eq!(unpacked(packed(&run), &(0..u32::MAX)), Some(run));
        }
        assert_eq!(unpacked(packed(&(0..0)), &(0..u32::MAX)), None);
    }

    #[test]
    fn no_answer_leads_beyond_the_pages_that_were_asked_about() {
        let answer = |first: u32, count: u32| i64::from(first) << 32 | i64::from(count);
        for (answer, run) in [
            (answer(12, 3), Some(12..15)),
            (answer(5, 7), Some(10..12)),
            (answer(12, u32::MAX), Some(12..20)),
            (answer(2, 3), None),
            (answer(25, 3), None),
            (answer(u32::MAX, u32::MAX), None),
        ] {
            assert_eq!(unpacked(answer, &(10..20)), run, "{answer:#x}");
        }
    }
}
