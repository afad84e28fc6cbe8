//! Excess-miss counters: how often a node fetched blocks that it would still have, had it had room for them.
//!
//! A counter is free, or belongs to a page. The first excess miss to a page takes a free counter, the following ones add to it
//! (WildFire, section 4). The operating system reads all of them now and then, and frees them.

/// The counters of one node, which find their page by association.
#[derive(Clone, Debug)]
pub(crate) struct ExcessCounters {
    /// Pages with their counts.
    taken: Vec<(u32, u64)>,
    /// How many there are.
    count: usize,
}

impl ExcessCounters {
    /// So many, all free.
    pub(crate) fn new(count: u64) -> Self {
        Self { taken: vec![], count: usize::try_from(count).unwrap_or(usize::MAX) }
    }

    /// An excess miss to a page. It is lost if no counter is free.
    pub(crate) fn add(&mut self, page: u32) {
        if let Some((_, count)) = self.taken.iter_mut().find(|(taken, _)| *taken == page) {
            *count += 1;
        } else if self.taken.len() < self.count {
            self.taken.push((page, 1));
        }
    }

    /// Reads and frees all: pages with their counts.
    pub(crate) fn take(&mut self) -> Vec<(u32, u64)> {
        std::mem::take(&mut self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_counter_until_all_are_freed() {
        let mut counters = ExcessCounters::new(2);
        for page in [7, 3, 7, 9, 9, 9] {
            counters.add(page);
        }
        assert_eq!(counters.take(), [(7, 2), (3, 1)], "none was free for page 9");
        counters.add(9);
        assert_eq!(counters.take(), [(9, 1)]);
        assert_eq!(counters.take(), []);
    }
}
