//! A set of pages that many threads change without a lock.

use gondwana_memory::{MemoryError, SparseWords};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Pages in a word.
const WORD: usize = 64;

/// Some of the pages of a range, by number.
#[derive(Debug)]
pub(super) struct PageSet {
    /// A bit for each page.
    words: SparseWords,
    /// A bit for each word that may have bits.
    summary: SparseWords,
    /// A bit for each word of the summary that ever had bits: iterating over a large, sparsely used range must not
    /// touch all of the summary, because the kernel would provide its memory.
    used: SparseWords,
}

impl PageSet {
    /// An empty set of pages below `pages`.
    pub(super) fn new(pages: usize) -> Result<Self, MemoryError> {
        let words = pages.div_ceil(WORD);
        let groups = words.div_ceil(WORD);
        Ok(Self {
            words: SparseWords::new(words)?,
            summary: SparseWords::new(groups)?,
            used: SparseWords::new(groups.div_ceil(WORD))?,
        })
    }

    /// Inserts a page. A thread that takes it out afterwards sees what the calling thread has written before.
    pub(super) fn insert(&self, page: usize) {
        let word = page / WORD;
        // Also if the bit is set: only a write orders this thread's earlier writes before the taking of the bit.
        self.words[word].fetch_or(1 << (page % WORD), Ordering::SeqCst);
        // A taker clears the summary first. If it has not yet, it will find the bit set above.
        let group = word / WORD;
        let (summary, bit) = (&self.summary[group], 1 << (word % WORD));
        if summary.load(Ordering::SeqCst) & bit == 0 {
            summary.fetch_or(bit, Ordering::SeqCst);
        }
        // Never taken out again.
        let (area, bit) = (&self.used[group / WORD], 1 << (group % WORD));
        if area.load(Ordering::Relaxed) & bit == 0 {
            area.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// True if a page is in the set.
    pub(super) fn contains(&self, page: usize) -> bool {
        self.words[page / WORD].load(Ordering::Relaxed) >> (page % WORD) & 1 == 1
    }

    /// Removes all pages of a range and calls a function with each, in ascending order.
    pub(super) fn take(&self, pages: Range<usize>, call: impl FnMut(usize)) {
        self.go_through(pages, true, call);
    }

    /// Calls a function with each page of a range that is in the set, in ascending order.
    pub(super) fn visit(&self, pages: Range<usize>, call: impl FnMut(usize)) {
        self.go_through(pages, false, call);
    }

    fn go_through(&self, pages: Range<usize>, take: bool, mut call: impl FnMut(usize)) {
        let mut page = pages.start;
        while page < pages.end {
            let word = page / WORD;
            let group = word / WORD;
            let used = self.used[group / WORD].load(Ordering::Acquire) >> (group % WORD);
            if used & 1 == 0 {
                let next = if used == 0 { WORD - group % WORD } else { used.trailing_zeros() as usize };
                page = (group + next) * WORD * WORD;
                continue;
            }
            let summary = self.summary[group].load(Ordering::Acquire) >> (word % WORD);
            if summary & 1 == 0 {
                let next = if summary == 0 { WORD - word % WORD } else { summary.trailing_zeros() as usize };
                page = (word + next) * WORD;
                continue;
            }
            let end = ((word + 1) * WORD).min(pages.end);
            let wanted = bits(page % WORD..page % WORD + (end - page));
            if take && wanted == u64::MAX {
                self.summary[group].fetch_and(!(1 << (word % WORD)), Ordering::SeqCst);
            }
            let kept = if take { !wanted } else { u64::MAX };
            let mut found = self.words[word].fetch_and(kept, Ordering::SeqCst) & wanted;
            while found != 0 {
                call(word * WORD + found.trailing_zeros() as usize);
                found &= found - 1;
            }
            page = end;
        }
    }
}

/// A word with these bits.
fn bits(range: Range<usize>) -> u64 {
    let length = range.end - range.start;
    (if length == WORD { u64::MAX } else { (1 << length) - 1 }) << range.start
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(usize),
        Take(Range<usize>),
    }

    const PAGES: usize = 3 * WORD * WORD + 77;

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..PAGES, 0..PAGES).prop_map(|(a, b)| Step::Take(a.min(b)..a.max(b)));
        prop_oneof![4 => (0..PAGES).prop_map(Step::Insert), 1 => range, 1 => Just(Step::Take(0..PAGES))]
    }

    proptest! {
        #[test]
        fn it_is_a_set(steps in prop::collection::vec(step(), 1..60)) {
            let set = PageSet::new(PAGES).unwrap();
            let mut model = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Insert(page) => {
                        set.insert(page);
                        model.insert(page);
                        prop_assert!(set.contains(page));
                    }
                    Step::Take(pages) => {
                        let (mut seen, mut taken) = (vec![], vec![]);
                        set.visit(pages.clone(), |page| seen.push(page));
                        set.take(pages.clone(), |page| taken.push(page));
                        let expected: Vec<_> = model.range(pages.clone()).copied().collect();
                        prop_assert_eq!(&taken, &expected);
                        prop_assert_eq!(seen, expected);
                        model.retain(|page| !pages.contains(page));
                    }
                }
            }
            let mut rest = BTreeSet::new();
            set.take(0..PAGES, |page| { rest.insert(page); });
            prop_assert_eq!(rest, model);
        }
    }

    #[test]
    fn nothing_is_lost_while_others_take() {
        let set = PageSet::new(PAGES).unwrap();
        let taken = std::thread::scope(|scope| {
            let inserting: Vec<_> = (0..2)
                .map(|thread| {
                    let set = &set;
                    scope.spawn(move || (thread..PAGES).step_by(2).for_each(|page| set.insert(page)))
                })
                .collect();
            let mut taken = vec![];
            while !inserting.iter().all(|thread| thread.is_finished()) {
                set.take(0..PAGES, |page| taken.push(page));
            }
            set.take(0..PAGES, |page| taken.push(page));
            taken
        });
        let distinct: BTreeSet<_> = taken.iter().copied().collect();
        assert_eq!((taken.len(), distinct.len()), (PAGES, PAGES));
    }
}
