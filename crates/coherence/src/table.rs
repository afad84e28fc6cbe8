//! A table with one small entry for each page of a span of which most pages are never touched.

use crate::Page;

/// log2 of the pages in one block.
const SHIFT: u32 = 9;
const BLOCK: u32 = 1 << SHIFT;

/// Two levels: an array of blocks of 512 entries, each block made when one of its pages is first looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Table<T> {
    blocks: Vec<Option<Box<[T]>>>,
    pages: u32,
}

impl<T: Copy> Table<T> {
    /// A table for pages `0..pages`.
    pub(crate) fn new(pages: u32) -> Self {
        // Made of zeros in one go: memory that the kernel need not provide before it is used.
        Self { blocks: vec![None; pages.div_ceil(BLOCK) as usize], pages }
    }

    /// The entry of `page`. `fresh` gives the entry that a page has before anything happened to it.
    ///
    /// # Panics
    /// If the page is outside the span.
    pub(crate) fn entry(&mut self, page: Page, fresh: impl Fn(Page) -> T) -> &mut T {
        let pages = self.pages;
        let block = self.blocks[(page.0 >> SHIFT) as usize].get_or_insert_with(|| {
            let first = page.0 & !(BLOCK - 1);
            (first..pages.min(first.saturating_add(BLOCK))).map(|page| fresh(Page(page))).collect()
        });
        &mut block[(page.0 & (BLOCK - 1)) as usize]
    }

    /// All entries that exist.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten().flat_map(|block| block.iter())
    }

    /// The entry of `page` if its block exists.
    pub(crate) fn get(&self, page: Page) -> Option<&T> {
        self.blocks.get((page.0 >> SHIFT) as usize)?.as_ref()?.get((page.0 & (BLOCK - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_made_when_first_touched_and_keep_what_is_written() {
        let mut table = Table::new(1030);
        assert_eq!(table.get(Page(1029)), None);
        *table.entry(Page(1029), |page| page.0) += 1;
        assert_eq!(table.get(Page(1029)), Some(&1030));
        assert_eq!(table.get(Page(1024)), Some(&1024));
        assert_eq!(table.get(Page(1030)), None);
        assert_eq!(table.get(Page(0)), None);
        assert_eq!(*table.entry(Page(511), |page| page.0), 511);
        assert_eq!(*table.entry(Page(1029), |_| 0), 1030);
    }
}
