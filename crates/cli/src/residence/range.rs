//! Addresses as users write them.

use std::ops::Range;
use std::str::FromStr;

/// A range of addresses with at least one in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddressRange(Range<usize>);

/// The end of user addresses on x86-64 with five levels of page tables.
const END: usize = 1 << 56;

impl AddressRange {
    /// The whole pages that contain these addresses.
    pub(super) fn pages(&self, size: usize) -> Range<usize> {
        self.0.start - self.0.start % size..self.0.end.next_multiple_of(size)
    }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let plain = digits.strip_prefix("0x").unwrap_or(digits);
            // The parser of numbers would take a sign.
            let number = usize::from_str_radix(plain, 16).ok().filter(|_| !plain.starts_with('+'));
            number.ok_or_else(|| format!("'{digits}' is no hexadecimal number"))
        };
        let range = if let Some((start, end)) = text.split_once('-') {
            number(start)?..number(end)?
        } else if let Some((start, length)) = text.split_once('+') {
            let (start, length) = (number(start)?, number(length)?);
            start..start.checked_add(length).ok_or("these addresses are beyond the last one")?
        } else {
            return Err("a range is START-END or START+LENGTH, as in 7f0000000000+200000".to_owned());
        };
        match range {
            range if range.is_empty() => Err("there is no address in this range".to_owned()),
            range if range.end > END => Err("these addresses are beyond the last one".to_owned()),
            range => Ok(Self(range)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        for text in ["7f001000-7f003000", "0x7f001000-0x7f003000", "7f001000+2000"] {
            assert_eq!(text.parse(), Ok(AddressRange(0x7f00_1000..0x7f00_3000)), "{text}");
        }
        let odd: AddressRange = "1001-1002".parse().unwrap();
        assert_eq!(odd.pages(4096), 0x1000..0x2000);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, why) in [
            ("7f00", "a range is"),
            ("x-y", "'x' is no hexadecimal number"),
            ("1-+2", "'+2' is no"),
            ("2000-1000", "no address"),
            ("1000+0", "no address"),
            ("ffffffffffffffff+1", "beyond the last"),
            ("0-ffffffffffffffff", "beyond the last"),
        ] {
            let error = text.parse::<AddressRange>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
