//! Sets as people and kernels write them: `0-3,8`.

use crate::id_set::{Id, IdSet};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A text that is no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// Where in the text, in bytes.
    pub at: usize,
    /// How many bytes are meant.
    pub length: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ListError {}

impl<I: Id, const WORDS: usize> fmt::Display for IdSet<I, WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut members = self.iter().map(Id::index).peekable();
        let mut separator = "";
        while let Some(first) = members.next() {
            let mut last = first;
            while let Some(next) = members.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<I: Id, const WORDS: usize> IdSet<I, WORDS> {
    /// Reads the list that `text` begins with and says how many bytes it has. A `-` without a number after it is
    /// not part of the list.
    ///
    /// # Examples
    /// ```
    /// use gondwana_topology::NodeSet;
    ///
    /// let (set, length) = NodeSet::parse_prefix("0-2,5 and more")?;
    /// assert_eq!((set.len(), length), (4, 5));
    /// # Ok::<(), gondwana_topology::ListError>(())
    /// ```
    pub fn parse_prefix(text: &str) -> Result<(Self, usize), ListError> {
        let mut set = Self::EMPTY;
        let mut at = 0;
        loop {
            let (first, mut end) = Self::number(text, at)?;
            let mut last = first;
            if text[end..].starts_with('-') && text[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
                (last, end) = Self::number(text, end + 1)?;
            }
            if last < first {
                let message = format!("the range {} ends before it begins", &text[at..end]);
                return Err(ListError { at, length: end - at, message });
            }
            for index in first..=last {
                set.insert(I::from_index(index));
            }
            if !text[end..].starts_with(',') {
                return Ok((set, end));
            }
            at = end + 1;
        }
    }

    /// The number at a place, and where it ends.
    fn number(text: &str, at: usize) -> Result<(usize, usize), ListError> {
        let rest = &text[at..];
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = &rest[..length];
        let error = |length, message| Err(ListError { at, length, message });
        if digits.is_empty() {
            return error(
                rest.chars().next().map_or(0, char::len_utf8),
                format!("a {} number is missing", I::NOUN),
            );
        }
        match digits.parse() {
            Ok(number) if number < Self::CAPACITY => Ok((number, at + length)),
            _ => error(
                length,
                format!("{} {digits} is beyond the last possible one, {}", I::NOUN, Self::CAPACITY - 1),
            ),
        }
    }
}

impl<I: Id, const WORDS: usize> FromStr for IdSet<I, WORDS> {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        // Files of the kernel end in a line break, and hold nothing else for the empty set.
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(Self::EMPTY);
        }
        let (set, end) = Self::parse_prefix(text)?;
        match text[end..].chars().next() {
            None => Ok(set),
            Some(strange) => {
                let message = format!("'{strange}' has no place in a list such as 0-3,8");
                Err(ListError { at: end, length: strange.len_utf8(), message })
            }
        }
    }
}

impl<I: Id, const WORDS: usize> Serialize for IdSet<I, WORDS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        let mut words = serializer.serialize_tuple(WORDS)?;
        for word in self.words() {
            words.serialize_element(word)?;
        }
        words.end()
    }
}

impl<'de, I: Id, const WORDS: usize> Deserialize<'de> for IdSet<I, WORDS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
            return text.parse().map_err(D::Error::custom);
        }
        deserializer.deserialize_tuple(WORDS, Words::<WORDS>).map(Self::from_words)
    }
}

/// Reads an array, which serde does for some lengths only.
struct Words<const WORDS: usize>;

impl<'de, const WORDS: usize> Visitor<'de> for Words<WORDS> {
    type Value = [u64; WORDS];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WORDS} words")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut words = [0; WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            *word = sequence.next_element()?.ok_or_else(|| A::Error::invalid_length(index, &self))?;
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use crate::{NodeId, NodeSet, ProcessorSet};

    #[test]
    fn lists_come_back_as_they_were_written() {
        for text in ["", "0", "0-3,8", "1,3,5", "0-4095", "63-64"] {
            assert_eq!(text.parse::<ProcessorSet>().unwrap().to_string(), text);
        }
        assert_eq!("0-1,1-2\n".parse::<ProcessorSet>().unwrap().to_string(), "0-2");
    }

    #[test]
    fn errors_say_where() {
        for (text, at, message) in [
            ("3-1", 0, "the range 3-1 ends before it begins"),
            ("0,,1", 2, "a node number is missing"),
            ("0-", 1, "'-' has no place in a list such as 0-3,8"),
            ("1,", 2, "a node number is missing"),
            ("0-256", 2, "node 256 is beyond the last possible one, 255"),
            ("99999999999999999999", 0, "node 99999999999999999999 is beyond the last possible one, 255"),
            ("0 1", 1, "' ' has no place in a list such as 0-3,8"),
            ("é", 0, "a node number is missing"),
        ] {
            let error = text.parse::<NodeSet>().unwrap_err();
            assert_eq!((error.at, error.message.as_str()), (at, message), "{text}");
        }
    }

    #[test]
    fn a_prefix_ends_where_the_list_does() {
        let (set, end) = ProcessorSet::parse_prefix("0-3-node:1").unwrap();
        assert_eq!((set.to_string().as_str(), end), ("0-3", 3));
    }

    #[test]
    fn texts_hold_lists_and_binary_forms_hold_words() {
        let set: NodeSet = [NodeId(0), NodeId(1), NodeId(200)].into_iter().collect();
        assert_eq!(serde_json::to_string(&set).unwrap(), "\"0-1,200\"");
        assert_eq!(serde_json::from_str::<NodeSet>("\"0-1,200\"").unwrap(), set);
        let bytes = postcard::to_allocvec(&set).unwrap();
        assert_eq!(bytes, postcard::to_allocvec(&[3u64, 0, 0, 1 << 8]).unwrap());
        assert_eq!(postcard::from_bytes::<NodeSet>(&bytes).unwrap(), set);
    }
}
