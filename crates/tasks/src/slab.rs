//! Values with small numbers, which are used again.

use std::ops::{Index, IndexMut};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: vec![], free: vec![] }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(value);
            return number;
        }
        self.entries.push(Some(value));
        u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 tasks at a time")
    }

    pub(crate) fn remove(&mut self, number: u32) {
        self.entries[number as usize] = None;
        self.free.push(number);
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.entries.get(number as usize).is_some_and(Option::is_some)
    }

    /// All values, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.entries).filter_map(|(number, entry)| Some((number, entry.as_ref()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        self.entries[number as usize].as_ref().expect("the number is in use")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.entries[number as usize].as_mut().expect("the number is in use")
    }
}
