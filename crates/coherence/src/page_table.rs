//! What a protocol knows about each page: one small entry for every page, and a record for the few that need one.

use crate::runs::leading;
use crate::slab::Slab;
use crate::table::Table;
use crate::{Layout, Page, Violation};
use gondwana_topology::NodeId;

/// The entry of a page; small, because every page that is used has one.
pub(crate) trait PageEntry: Copy {
    /// The entry before anything happened to the page.
    fn fresh(layout: &Layout, page: Page) -> Self;
    /// Where the page's record is in the table's [`Slab`].
    fn record(&mut self) -> &mut u32;
}

/// The pages of a machine: entries `E`, records `R`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageTable<E, R> {
    layout: Layout,
    entries: Table<E>,
    records: Slab<R>,
}

impl<E: PageEntry, R: Default> PageTable<E, R> {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { entries: Table::new(layout.pages()), layout, records: Slab::default() }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// This node.
    pub(crate) fn me(&self) -> NodeId {
        self.layout.me()
    }

    /// The entry of a page, made if it has none.
    pub(crate) fn entry(&mut self, page: Page) -> &mut E {
        let layout = &self.layout;
        self.entries.entry(page, |page| E::fresh(layout, page))
    }

    /// A page's entry, to look at.
    pub(crate) fn get(&self, page: Page) -> E {
        self.entries.get(page).copied().unwrap_or_else(|| E::fresh(&self.layout, page))
    }

    /// A page's entry and all records, to be changed together.
    pub(crate) fn split(&mut self, page: Page) -> (&mut E, &mut Slab<R>) {
        let layout = &self.layout;
        (self.entries.entry(page, |page| E::fresh(layout, page)), &mut self.records)
    }

    /// The record of a page, made if it has none.
    pub(crate) fn record(&mut self, page: Page) -> &mut R {
        let (entry, records) = self.split(page);
        records.record(entry.record())
    }

    /// The record that an entry names, if it names one.
    pub(crate) fn known(&self, mut entry: E) -> Option<&R> {
        self.records.get(*entry.record())
    }

    /// Gives back the record of a page, which is empty.
    pub(crate) fn give_back(&mut self, page: Page) {
        let (entry, records) = self.split(page);
        records.give_back(entry.record());
    }

    /// Forgets the record of a page; returns what it was.
    pub(crate) fn forget(&mut self, page: Page) -> R {
        let (entry, records) = self.split(page);
        records.take(entry.record())
    }

    /// All entries that exist.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &E> {
        self.entries.entries()
    }

    /// How many pages from `first` on, at most `most`, satisfy `like`.
    pub(crate) fn run(&mut self, first: Page, most: u32, like: impl Fn(&E) -> bool) -> u32 {
        let most = self.layout.clip(first, most);
        leading(first, most, |page| like(self.entry(page)))
    }

    /// The pages around one, in its aligned block of `block` pages, that satisfy `like` up to the next that does not, as it does itself.
    pub(crate) fn around(&mut self, page: Page, block: u32, like: impl Fn(&E) -> bool) -> (Page, u32) {
        let start = page.0 - page.0 % block;
        let before = (start..page.0).rev().take_while(|&before| like(self.entry(Page(before)))).count();
        let first = Page(page.0 - u32::try_from(before).expect("less than a block"));
        (first, self.run(first, start + block - first.0, like))
    }

    /// An error unless these pages, at least one, exist.
    pub(crate) fn check(&self, first: Page, count: u32) -> Result<(), Violation> {
        if self.layout.holds(first, count) { Ok(()) } else { Err(Violation::OutsideSpan { first, count }) }
    }

    /// An error unless `node`, which a message names, is another node than this one.
    pub(crate) fn check_node(&self, message: &'static str, node: NodeId) -> Result<(), Violation> {
        if node == self.me() || node.0 >= self.layout.nodes() {
            return Err(Violation::Node { message, node: node.0 });
        }
        Ok(())
    }
}

/// One bit for each of several facts about a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flags(pub u8);

impl Flags {
    /// True if the flag, or one of several, is set.
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8) {
        self.0 |= flag;
    }

    /// Clears the flag; true if it was set.
    pub(crate) fn take(&mut self, flag: u8) -> bool {
        let was = self.has(flag);
        self.0 &= !flag;
        was
    }
}
