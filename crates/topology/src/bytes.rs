use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// An amount of memory. Written as `64GiB` or `64G` by people; data formats hold the number of bytes and also take the
/// text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// A text that is no amount of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesError(String);

impl fmt::Display for BytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no amount of memory such as 4096, 512KiB, 64M or 1TiB", self.0)
    }
}

impl std::error::Error for BytesError {}

/// Exact: in the largest unit of which it is a multiple.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, shift)| self.0 > 0 && self.0.trailing_zeros() >= *shift) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = (&text[..digits], text[digits..].trim_start());
        let shift = match UNITS.iter().find(|(name, _)| *name == unit || name[..1] == *unit) {
            Some((_, shift)) => Some(*shift),
            None => (unit.is_empty() || unit == "B").then_some(0),
        };
        let bytes =
            number.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
        bytes.map(Self).ok_or_else(|| BytesError(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Binary formats can't say whether a text or a number follows: they have the number.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(NumberOrText)
        } else {
            u64::deserialize(deserializer).map(Self)
        }
    }
}

struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount of memory such as 4096 or \"16GiB\"")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<Bytes, E> {
        Ok(Bytes(bytes))
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<Bytes, E> {
        u64::try_from(bytes).map(Bytes).map_err(|_| E::custom(BytesError(bytes.to_string())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_come_back_as_they_were_written() {
        for text in ["0", "1", "4096B", "4KiB", "1536MiB", "64GiB", "3TiB"] {
            let bytes: Bytes = text.parse().unwrap();
            assert_eq!(bytes.to_string().parse(), Ok(bytes), "{text}");
        }
        assert_eq!("64K".parse(), Ok(Bytes(64 << 10)));
        assert_eq!("1536 MiB".parse::<Bytes>().unwrap().to_string(), "1536MiB");
        assert_eq!(Bytes(3 << 29).to_string(), "1536MiB");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "GiB", "-1", "1.5GiB", "1gb", "99999999999TiB", "1 2"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Bytes>("-4").is_err());
    }

    #[test]
    fn data_formats_hold_numbers() {
        assert_eq!(serde_json::to_string(&Bytes(4096)).unwrap(), "4096");
        assert_eq!(serde_json::from_str::<Bytes>("\"4KiB\"").unwrap(), Bytes(4096));
        let binary = postcard::to_allocvec(&Bytes(1 << 40)).unwrap();
        assert_eq!(postcard::from_bytes::<Bytes>(&binary).unwrap(), Bytes(1 << 40));
    }
}
