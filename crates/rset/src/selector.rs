//! Which allocations of a program are meant: by size and by the place in its code that asks for them.

use crate::TextError;
use gondwana_topology::Bytes;
use std::fmt;
use std::ops::RangeInclusive;

/// Some of a program's allocations.
///
/// Written as `all`, `>=1M`, `<64K`, `parse_input`, `libxml2.so!xmlNewNode+0x1a`, or several of them with `&` between,
/// all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// How many bytes are asked for.
    pub sizes: RangeInclusive<usize>,
    /// Where the call is, if that matters.
    pub site: Option<AllocationSite>,
}

/// A place in a program's code that calls `malloc` or one of its relatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationSite {
    /// The file name of the library that it is in; `libx.so` means `libx.so.1`, too. Without one it is in the
    /// executable.
    pub object: Option<String>,
    /// The function that has the call.
    pub function: String,
    /// The bytes from the function's beginning to where the call returns to, as backtraces print it; any call of the
    /// function if there is none.
    pub offset: Option<usize>,
}

impl Selector {
    /// Reads a selector that ends with the text or before a `=`; also tells its length in bytes.
    pub fn parse_prefix(text: &str) -> Result<(Self, usize), TextError> {
        let mut parser = Parser { text, at: 0 };
        let mut selector = Self { sizes: 0..=usize::MAX, site: None };
        loop {
            parser.term(&mut selector)?;
            parser.skip_spaces();
            match parser.rest().chars().next() {
                None | Some('=') => return Ok((selector, parser.at)),
                Some('&') => parser.at += 1,
                Some(strange) => {
                    return Err(parser
                        .error(strange.len_utf8(), "one of & (and) or = (before the policy) is missing"));
                }
            }
        }
    }

    /// True if an allocation of so many bytes may be meant.
    #[must_use]
    pub fn has_size(&self, bytes: usize) -> bool {
        self.sizes.contains(&bytes)
    }
}

/// The sizes that compare like this with one; `None` if there are none.
type Compare = fn(usize) -> Option<RangeInclusive<usize>>;

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// What names of functions and of libraries are made of, also those of C++ and of compilers' copies.
fn is_of_symbol(c: char) -> bool {
    c.is_alphanumeric() || "_.$-~".contains(c)
}

impl<'a> Parser<'a> {
    fn term(&mut self, selector: &mut Selector) -> Result<(), TextError> {
        self.skip_spaces();
        let start = self.at;
        let comparisons: [(&str, Compare); 4] = [
            (">=", |bytes| Some(bytes..=usize::MAX)),
            ("<=", |bytes| Some(0..=bytes)),
            (">", |bytes| Some(bytes.checked_add(1)?..=usize::MAX)),
            ("<", |bytes| Some(0..=bytes.checked_sub(1)?)),
        ];
        for (sign, sizes) in comparisons {
            if self.takes(sign) {
                let bytes = self.size()?;
                let (old, new) = (&selector.sizes, sizes(bytes));
                let both = new.map(|new| *old.start().max(new.start())..=*old.end().min(new.end()));
                selector.sizes = both
                    .filter(|sizes| !sizes.is_empty())
                    .ok_or_else(|| TextError::new(self.text, start, self.at - start, "no size is left"))?;
                return Ok(());
            }
        }
        let word = self.word();
        if word == "all" {
            self.at += word.len();
            return Ok(());
        }
        let site = self.site()?;
        if selector.site.replace(site).is_some() {
            return Err(TextError::new(self.text, start, self.at - start, "a call is in one function only"));
        }
        Ok(())
    }

    fn size(&mut self) -> Result<usize, TextError> {
        self.skip_spaces();
        let start = self.at;
        let word = self.word();
        self.at += word.len();
        let bytes = word.parse().ok().and_then(|Bytes(bytes)| usize::try_from(bytes).ok());
        bytes.ok_or_else(|| {
            TextError::new(self.text, start, word.len(), "a size is missing, such as 4096, 64K, 1M or 2G")
        })
    }

    fn site(&mut self) -> Result<AllocationSite, TextError> {
        let object = self.object();
        let function = self.name(match object {
            None => "a size such as >=1M, the name of a function or all is missing",
            Some(_) => "the name of a function is missing",
        })?;
        let offset = if self.takes("+") { Some(self.offset()?) } else { None };
        Ok(AllocationSite { object, function, offset })
    }

