//! One named set, and the names that sets may have.

use crate::{RSet, RegistryError};

/// Words that mean something of their own where the name of a set could be.
pub const RESERVED_NAMES: [&str; 12] =
    ["all", "none", "node", "cpu", "proc", "mem", "fill", "float", "local", "remote", "striped", "block"];

/// The longest name that a set may have, in bytes.
const LONGEST_NAME: usize = 64;

/// A named set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it holds.
    pub rset: RSet,
    /// The set that it is part of; `None`: of the machine.
    pub parent: Option<String>,
    /// True if it doesn't overlap with other exclusive parts of its parent.
    pub exclusive: bool,
    /// How a person wrote it.
    pub written: Option<String>,
}

impl Entry {
    /// A part of the machine that may overlap with others.
    #[must_use]
    pub fn new(rset: RSet) -> Self {
        Self { rset, parent: None, exclusive: false, written: None }
    }
}

/// True if a name may have this character. `-` is none of them: it is the difference of sets.
pub(crate) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Says whether a set may have this name: letters, digits, `_` and `.`, not beginning with a digit.
///
/// # Examples
/// ```
/// use gondwana_rset::check_name;
///
/// assert!(check_name("left_half").is_ok());
/// assert!(check_name("node").is_err());
/// ```
pub fn check_name(name: &str) -> Result<(), RegistryError> {
    let error = |why: &str| Err(RegistryError::Name { name: name.to_owned(), why: why.to_owned() });
    if name.is_empty() {
        return error("a name has a character at least");
    }
    if let Some(strange) = name.chars().find(|c| !is_of_name(*c)) {
        return error(&format!("{strange:?} is neither a letter nor a digit, '_' or '.'"));
    }
    if name.starts_with(|c: char| c.is_numeric() || c == '.') {
        return error("it begins neither with a letter nor with '_'");
    }
    if name.len() > LONGEST_NAME {
        return error(&format!("it has more than {LONGEST_NAME} bytes"));
    }
    if RESERVED_NAMES.contains(&name) { error("it has a meaning of its own") } else { Ok(()) }
}
