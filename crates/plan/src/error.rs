//! What is wrong with the text of a plan.

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PlanError {
    /// The line, counted from 1.
    pub line: usize,
    /// A sentence that names the field.
    pub what: String,
}

impl PlanError {
    /// At a byte of the text.
    pub(crate) fn at(text: &str, byte: usize, what: impl ToString) -> Self {
        Self { line: line_of(text, byte), what: what.to_string() }
    }
}

/// The line that a byte of the text is in, counted from 1.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes()[..byte.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
