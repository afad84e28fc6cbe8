//! Locations in the code of a program, such as a call that allocates memory.

use std::fmt;
use std::str::FromStr;

/// A location in the code of a program: of an allocation, or of its caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CodeLocation {
    /// Anywhere in a function: `solve`.
    Function(String),
    /// The call with this return address, as an offset in a function, as in a debugger's backtrace: `solve+0x4f`.
    Call(String, u64),
    /// A line of the source, for programs with debugging information: `grid.c:120`.
    Line(String, u32),
}

/// The error for a text that is no location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no place in a program: write function, function+0x4f or file.c:120")]
pub struct CodeLocationError(String);

impl CodeLocation {
    /// True if a plan can contain the location: function names of debuggers or recordings may not be readable by the
    /// parser.
    #[must_use]
    pub fn can_be_written(&self) -> bool {
        self.to_string().parse().as_ref() == Ok(self)
    }
}

impl FromStr for CodeLocation {
    type Err = CodeLocationError;

    fn from_str(text: &str) -> Result<Self, CodeLocationError> {
        let wrong = || CodeLocationError(text.to_owned());
        if text.trim() != text || text.is_empty() {
            return Err(wrong());
        }
        // C++ names have pairs of colons.
        if let Some((file, line)) = text.rsplit_once(':').filter(|(file, _)| !file.ends_with(':'))
            && line.starts_with(|first: char| first.is_ascii_digit())
        {
            let line = line.parse().ok().filter(|line| *line > 0).ok_or_else(wrong)?;
            return if file.is_empty() { Err(wrong()) } else { Ok(Self::Line(file.to_owned(), line)) };
        }
        match text.rsplit_once("+0x") {
            Some((function, offset)) if !function.is_empty() => {
                let offset = u64::from_str_radix(offset, 16).map_err(|_| wrong())?;
                Ok(Self::Call(function.to_owned(), offset))
            }
            Some(_) => Err(wrong()),
            None => Ok(Self::Function(text.to_owned())),
        }
    }
}

/// As [`CodeLocation::from_str`] reads it.
impl fmt::Display for CodeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(name) => f.write_str(name),
            Self::Call(name, offset) => write!(f, "{name}+{offset:#x}"),
            Self::Line(file, line) => write!(f, "{file}:{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for (text, site) in [
            ("solve", CodeLocation::Function("solve".into())),
            ("a::b<int>::c(long)", CodeLocation::Function("a::b<int>::c(long)".into())),
            ("operator+", CodeLocation::Function("operator+".into())),
            ("solve+0x4f", CodeLocation::Call("solve".into(), 0x4f)),
            ("src/grid.c:120", CodeLocation::Line("src/grid.c".into(), 120)),
        ] {
            assert_eq!(text.parse(), Ok(site.clone()));
            assert_eq!(site.to_string(), text);
        }
    }

    #[test]
    fn only_places_that_are_read_as_they_are_can_be_written() {
        for name in ["", " f", "f ", "f+0x9", "a.c:12"] {
            assert!(!CodeLocation::Function(name.into()).can_be_written(), "{name}");
        }
        assert!(!CodeLocation::Line("a.c".into(), 0).can_be_written());
        assert!(CodeLocation::Call("a\u{1b}b".into(), u64::MAX).can_be_written());
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in ["", " a", "+0x4", "f+0x", "f+0xzz", "grid.c:0", ":7", "grid.c:99999999999"] {
            assert_eq!(text.parse::<CodeLocation>(), Err(CodeLocationError(text.to_owned())), "{text}");
        }
    }
}
