//! What a plan says.

use crate::Site;
use gondwana_rset::MemoryPolicy;

/// A plan. Of several entries about the same memory, the first one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// About global variables.
    pub variables: Vec<Variable>,
    /// About what is allocated.
    pub allocations: Vec<Allocation>,
}

/// Where a global variable goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The line of the plan that names it, counted from 1.
    pub line: usize,
    /// Its name in the program, in C++ with its namespaces.
    pub name: String,
    /// The file name of the library that defines it; `None` for the executable.
    pub library: Option<String>,
    /// Where it goes.
    pub policy: MemoryPolicy,
    /// Why, for people.
    pub reason: String,
}

/// Where the memory goes that is allocated at one place of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The line of the plan that names the place, counted from 1.
    pub line: usize,
    /// The place.
    pub site: Site,
    /// The file name of the library that the place is in; `None` for the executable.
    pub library: Option<String>,
    /// Smallest allocation that is meant, in bytes.
    pub min_bytes: u64,
    /// Largest one.
    pub max_bytes: u64,
    /// Where it goes.
    pub policy: MemoryPolicy,
    /// Why, for people.
    pub reason: String,
}
