//! Ascending page lists as runs, so that a batch costs one system call for each run and not for each page.

use crate::Page;

/// The maximal runs (first page, count) of consecutive pages in an ascending list without duplicates.
pub(crate) fn runs(pages: &[Page]) -> impl Iterator<Item = (Page, u32)> + '_ {
    pages.chunk_by(|a, b| a.0 + 1 == b.0).map(|run| (run[0], count_of(run)))
}

/// How many pages these are, or how many have something that there is one of for each page.
#[inline]
pub(crate) fn count_of<T>(pages: &[T]) -> u32 {
    u32::try_from(pages.len()).expect("a span has fewer than 2^32 pages")
}

/// How many pages from `first` on, at most `most`, are `like` that.
#[inline]
pub(crate) fn leading(first: Page, most: u32, mut like: impl FnMut(Page) -> bool) -> u32 {
    (0..most).find(|ahead| !like(Page(first.0 + ahead))).unwrap_or(most)
}

/// The `count` pages from `first` on.
pub(crate) fn span(first: Page, count: u32) -> impl DoubleEndedIterator<Item = Page> {
    (first.0..first.0 + count).map(Page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_pages_make_one_run() {
        let pages = [1, 2, 3, 7, 9, 10].map(Page);
        assert_eq!(runs(&pages).collect::<Vec<_>>(), [(Page(1), 3), (Page(7), 1), (Page(9), 2)]);
        assert_eq!(runs(&[]).count(), 0);
    }

    #[test]
    fn the_first_page_that_is_not_alike_ends_a_count() {
        let count = |most| leading(Page(5), most, |page| page.0 != 8);
        assert_eq!([0, 2, 3, 4, 100].map(count), [0, 2, 3, 3, 3]);
    }
}
