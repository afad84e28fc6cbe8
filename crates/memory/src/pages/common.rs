//! Pages that the program uses in a file that all nodes of a computer map.

use super::Pages;
use crate::common_frames::{CommonFrames, CommonWords};
use crate::common_set::CommonSet;
use crate::{MemoryError, diff};
use gondwana_page::Access;
use std::ops::Range;
use std::os::fd::BorrowedFd;

impl Pages {
    /// Lets pages become common: they are in a file that the other nodes, so many with this one, map as well, from `start` on. Returns
    /// words that all nodes have in common for themselves; `None` if there are too few addresses for that, on each node.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn share(
        &mut self,
        file: BorrowedFd<'_>,
        start: usize,
        nodes: u16,
    ) -> Result<Option<CommonWords>, MemoryError> {
        self.common = CommonFrames::new(file, start, self.geometry.pages(), nodes)?;
        Ok(self.common.as_ref().map(CommonFrames::words))
    }

    /// The common pages that the program uses, as they become more; `None` if none may be.
    #[must_use]
    pub fn common_set(&self) -> Option<CommonSet> {
        self.common.as_ref().map(|common| common.shown().clone())
    }

    /// True if the program uses a common page here.
    #[must_use]
    pub fn is_common(&self, page: u32) -> bool {
        self.protection.is_common(page) && self.protection.is_included(page)
    }

    /// True if a page, which is here, may become common.
    #[must_use]
    pub fn can_be_common(&self, page: u32) -> bool {
        self.protection.is_included(page) && self.common.as_ref().is_some_and(|common| common.has_room(page))
    }

    /// Makes pages common: the program uses them in the common file from now on, with their present contents.
    ///
    /// # Errors
    /// If the kernel refuses: the node cannot go on.
    ///
    /// # Panics
    /// If no pages [may become common](Pages::share).
    pub fn make_common(&mut self, first: u32, count: u32) -> Result<(), MemoryError> {
        self.protect(first, count, Access::None)?;
        let contents = self.contents(first, count);
        self.common.as_ref().expect("there is a common file").frames(first, count).copy_from(contents);
        self.map_common(first, count)
    }

    /// Has the program use pages in the common file from now on that nobody has touched. If its threads come `from` a page that
    /// somebody has touched, all are given memory at once.
    ///
    /// # Errors
    /// If the kernel refuses: the node cannot go on.
    ///
    /// # Panics
    /// If no pages [may become common](Pages::share).
    pub fn touch_common(&mut self, first: u32, count: u32, from: Option<u32>) -> Result<(), MemoryError> {
        let common = self.common.as_ref().expect("there is a common file");
        let fills = from.is_some_and(|page| common.next_used(page..page + 1).is_some());
        self.map_from_common(first, count, false)?;
        if fills {
            self.protection.fill_common(first..first + count)?;
        }
        Ok(())
    }

    /// [`Pages::patch`] of a common page, which the program need not use there yet.
    ///
    /// # Errors
    /// If the diff is malformed.
    ///
    /// # Panics
    /// If no pages [may become common](Pages::share).
    pub fn patch_common(&mut self, page: u32, bytes: &[u8]) -> Result<(), diff::Malformed> {
        diff::apply(bytes, self.common.as_ref().expect("there is a common file").frames(page, 1))
    }

    /// The program uses pages in the common file from now on, which it cannot access now. They have contents there, or nobody has touched
    /// them.
    ///
    /// # Errors
    /// If the kernel refuses: the node cannot go on.
    ///
    /// # Panics
    /// If no pages [may become common](Pages::share).
    pub fn map_common(&mut self, first: u32, count: u32) -> Result<(), MemoryError> {
        let common = self.common.as_ref().expect("there is a common file");
        if common.next_used(first..first + 1).is_none() {
            return self.touch_common(first, count, first.checked_sub(1));
        }
        self.map_from_common(first, count, true)
    }

    /// The program uses those of these pages that are common in the common file again, whatever is in their place.
    pub(super) fn show_common(&mut self, pages: Range<u32>) -> Result<(), MemoryError> {
        let Some(common) = &self.common else { return Ok(()) };
        let is_common = |page: &u32| self.protection.is_common(*page);
        let mut parts = vec![];
        let mut at = pages.start;
        while let Some(start) = (at..pages.end).find(is_common) {
            at = (start..pages.end).find(|page| !is_common(page)).unwrap_or(pages.end);
            let mut untouched = start;
            for used in common.used(start..at) {
                parts.extend([(untouched..used.start, false), (used.clone(), true)]);
                untouched = used.end;
            }
            parts.push((untouched..at, false));
        }
        for (part, filled) in parts {
            self.map_from_common(part.start, part.end - part.start, filled)?;
        }
        Ok(())
    }

    fn map_from_common(&mut self, first: u32, count: u32, filled: bool) -> Result<(), MemoryError> {
        let common = self.common.as_mut().expect("there is a common file");
        let (mut start, end) = (first, first + count);
        while start < end {
            let run = self.protection.alike(start, end);
            let (access, executable) = self.protection.limit_of(start);
            // What is private to this node stays; `include` maps the common page then.
            if self.protection.is_included(start) {
                // SAFETY: the program cannot access the pages, and the contents are there.
                unsafe {
                    let base = self.geometry.address_of(start);
                    common.map(base, start..start + run, access, executable, filled)?;
                }
            }
            self.protection.becomes_common(start, run);
            start += run;
        }
        Ok(())
    }
}
