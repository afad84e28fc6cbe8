//! Sets of small numbers, as bits in an array: no operation allocates.

use std::fmt;
use std::marker::PhantomData;

/// What can be a member of an [`IdSet`]: a number of its own kind.
pub trait Id: Copy {
    /// What one of them is called in messages.
    const NOUN: &'static str;

    /// The number as an index.
    fn index(self) -> usize;

    /// The one that has this number, which is below the capacity of the sets of its kind.
    fn from_index(index: usize) -> Self;
}

/// A set of up to `64 * WORDS` identifiers.
///
/// People and kernels write such sets as lists: `0-3,8`. That is the form of [`fmt::Display`],
/// [`std::str::FromStr`] and of texts made by serde; binary formats hold the words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdSet<I, const WORDS: usize> {
    words: [u64; WORDS],
    of: PhantomData<I>,
}

impl<I: Id, const WORDS: usize> IdSet<I, WORDS> {
    /// How many different members there can be.
    pub const CAPACITY: usize = 64 * WORDS;

    /// The set without members.
    pub const EMPTY: Self = Self::from_words([0; WORDS]);

    pub(crate) const fn from_words(words: [u64; WORDS]) -> Self {
        Self { words, of: PhantomData }
    }

    /// The members as bits, the lowest number in the lowest bit of the first word. Kernels take sets so.
    #[must_use]
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// The set of one member.
    ///
    /// # Examples
    /// ```
    /// use gondwana_topology::{NodeId, NodeSet};
    ///
    /// let set = NodeSet::only(NodeId(3)).union(&"0-1".parse()?);
    /// assert_eq!(set.to_string(), "0-1,3");
    /// # Ok::<(), gondwana_topology::ListError>(())
    /// ```
    #[must_use]
    pub fn only(member: I) -> Self {
        let mut set = Self::EMPTY;
        set.insert(member);
        set
    }

    /// Adds a member; true if it was none before.
    pub fn insert(&mut self, member: I) -> bool {
        let new = !self.contains(member);
        self.words[member.index() / 64] |= 1 << (member.index() % 64);
        new
    }

    /// Takes a member out; true if it was one.
    pub fn remove(&mut self, member: I) -> bool {
        let was = self.contains(member);
        if was {
            self.words[member.index() / 64] &= !(1 << (member.index() % 64));
        }
        was
    }

    /// True if this is a member.
    #[must_use]
    pub fn contains(&self, member: I) -> bool {
        self.words.get(member.index() / 64).is_some_and(|word| word >> (member.index() % 64) & 1 == 1)
    }

    /// True if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The member with the lowest number.
    #[must_use]
    pub fn first(&self) -> Option<I> {
        self.iter().next()
    }

    /// True if nothing other than `member` is in the set.
    #[must_use]
    pub fn is_subset_of(&self, member: I) -> bool {
        let mut rest = *self;
        rest.remove(member);
        rest.is_empty()
    }

    /// True if all members of `other` are members here too.
    #[must_use]
    pub fn contains_all(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(mine, others)| others & !mine == 0)
    }

    /// True if there is a member that is in `other` too.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(mine, others)| mine & others != 0)
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combined(other, |mine, others| mine | others)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |mine, others| mine & others)
    }

    /// What is here and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combined(other, |mine, others| mine & !others)
    }

    fn combined(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self::from_words(std::array::from_fn(|index| of(self.words[index], other.words[index])))
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = I> + use<I, WORDS> {
        let words = self.words;
        (0..WORDS).flat_map(move |index| {
            let mut word = words[index];
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros() as usize;
                    word &= word - 1;
                    I::from_index(index * 64 + bit)
                })
            })
        })
    }
}

impl<I: Id, const WORDS: usize> Default for IdSet<I, WORDS> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<I: Id, const WORDS: usize> FromIterator<I> for IdSet<I, WORDS> {
    fn from_iter<T: IntoIterator<Item = I>>(members: T) -> Self {
        let mut set = Self::EMPTY;
        for member in members {
            set.insert(member);
        }
        set
    }
}

impl<I: Id, const WORDS: usize> fmt::Debug for IdSet<I, WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use crate::{NodeId, NodeSet, ProcessorId, ProcessorSet};

    #[test]
    fn members_come_back_in_order() {
        let nodes = [NodeId(3), NodeId(64), NodeId(255)];
        let mut set: NodeSet = nodes.iter().rev().copied().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), nodes);
        assert_eq!((set.len(), set.first()), (3, Some(NodeId(3))));
        assert!(set.remove(NodeId(64)) && !set.remove(NodeId(64)));
        assert!(!set.insert(NodeId(3)));
        assert!(!set.is_subset_of(NodeId(3)));
        set.remove(NodeId(255));
        assert!(set.is_subset_of(NodeId(3)));
        assert!(NodeSet::EMPTY.is_subset_of(NodeId(0)));
    }

    #[test]
    fn a_number_beyond_the_capacity_is_no_member() {
        let mut all: ProcessorSet = (0..4096).map(ProcessorId).collect();
        assert_eq!(all.len(), ProcessorSet::CAPACITY);
        assert!(!all.contains(ProcessorId(4096)) && !all.remove(ProcessorId(u16::MAX)));
    }

    #[test]
    fn the_last_bit_of_each_word_takes_part() {
        let (low, high) = (ProcessorSet::only(ProcessorId(63)), ProcessorSet::only(ProcessorId(4095)));
        let both = low.union(&high);
        assert!(both.contains_all(&low) && !low.contains_all(&both));
        assert!(both.intersects(&high) && !low.intersects(&high));
        assert_eq!(both.difference(&low), high);
        assert_eq!(both.intersection(&low), low);
    }
}
