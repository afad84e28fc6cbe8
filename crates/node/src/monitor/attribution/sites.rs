//! Allocation sites: chains of calls that allocate.

use super::objects::MOST_ORIGINS;
use gondwana_locks::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The most sites that are kept apart.
const MOST_SITES: usize = 64 * 1024;

/// The number of a pair of site and thread, which stands for both in a word.
pub(super) type Origin = u32;

/// The sites of this node, numbered from 1; number 0 is the unknown site.
#[derive(Debug)]
pub(super) struct Sites {
    table: Mutex<Table>,
    most_sites: usize,
    most_origins: usize,
}

#[derive(Debug)]
struct Table {
    numbers: HashMap<Arc<[usize]>, u32>,
    /// By number.
    stacks: Vec<Arc<[usize]>>,
    origins: HashMap<(u32, u32), Origin>,
    /// Site and thread of each origin. The first origin is that of allocations for which there is no room.
    pairs: Vec<(u32, u32)>,
    dropped: u64,
}

impl Sites {
    /// None yet.
    pub(super) fn new() -> Self {
        Self::with_room(MOST_SITES, MOST_ORIGINS)
    }

    fn with_room(most_sites: usize, most_origins: usize) -> Self {
        let table = Table {
            numbers: HashMap::new(),
            stacks: vec![],
            origins: HashMap::from([((0, 0), 0)]),
            pairs: vec![(0, 0)],
            dropped: 0,
        };
        Self { table: Mutex::new(table), most_sites, most_origins }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// The origin of an allocation by this thread through this chain of calls; an empty chain is the unknown site.
    pub(super) fn intern(&self, stack: &[usize], thread: u32) -> Origin {
        let mut table = self.table();
        let site = match table.numbers.get(stack) {
            _ if stack.is_empty() => 0,
            Some(number) => *number,
            None if table.stacks.len() < self.most_sites => {
                let stack: Arc<[usize]> = stack.into();
                table.stacks.push(Arc::clone(&stack));
                let number = u32::try_from(table.stacks.len()).expect("up to MOST_SITES");
                table.numbers.insert(stack, number);
                number
            }
            None => {
                table.dropped += 1;
                0
            }
        };
        if let Some(origin) = table.origins.get(&(site, thread)) {
            return *origin;
        }
        if table.pairs.len() >= self.most_origins {
            table.dropped += 1;
            return 0;
        }
        let origin = Origin::try_from(table.pairs.len()).expect("up to MOST_ORIGINS");
        table.pairs.push((site, thread));
        table.origins.insert((site, thread), origin);
        origin
    }

    /// The number of the site, and the thread.
    pub(super) fn of(&self, origin: Origin) -> (u32, u32) {
        self.table().pairs.get(origin as usize).copied().unwrap_or_default()
    }

    /// The sites after the first `known`, with their numbers.
    pub(super) fn after(&self, known: usize) -> Vec<(u32, Arc<[usize]>)> {
        (1..).zip(self.table().stacks.iter().cloned()).skip(known).collect()
    }

    /// The number of chains that have no site because there are too many.
    pub(super) fn dropped(&self) -> u64 {
        self.table().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_chains_are_one_place_and_threads_are_kept_apart() {
        let sites = Sites::new();
        let first = sites.intern(&[1, 2], 0);
        assert_eq!(sites.intern(&[1, 2], 0), first);
        let other = sites.intern(&[1, 2], 7);
        assert_ne!(other, first);
        assert_eq!((sites.of(first), sites.of(other)), ((1, 0), (1, 7)));
        assert_eq!(sites.of(sites.intern(&[1], 0)), (2, 0));
        assert_eq!(sites.of(sites.intern(&[], 3)), (0, 3));
        assert_eq!(sites.after(0), [(1, [1, 2][..].into()), (2, [1][..].into())]);
        assert_eq!(sites.after(1), [(2, [1][..].into())]);
        assert_eq!((sites.after(2), sites.dropped()), (vec![], 0));
    }

    #[test]
    fn what_does_not_fit_is_counted_and_is_nowhere() {
        let sites = Sites::with_room(2, 4);
        let origins: Vec<_> = (1..=4).map(|address| sites.intern(&[address], 1)).collect();
        assert_eq!(
            origins.iter().map(|&origin| sites.of(origin)).collect::<Vec<_>>(),
            [(1, 1), (2, 1), (0, 1), (0, 1)]
        );
        assert_eq!(sites.dropped(), 2);
        // There is no room for another origin.
        assert_eq!(sites.of(sites.intern(&[1], 2)), (0, 0));
        assert_eq!((sites.after(0).len(), sites.dropped()), (2, 3));
    }
}
