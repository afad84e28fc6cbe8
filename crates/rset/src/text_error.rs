use std::fmt;

/// What is wrong with a text that a person wrote, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    text: String,
    at: usize,
    length: usize,
    message: String,
}

impl TextError {
    pub(crate) fn new(text: &str, at: usize, length: usize, message: impl Into<String>) -> Self {
        Self { text: text.to_owned(), at, length, message: message.into() }
    }

    /// What is wrong with a part of a text; the whole of it is meant if there is no such part.
    #[must_use]
    pub fn about(text: &str, part: &str, message: impl Into<String>) -> Self {
        match text.find(part) {
            Some(at) => Self::new(text, at, part.len(), message),
            None => Self::new(text, 0, text.len(), message),
        }
    }

    /// The same error in a text that this one is part of, from byte `at` on.
    pub(crate) fn within(self, text: &str, at: usize) -> Self {
        Self { text: text.to_owned(), at: self.at + at, ..self }
    }

    /// What is wrong, in one sentence without a full stop.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it is, counted in characters from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    /// The text, and below it marks that point at the place.
    #[must_use]
    pub fn picture(&self) -> String {
        // A line break or a tab would move what is below it elsewhere.
        let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let meant = self.text[self.at..self.at + self.length].chars().count().max(1);
        format!("{line}\n{:indent$}{}", "", "^".repeat(meant), indent = self.column() - 1)
    }
}

/// The sentence, and the picture below it.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        self.picture().lines().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl std::error::Error for TextError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_below_what_is_meant() {
        let error = TextError::new("é|\tcpu:99", 8, 2, "no such processor");
        assert_eq!(error.column(), 8);
        assert_eq!(error.to_string(), "no such processor\n  é| cpu:99\n         ^^");
        let end = TextError::new("web|", 4, 0, "something is missing");
        assert_eq!(end.picture(), "web|\n    ^");
    }
}
