//! What a run is told about the homes of its pages.

use gondwana_rset::MemoryPolicy;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which homes the pages of a run get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Homes {
    /// For all memory that no rule is about.
    pub policy: MemoryPolicy,
    /// For some of it; of several rules that are about the same memory, the first one counts.
    pub rules: Vec<Rule>,
}

/// The homes of some memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The file name of the library that the addresses are in; `None` for the executable.
    pub library: Option<String>,
    /// Which memory.
    pub target: Target,
    /// Its homes.
    pub policy: MemoryPolicy,
}

/// Which memory a rule is about. Addresses are those in the file, as the linker gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A global variable.
    Variable(Range<u64>),
    /// What is allocated by calls from this code.
    Site {
        /// Where the calls are; what counts is the address before the one that the call returns to.
        calls: Vec<Range<u64>>,
        /// Fewest and most bytes of an allocation that is meant.
        bytes: (u64, u64),
    },
}
