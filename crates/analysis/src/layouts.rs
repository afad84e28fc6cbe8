//! The layouts of objects, for naming addresses without the program's files.

use std::collections::HashMap;

/// The most layouts that are kept; objects with others have no named parts.
const MOST: usize = 20_000;

/// A type, as far as its parts have names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// No part has a name.
    Plain,
    /// Elements by rows.
    Array {
        /// The layout of an element.
        element: u32,
        /// The length of an element, in bytes; not 0.
        bytes: u64,
        /// The count of each dimension, outermost first. The outermost may be 0: then the array has no end.
        counts: Vec<u64>,
    },
    /// Members; where several are at the same place, the first one counts.
    Struct(Vec<Member>),
}

/// A member of a [`Layout::Struct`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// The suffix to the name of the whole; may be empty.
    pub text: String,
    /// Its first byte.
    pub start: u64,
    /// Its length in bytes; `u64::MAX` if it has no end.
    pub bytes: u64,
    /// Its layout.
    pub of: u32,
}

/// Layouts by number; equal layouts have one number.
#[derive(Clone, Debug)]
pub struct Layouts {
    all: Vec<Layout>,
    numbers: HashMap<Layout, u32>,
}

impl Default for Layouts {
    fn default() -> Self {
        Self { all: vec![Layout::Plain], numbers: HashMap::from([(Layout::Plain, Self::PLAIN)]) }
    }
}

impl Layouts {
    /// The number of [`Layout::Plain`].
    pub const PLAIN: u32 = 0;

    /// The number of a layout whose elements and members have numbers already.
    pub fn number(&mut self, layout: Layout) -> u32 {
        if let Some(&known) = self.numbers.get(&layout) {
            return known;
        }
        if self.all.len() >= MOST {
            return Self::PLAIN;
        }
        let number = u32::try_from(self.all.len()).expect("below MOST");
        self.numbers.insert(layout.clone(), number);
        self.all.push(layout);
        number
    }

    /// All layouts, by number.
    #[must_use]
    pub fn all(self) -> Vec<Layout> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_layouts_are_one_and_there_is_an_end_to_them() {
        let array = |bytes| Layout::Array { element: Layouts::PLAIN, bytes, counts: vec![3] };
        let mut layouts = Layouts::default();
        assert_eq!((layouts.number(Layout::Plain), layouts.number(array(8))), (Layouts::PLAIN, 1));
        assert_eq!((layouts.number(array(4)), layouts.number(array(8))), (2, 1));
        let last = (0..2 * MOST as u64).map(|bytes| layouts.number(array(bytes + 100))).last();
        assert_eq!((last, layouts.all().len()), (Some(Layouts::PLAIN), MOST));
    }
}
