//! Records that few pages have, kept out of line so that the others pay four bytes for them.

/// Marks a page without a record.
pub(crate) const NO_RECORD: u32 = u32::MAX;

/// Records found by an index that the page keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// The record at `index`, made (and `index` set) when there is none.
    pub(crate) fn record(&mut self, index: &mut u32) -> &mut T {
        if *index == NO_RECORD {
            *index = self.free.pop().unwrap_or_else(|| {
                self.records.push(T::default());
                u32::try_from(self.records.len() - 1).expect("no more records than pages")
            });
        }
        &mut self.records[*index as usize]
    }

    /// The record at `index` if there is one.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.records.get(index as usize)
    }

    /// Gives back a record that is empty; whoever gets it next has its memory.
    pub(crate) fn give_back(&mut self, index: &mut u32) {
        let old = std::mem::replace(index, NO_RECORD);
        if old != NO_RECORD {
            self.free.push(old);
        }
    }

    /// Forgets the record and returns what it was.
    pub(crate) fn take(&mut self, index: &mut u32) -> T {
        let old = std::mem::replace(index, NO_RECORD);
        match self.records.get_mut(old as usize) {
            Some(record) => {
                self.free.push(old);
                std::mem::take(record)
            }
            None => T::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_reused_and_come_back_empty() {
        let mut slab = Slab::<Vec<u8>>::default();
        let (mut a, mut b) = (NO_RECORD, NO_RECORD);
        assert_eq!(slab.get(a), None);
        slab.record(&mut a).push(5);
        assert_eq!(slab.get(a), Some(&vec![5]));
        assert_eq!(slab.take(&mut a), [5]);
        assert_eq!((slab.record(&mut b).len(), a), (0, NO_RECORD));
        assert_eq!(slab.records.len(), 1);
        assert!(slab.take(&mut a).is_empty());
    }

    #[test]
    fn records_that_are_given_back_keep_their_memory() {
        let mut slab = Slab::<Vec<u8>>::default();
        let (mut a, mut b) = (NO_RECORD, NO_RECORD);
        slab.give_back(&mut a);
        slab.record(&mut a).reserve(100);
        slab.give_back(&mut a);
        assert!(slab.record(&mut b).capacity() >= 100);
        assert_eq!((a, slab.records.len(), slab.free.len()), (NO_RECORD, 1, 0));
    }
}
