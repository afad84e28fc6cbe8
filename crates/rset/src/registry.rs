//! Sets under names, one inside the other.

use crate::{Entry, RegistryError, check_name};
use std::collections::BTreeMap;

/// Named sets, one inside the other: a partition of the machine has parts of its own.
///
/// At any time each set is contained in its parent, and two exclusive parts of one parent don't overlap. Parts without
/// a parent are parts of the machine. Names that sets consist of are looked up once, when they are made: what a name
/// means changes only by removing and making it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    entries: BTreeMap<String, Entry>,
}

impl Registry {
    /// The set with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// All sets in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The parts of a set, or of the machine (`None`).
    pub fn parts<'a>(&'a self, parent: Option<&'a str>) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        self.iter().filter(move |(_, entry)| entry.parent.as_deref() == parent)
    }

    /// True if there are no sets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names a set.
    ///
    /// # Examples
    /// ```
    /// use gondwana_rset::{Entry, RSet, Registry};
    /// use gondwana_topology::{Bytes, Machine};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// let mut registry = Registry::default();
    /// let half = RSet::parse("node:0", &machine, &registry)?;
    /// registry.add("half", Entry::new(half))?;
    /// assert_eq!(RSet::parse("all - half", &machine, &registry)?.memory().to_string(), "1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add(&mut self, name: &str, entry: Entry) -> Result<(), RegistryError> {
        check_name(name)?;
        if self.entries.contains_key(name) {
            return Err(RegistryError::Exists(name.to_owned()));
        }
        self.check_fits(name, &entry)?;
        self.entries.insert(name.to_owned(), entry);
        Ok(())
    }

    /// Forgets a set that has no parts.
    pub fn remove(&mut self, name: &str) -> Result<Entry, RegistryError> {
        if let Some((part, _)) = self.parts(Some(name)).next() {
            return Err(RegistryError::HasParts { name: name.to_owned(), part: part.to_owned() });
        }
        self.entries.remove(name).ok_or_else(|| RegistryError::Unknown(name.to_owned()))
    }

    /// Forgets a set, its parts, their parts and so on; says how many there were.
    pub fn remove_all(&mut self, name: &str) -> Result<usize, RegistryError> {
        let parts: Vec<String> = self.parts(Some(name)).map(|(part, _)| part.to_owned()).collect();
        let mut removed = 1;
        for part in parts {
            removed += self.remove_all(&part)?;
        }
        self.remove(name).map(|_| removed)
    }

    /// A registry of these sets, whichever order they are in.
    pub(crate) fn from_entries(entries: BTreeMap<String, Entry>) -> Result<Self, (String, RegistryError)> {
        let mut registry = Self::default();
        for name in entries.keys() {
            registry.add_with_parents(name, &entries).map_err(|error| (name.clone(), error))?;
        }
        Ok(registry)
    }

    fn add_with_parents(&mut self, name: &str, all: &BTreeMap<String, Entry>) -> Result<(), RegistryError> {
        // From the set upwards to the first one that is there.
        let mut missing = vec![name];
        while let Some(entry) = all.get(missing[missing.len() - 1])
            && let Some(parent) = entry.parent.as_deref().filter(|parent| !self.entries.contains_key(*parent))
        {
            if missing.len() > all.len() {
                return Err(RegistryError::Circle(name.to_owned()));
            }
            missing.push(parent);
        }
        for name in
            missing.into_iter().rev().filter(|name| !self.entries.contains_key(*name)).collect::<Vec<_>>()
        {
            let entry = all.get(name).ok_or_else(|| RegistryError::Unknown(name.to_owned()))?;
            self.add(name, entry.clone())?;
        }
        Ok(())
    }

    fn check_fits(&self, name: &str, entry: &Entry) -> Result<(), RegistryError> {
        if entry.rset.is_empty() {
            return Err(RegistryError::Empty(name.to_owned()));
        }
        if let Some(parent) = &entry.parent {
            let outer = self.get(parent).ok_or_else(|| RegistryError::Unknown(parent.clone()))?;
            let excess = entry.rset.difference(&outer.rset);
            if !excess.is_empty() {
                let (name, parent) = (name.to_owned(), parent.clone());
                return Err(RegistryError::NotContained { name, parent, excess: Box::new(excess) });
            }
        }
        let mut exclusive = self.parts(entry.parent.as_deref()).filter(|(_, sibling)| sibling.exclusive);
        match exclusive.find(|(_, sibling)| entry.exclusive && sibling.rset.overlaps(&entry.rset)) {
            Some((sibling, with)) => {
                let (name, sibling) = (name.to_owned(), sibling.to_owned());
                let shared = Box::new(with.rset.intersection(&entry.rset));
                Err(RegistryError::Overlap { name, sibling, shared })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
