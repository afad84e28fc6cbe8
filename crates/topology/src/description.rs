//! Machines as text.

use crate::Machine;
use std::fmt;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A description that describes no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    /// The line, from 1, where one can be named.
    pub line: Option<usize>,
    /// The field, such as `node[1].distances`, where one can be named.
    pub field: Option<String>,
    /// What is wrong, in one line.
    pub message: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for DescriptionError {}

impl Machine {
    /// Reads a description.
    ///
    /// # Examples
    /// ```
    /// use gondwana_topology::{Bytes, Machine};
    ///
    /// let machine = Machine::uniform(2, 4, Bytes(1 << 30));
    /// assert_eq!(Machine::from_toml(&machine.to_toml())?, machine);
    /// # Ok::<(), gondwana_topology::DescriptionError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        let machine: Self = toml::from_str(text)
            .map_err(|error| DescriptionError::of(text, error.span(), error.message()))?;
        machine.check().map_err(|problem| {
            let path: Vec<Step> = match problem.of {
                Some((kind, index)) => vec![Step::Key(kind), Step::Index(index), Step::Key(problem.field)],
                None => vec![Step::Key(problem.field)],
            };
            DescriptionError::at(text, &path, problem.message)
        })?;
        Ok(machine)
    }

    /// The description of this machine.
    ///
    /// # Panics
    ///
    /// If an amount of memory is 8 EiB or more: the format has no number for it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a machine has a description")
    }
}

impl DescriptionError {
    fn at(text: &str, path: &[Step<'_>], message: String) -> Self {
        let line = span_of(text, path).map(|span| line_at(text, span.start));
        Self { line, field: Some(display(path)), message }
    }

    /// An error about the value that these keys lead to from the root of the text.
    #[must_use]
    pub fn at_path(text: &str, keys: &[&str], message: &str) -> Self {
        let path: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
        Self::at(text, &path, message.to_owned())
    }

    /// An error at a place in the text.
    #[must_use]
    pub fn of(text: &str, span: Option<Range<usize>>, message: &str) -> Self {
        // Messages of the parser may say what is expected on lines of their own.
        let mut message = message.lines().collect::<Vec<_>>().join(", ");
        let line = span.as_ref().map(|span| line_at(text, span.start));
        let mut field = None;
        if let (Some(root), Some(span)) = (parsed(text), &span) {
            let mut path = Vec::new();
            let found = path_to(root.get_ref(), root.span(), span, &mut path);
            field = (found && !path.is_empty()).then(|| display(&path));
        } else if let Some(piece) = span.and_then(|span| text.get(span))
            && !piece.trim().is_empty()
            && !piece.contains('\n')
        {
            message.push_str(&format!(", at '{piece}'"));
        }
        Self { line, field, message }
    }
}

/// One step on the way from the root of a description to a value.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn display(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.push_str(&format!(".{key}")),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The values of a text with their places.
fn parsed(text: &str) -> Option<Spanned<DeValue<'_>>> {
    let root = DeTable::parse(text).ok()?;
    Some(Spanned::new(root.span(), DeValue::Table(root.into_inner())))
}

/// Where the deepest value on a path is that the text has.
fn span_of(text: &str, path: &[Step<'_>]) -> Option<Range<usize>> {
    let root = parsed(text)?;
    let mut found = &root;
    for step in path {
        let next = match (step, found.get_ref()) {
            (Step::Key(key), DeValue::Table(table)) => table.get(*key),
            (Step::Index(index), DeValue::Array(array)) => array.get(*index),
            _ => None,
        };
        let Some(next) = next else { break };
        found = next;
    }
    Some(found.span())
}

/// Appends the way to the deepest key or value that has all of `span` within it; false if there is none.
///
/// A table that has a header isn't in one place, so a value that doesn't have `span` within itself may still hold one
/// that does.
fn path_to<'a>(
    value: &'a DeValue<'_>,
    own: Range<usize>,
    span: &Range<usize>,
    path: &mut Vec<Step<'a>>,
) -> bool {
    let covers = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let mut child = |step, key: Option<Range<usize>>, value: &'a Spanned<DeValue<'_>>| {
        path.push(step);
        let found = path_to(value.get_ref(), value.span(), span, path) || key.is_some_and(covers);
        if !found {
            path.pop();
        }
        found
    };
    let below = match value {
        DeValue::Table(table) => {
            table.iter().any(|(key, value)| child(Step::Key(key.get_ref()), Some(key.span()), value))
        }
        DeValue::Array(array) => {
            array.iter().enumerate().any(|(index, value)| child(Step::Index(index), None, value))
        }
        _ => false,
    };
    below || covers(own)
}

#[cfg(test)]
#[path = "description_tests.rs"]
mod tests;