    /// What is before a `!`. Names of libraries, unlike those of functions, may have a `+`, as libstdc++ does.
    fn object(&mut self) -> Option<String> {
        let (object, _) = self.rest().split_once('!')?;
        if object.is_empty() || !object.chars().all(|c| is_of_symbol(c) || c == '+') {
            return None;
        }
        self.at += object.len() + 1;
        Some(object.to_owned())
    }

    fn name(&mut self, missing: &str) -> Result<String, TextError> {
        let word = self.word();
        if word.is_empty() {
            let length = self.rest().chars().next().map_or(0, char::len_utf8);
            return Err(self.error(length, missing));
        }
        self.at += word.len();
        Ok(word.to_owned())
    }

    fn offset(&mut self) -> Result<usize, TextError> {
        let word = self.word();
        let number = match word.strip_prefix("0x") {
            Some(digits) => usize::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let number =
            number.ok_or_else(|| self.error(word.len(), "an offset is a number such as 0x1a or 26"))?;
        self.at += word.len();
        Ok(number)
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let there = self.rest().starts_with(wanted);
        if there {
            self.at += wanted.len();
        }
        there
    }

    fn word(&self) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find(|c| !is_of_symbol(c)).unwrap_or(rest.len())]
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, length: usize, message: &str) -> TextError {
        TextError::new(self.text, self.at, length, message)
    }
}

/// What [`Selector::parse_prefix`] reads.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (*self.sizes.start(), *self.sizes.end());
        let least = (least > 0).then(|| format!(">={}", amount(least)));
        let most = (most < usize::MAX).then(|| format!("<={}", amount(most)));
        let terms = [least, most, self.site.as_ref().map(AllocationSite::to_string)];
        let terms: Vec<String> = terms.into_iter().flatten().collect();
        if terms.is_empty() { f.write_str("all") } else { f.write_str(&terms.join("&")) }
    }
}

/// Exact, in the largest unit.
fn amount(bytes: usize) -> String {
    let units = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    match units.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift) {
        Some((unit, shift)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

impl fmt::Display for AllocationSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = &self.object {
            write!(f, "{object}!")?;
        }
        f.write_str(&self.function)?;
        self.offset.map_or(Ok(()), |offset| write!(f, "+{offset:#x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_come_back_as_they_were_written() {
        for text in [
            "all",
            ">=1M",
            "<=65535",
            ">=4K&<=10000",
            "parse_input",
            "parse.constprop.0+0x1a",
            "libxml2.so!xmlNewNode+0x20",
            ">=64K&libstdc++.so.6!_Znwm",
        ] {
            let (selector, length) = Selector::parse_prefix(text).unwrap();
            assert_eq!((selector.to_string().as_str(), length), (text, text.len()));
        }
    }

    #[test]
    fn what_is_meant_is_read_up_to_the_policy() {
        let (selector, length) = Selector::parse_prefix(" > 1K & <4K & f+26 =striped").unwrap();
        assert_eq!((selector.to_string().as_str(), length), (">=1025&<=4095&f+0x1a", 19));
        assert!(selector.has_size(1025) && selector.has_size(4095));
        assert!(!selector.has_size(1024) && !selector.has_size(4096));
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, column, message) in [
            ("", 1, "a size such as >=1M, the name of a function or all is missing"),
            (">=", 3, "a size is missing, such as 4096, 64K, 1M or 2G"),
            (">=1X", 3, "a size is missing, such as 4096, 64K, 1M or 2G"),
            (">=99999999T", 3, "a size is missing, such as 4096, 64K, 1M or 2G"),
            ("<0", 1, "no size is left"),
            (">=1M&<1M", 6, "no size is left"),
            ("f & g", 5, "a call is in one function only"),
            ("lib.so!", 8, "the name of a function is missing"),
            ("f+", 3, "an offset is a number such as 0x1a or 26"),
            ("f+0xg", 3, "an offset is a number such as 0x1a or 26"),
            ("f|g", 2, "one of & (and) or = (before the policy) is missing"),
        ] {
            let error = Selector::parse_prefix(text).unwrap_err();
            assert_eq!((error.column(), error.message()), (column, message), "{text}");
        }
    }
}
