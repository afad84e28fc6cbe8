//! Why a change of a registry is refused.

use crate::RSet;

/// Why a registry stays as it is. Each message is one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// No set can have this name.
    #[error("'{}' can't be the name of a set: {why}", name.escape_debug())]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The name is in use.
    #[error("there is a set named '{0}' already")]
    Exists(String),
    /// The name isn't in use.
    #[error("there is no set named '{}'", .0.escape_debug())]
    Unknown(String),
    /// A set would hold nothing.
    #[error("the set '{0}' would be empty")]
    Empty(String),
    /// A set would have what its parent hasn't.
    #[error("'{parent}' doesn't contain {excess}, so '{name}' can't be a part of it")]
    NotContained {
        /// The set.
        name: String,
        /// The parent.
        parent: String,
        /// What the parent lacks.
        excess: Box<RSet>,
    },
    /// Two exclusive parts of one parent would overlap.
    #[error("'{name}' and '{sibling}' are exclusive and would share {shared}")]
    Overlap {
        /// One set.
        name: String,
        /// The other, which is there already.
        sibling: String,
        /// What both would have.
        shared: Box<RSet>,
    },
    /// The set has parts.
    #[error("the set '{name}' has parts ('{part}'): remove them first")]
    HasParts {
        /// The set.
        name: String,
        /// One of its parts.
        part: String,
    },
    /// Parents make a circle.
    #[error("the set '{0}' is a part of itself")]
    Circle(String),
}
