//! The reader of debug information, and the identifiers of its entries.

use gimli::{EndianArcSlice, LittleEndian};

pub(super) type Reader = EndianArcSlice<LittleEndian>;
pub(super) type Dwarf = gimli::Dwarf<Reader>;
pub(super) type Entry = gimli::DebuggingInformationEntry<Reader>;
pub(super) type Value = gimli::AttributeValue<Reader>;

/// The most references that are followed from one entry.
pub(super) const CHAIN: usize = 32;

/// An entry of the debugging information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    /// The unit, by its index in the survey.
    pub(super) unit: u32,
    /// The offset in the unit, in bytes.
    pub(super) entry: usize,
}
