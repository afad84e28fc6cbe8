//! The bytes of pages that this node has written, from its diffs.

use gondwana_locks::lock;
use gondwana_memory::diff::{Diff, Footprint};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// The most pages that are kept.
const MOST_PAGES: usize = 1 << 19;
/// The most masks of partly written blocks, over all pages.
const MOST_MASKS: usize = 1 << 22;

/// The written bytes of all pages.
#[derive(Debug)]
pub struct Written {
    pages: Mutex<Pages>,
    most_pages: usize,
    most_masks: usize,
}

#[derive(Debug, Default)]
struct Pages {
    footprints: HashMap<u32, Page>,
    /// Pages with bytes that were not emitted yet.
    pending: Vec<u32>,
    masks: usize,
    dropped: u64,
}

#[derive(Debug, Default)]
struct Page {
    footprint: Footprint,
    pending: bool,
}

impl Written {
    /// No written bytes.
    pub fn new() -> Self {
        Self { pages: Mutex::default(), most_pages: MOST_PAGES, most_masks: MOST_MASKS }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        lock(&self.pages)
    }

    /// Adds the bytes of a diff that this node has made of a page.
    pub fn note(&self, page: u32, diff: &[u8]) {
        let Ok(diff) = Diff::parse(diff) else { return };
        let mut guard = self.pages();
        let pages = &mut *guard;
        let full = pages.masks >= self.most_masks
            || pages.footprints.len() >= self.most_pages && !pages.footprints.contains_key(&page);
        if full {
            pages.dropped += 1;
            return;
        }
        let kept = pages.footprints.entry(page).or_default();
        let before = kept.footprint.kept_masks();
        if kept.footprint.add(&diff) && !kept.pending {
            kept.pending = true;
            pages.pending.push(page);
        }
        pages.masks = pages.masks + kept.footprint.kept_masks() - before;
    }

    /// Takes at most `most` pages with bytes that were not emitted yet; with all their written bytes.
    pub fn take(&self, most: usize) -> Vec<(u32, Footprint)> {
        let mut guard = self.pages();
        let pages = &mut *guard;
        let from = pages.pending.len().saturating_sub(most);
        let taken = pages.pending.drain(from..).filter_map(|number| {
            let page = pages.footprints.get_mut(&number)?;
            page.pending = false;
            Some((number, page.footprint.clone()))
        });
        taken.collect()
    }

    /// The number of pages that [`Written::take`] can return.
    pub fn pending(&self) -> usize {
        self.pages().pending.len()
    }

    /// The number of diffs that were dropped because too many pages or masks are kept.
    pub fn dropped(&self) -> u64 {
        self.pages().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_memory::{PAGE_SIZE, PageBytes};

    /// The diff of a page in which some bytes changed.
    fn diff(bytes: &[usize]) -> Vec<u8> {
        let mut page: PageBytes = [0; PAGE_SIZE];
        bytes.iter().for_each(|&byte| page[byte] = 1);
        let mut out = vec![];
        gondwana_memory::diff::encode((&page).into(), &[0; PAGE_SIZE], &mut out);
        out
    }

    #[test]
    fn a_page_is_emitted_when_more_of_it_is_written() {
        let written = Written::new();
        written.note(5, &diff(&[0, 64]));
        written.note(5, &diff(&[3]));
        written.note(9, &diff(&[4095]));
        let mut emitted = written.take(10);
        emitted.sort_by_key(|(page, _)| *page);
        let bytes = |index: usize| emitted[index].1.bytes().collect::<Vec<_>>();
        assert_eq!((emitted[0].0, emitted[0].1.blocks(), bytes(0)), (5, 3, vec![0b1001, 1]));
        assert_eq!((emitted[1].0, emitted[1].1.blocks(), bytes(1)), (9, 1 << 63, vec![1 << 63]));
        written.note(5, &diff(&[0, 3]));
        assert_eq!(written.take(10), []);
        written.note(5, &diff(&[1]));
        assert_eq!(written.take(10)[0].1.bytes().next(), Some(0b1011));
    }

    #[test]
    fn pages_are_emitted_in_parts() {
        let written = Written::new();
        (0..10).for_each(|page| written.note(page, &diff(&[1])));
        let mut emitted: Vec<u32> =
            [4, 4, 4, 4].into_iter().flat_map(|most| written.take(most)).map(|(page, _)| page).collect();
        emitted.sort_unstable();
        assert_eq!(emitted, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let written = Written { most_pages: 2, most_masks: 3, ..Written::new() };
        (0..4).for_each(|page| written.note(page, &diff(&[1])));
        assert_eq!((written.take(10).len(), written.dropped()), (2, 2));
        written.note(0, &diff(&[64]));
        assert_eq!((written.take(10).len(), written.dropped()), (1, 2));
        written.note(1, &diff(&[64]));
        assert_eq!((written.take(10).len(), written.dropped()), (0, 3));
    }
}
