//! Transactions between nodes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What kind of transaction. The numbers are part of the format of recordings: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// A page fetched for a read, which this node had before and lost to a writer: a coherence miss.
    Read = 0,
    /// A page fetched for a write, which this node had before and lost to a writer.
    Write = 1,
    /// A page fetched for a read that this node never had: a cold miss.
    ColdRead = 2,
    /// A page fetched for a write that this node never had.
    ColdWrite = 3,
    /// A page fetched for a read that this node had before and did not lose to a writer: an excess miss (WildFire,
    /// section 3.2).
    ExcessRead = 4,
    /// A page fetched for a write that this node had before and did not lose to a writer.
    ExcessWrite = 5,
    /// A page that was prefetched: it came along with another, before it was touched.
    Prefetched = 6,
    /// The first write of a page that this node had for reading.
    Upgrade = 7,
    /// Written bytes that went to the home of their page.
    Diff = 8,
    /// A write notice: another node has changed the page.
    Notice = 9,
    /// A copy that was given up because another node has written.
    Invalidation = 10,
    /// A page that this node had for itself alone, and another node asked for.
    Recall = 11,
    /// A lock that came from another node.
    LockHandOff = 12,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Read,
        Self::Write,
        Self::ColdRead,
        Self::ColdWrite,
        Self::ExcessRead,
        Self::ExcessWrite,
        Self::Prefetched,
        Self::Upgrade,
        Self::Diff,
        Self::Notice,
        Self::Invalidation,
        Self::Recall,
        Self::LockHandOff,
    ];

    /// Its name in filters, tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ColdRead => "cold-read",
            Self::ColdWrite => "cold-write",
            Self::ExcessRead => "excess-read",
            Self::ExcessWrite => "excess-write",
            Self::Prefetched => "ahead",
            Self::Upgrade => "upgrade",
            Self::Diff => "diff",
            Self::Notice => "notice",
            Self::Invalidation => "invalidation",
            Self::Recall => "recall",
            Self::LockHandOff => "lock",
        }
    }

    /// True for fetches that a thread waited for.
    #[must_use]
    pub fn is_fetch(self) -> bool {
        self <= Self::ExcessWrite
    }
}

/// As [`Kind::name`] has it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kinds(u16);

/// Words for more than one kind.
const GROUPS: [(&str, &[Kind]); 5] = [
    ("all", &Kind::ALL),
    ("reads", &[Kind::Read, Kind::ColdRead, Kind::ExcessRead]),
    ("writes", &[Kind::Write, Kind::ColdWrite, Kind::ExcessWrite]),
    (
        "fetches",
        &[Kind::Read, Kind::Write, Kind::ColdRead, Kind::ColdWrite, Kind::ExcessRead, Kind::ExcessWrite],
    ),
    ("excess", &[Kind::ExcessRead, Kind::ExcessWrite]),
];

impl Kinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind.
    pub const ALL: Self = Self((1 << Kind::ALL.len()) - 1);

    /// These kinds.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> Self {
        let mut set = 0;
        let mut index = 0;
        while index < kinds.len() {
            set |= 1 << kinds[index] as u16;
            index += 1;
        }
        Self(set)
    }

    /// True if the kind is in the set.
    #[inline]
    #[must_use]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }

    /// True if no kind is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kinds that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The set as a number: bit k stands for the kind with number k.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set of such a number; bits that stand for no kind are left out.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The kinds in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |&kind| self.contains(kind))
    }
}

/// A word that stands for no kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind(pub String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = GROUPS.map(|(name, _)| name).join(", ");
        let kinds = Kind::ALL.map(Kind::name).join(", ");
        write!(f, "\"{}\" is no kind of transaction: they are {kinds}, and the groups {groups}", self.0)
    }
}

impl std::error::Error for UnknownKind {}

/// Reads names of kinds or groups with `+` between them, as in `reads+diff`.
impl FromStr for Kinds {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        text.split('+').try_fold(Self::NONE, |set, word| {
            let group = GROUPS.iter().find(|(name, _)| *name == word).map(|(_, kinds)| Self::of(kinds));
            let kind =
                || Kind::ALL.into_iter().find(|kind| kind.name() == word).map(|kind| Self::of(&[kind]));
            let more = group.or_else(kind).ok_or_else(|| UnknownKind(word.to_owned()))?;
            Ok(Self(set.0 | more.0))
        })
    }
}

/// Which way a transaction went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Direction {
    /// This node has caused it.
    Out = 0,
    /// Another node has caused it, at this one.
    In = 1,
}

/// One transaction, as one node saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What it was.
    pub kind: Kind,
    /// Which way it went.
    pub direction: Direction,
    /// The address that a thread has touched, where that is known, or else the first address of the page, or of the
    /// part of it, that the transaction was about. Of a lock, its address.
    pub address: u64,
    /// Bytes of contents that moved.
    pub bytes: u32,
    /// The other node: of a fetch the home (or owner), of a notice the writer.
    pub peer: u16,
    /// The thread of the program that caused it on this node, by its number for people (0 runs `main`); `None` if no thread did, or nobody knows.
    pub thread: Option<u32>,
    /// The address of the instruction that touched the page; 0 if nobody knows.
    pub code: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_as_they_are_listed() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(kind.name().parse(), Ok(Kinds::of(&[kind])));
        }
    }

    #[test]
    fn sets_are_read_by_name() {
        assert_eq!("all".parse(), Ok(Kinds::ALL));
        let set: Kinds = "reads+diff".parse().unwrap();
        assert_eq!(
            set.iter().map(Kind::name).collect::<Vec<_>>(),
            ["read", "cold-read", "excess-read", "diff"]
        );
        assert_eq!("reads+".parse::<Kinds>(), Err(UnknownKind(String::new())));
        assert_eq!(Kinds::from_bits(u16::MAX), Kinds::ALL);
    }
}
