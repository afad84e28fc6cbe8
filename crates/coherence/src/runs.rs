//! Ascending page lists as runs, so that a batch costs one system call for each run and not for each page.

use crate::Page;

/// The maximal runs (first page, count) of consecutive pages in an ascending list without duplicates.
pub(crate) fn runs(pages: &[Page]) -> impl Iterator<Item = (Page, u32)> + '_ {
    pages
        .chunk_by(|a, b| a.0 + 1 == b.0)
        .map(|run| (run[0], u32::try_from(run.len()).expect("a span has fewer than 2^32 pages")))
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
}
