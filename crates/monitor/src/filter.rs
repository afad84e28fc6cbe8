//! Filters, and their text form.

use crate::{Direction, Kinds, Partition, UnknownKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The smallest unit of a filter, as a power of two of bytes: 32 bytes.
pub const SMALLEST_UNIT: u8 = 5;

/// The largest unit of a filter, as a power of two of bytes: 2 MiB.
pub const LARGEST_UNIT: u8 = 21;

/// The directions of transactions that a filter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Directions {
    /// Transactions that this node has caused.
    Out,
    /// Transactions that another node has caused at this one.
    In,
    /// Both.
    #[default]
    Both,
}

impl Directions {
    /// True if this includes the direction.
    #[inline]
    #[must_use]
    pub fn contains(self, direction: Direction) -> bool {
        match self {
            Self::Out => direction == Direction::Out,
            Self::In => direction == Direction::In,
            Self::Both => true,
        }
    }

    /// True if both include a common direction.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self == Self::Both || other == Self::Both || self == other
    }
}

/// When a counter raises an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Threshold {
    /// When it reaches this value.
    Once(u64),
    /// Each time it has counted this many more.
    Every(u64),
}

impl Threshold {
    /// True if a counter that has just reached `count` raises an event.
    #[inline]
    #[must_use]
    pub fn is_met(self, count: u64) -> bool {
        match self {
            Self::Once(at) => count == at,
            Self::Every(step) => count.is_multiple_of(step),
        }
    }
}

/// Which transactions to count: one counter for each unit of a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Filter {
    /// First address, a multiple of the unit.
    pub start: u64,
    /// One past the last address, a multiple of the unit.
    pub end: u64,
    /// log2 of the bytes of a unit.
    pub unit: u8,
    /// The kinds of transactions to count.
    pub kinds: Kinds,
    /// The directions to count.
    pub directions: Directions,
    /// The counter of the first unit; `None` takes free counters.
    pub first: Option<u32>,
    /// When a counter raises an event, if ever.
    pub threshold: Option<Threshold>,
    /// The parts of the range, if only the beginning of each is counted.
    pub partition: Option<Partition>,
}

impl Filter {
    /// A filter of all transactions in a range, in units of 2 to the power of `unit` bytes.
    #[must_use]
    pub fn new(start: u64, end: u64, unit: u8) -> Self {
        let (kinds, directions) = (Kinds::ALL, Directions::Both);
        Self { start, end, unit, kinds, directions, first: None, threshold: None, partition: None }
    }

    /// True if some transaction matches both filters.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end
            && other.start < self.end
            && !self.kinds.and(other.kinds).is_empty()
            && self.directions.meets(other.directions)
    }

    /// Checks the filter by itself.
    ///
    /// # Errors
    /// If the unit is out of range, the range is empty or misaligned, the parts do not divide it, no kind is named,
    /// or the threshold is 0.
    pub fn check(&self) -> Result<(), FilterError> {
        if !(SMALLEST_UNIT..=LARGEST_UNIT).contains(&self.unit) {
            return Err(FilterError::Unit);
        }
        let unit = 1_u64 << self.unit;
        if self.start >= self.end {
            return Err(FilterError::Empty { start: self.start, end: self.end });
        }
        if let Some(address) =
            [self.start, self.end].into_iter().find(|address| !address.is_multiple_of(unit))
        {
            return Err(FilterError::Misaligned { address, unit });
        }
        self.check_partition()?;
        if self.kinds.is_empty() {
            return Err(FilterError::NoKinds);
        }
        match self.threshold {
            Some(Threshold::Once(0) | Threshold::Every(0)) => Err(FilterError::Threshold),
            _ => Ok(()),
        }
    }
}

/// Why a filter cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterError {
    /// The unit is no power of two within the limits.
    Unit,
    /// The range is empty.
    Empty {
        /// First address.
        start: u64,
        /// One past the last address.
        end: u64,
    },
    /// An end of the range is not a multiple of the unit.
    Misaligned {
        /// That end.
        address: u64,
        /// Bytes in a unit.
        unit: u64,
    },
    /// The range does not consist of whole parts, or a part has less room than its counters need.
    Partition,
    /// No kind is named.
    NoKinds,
    /// A threshold of 0.
    Threshold,
    /// Another filter counts the same transactions.
    Overlapping {
        /// First address of the other.
        start: u64,
        /// One past its last address.
        end: u64,
    },
    /// Another filter counts the same transactions of the same area.
    Same(Area),
    /// The requested counters belong to another filter, or do not exist.
    Counters {
        /// The first.
        first: u32,
        /// How many.
        count: u64,
    },
    /// There are not enough contiguous free counters.
    TooManyCounters {
        /// The number of counters that the filter needs.
        needed: u64,
        /// The longest contiguous range of free ones.
        free: u64,
    },
    /// The bank has no more filters.
    TooManyFilters(usize),
    /// The bank has no more secondary counters.
    TooManySecondaries(usize),
    /// No filter, or secondary counter, with that number is set.
    NotSet,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => f.write_str("a unit is a power of two from 32 bytes to 2 MiB, such as 4K"),
            Self::Empty { start, end } => {
                write!(
                    f,
                    "the range {start:#x}-{end:#x} is empty: its end is the address behind the last one"
                )
            }
            Self::Misaligned { address, unit } => write!(
                f,
                "the address {address:#x} is no multiple of the unit of {unit} bytes: take {:#x}, or a smaller unit",
                address / unit * unit
            ),
            Self::Partition => {
                f.write_str("its range does not consist of whole parts with room for their units")
            }
            Self::NoKinds => f.write_str("no kind of transaction is named, so that nothing would be counted"),
            Self::Threshold => f.write_str("a threshold is at least 1"),
            Self::Overlapping { start, end } => write!(
                f,
                "it overlaps the filter of {start:#x}-{end:#x}, which counts the same transactions: give them different \
                 ranges, kinds or directions"
            ),
            Self::Same(area) => write!(
                f,
                "it overlaps the filter of {area}, which counts the same transactions: give them different ranges, kinds or \
                 directions"
            ),
            Self::Counters { first, count } => write!(
                f,
                "the counters {first} to {} are not all free: leave out the first counter, and free ones are taken",
                u64::from(*first) + count - 1
            ),
            Self::TooManyCounters { needed, free } => write!(
                f,
                "it takes {needed} counters, and {free} are free: give a larger unit or a shorter range"
            ),
            Self::TooManyFilters(most) => {
                write!(f, "{most} filters are set already, which is the most: remove one")
            }
            Self::TooManySecondaries(most) => {
                write!(f, "{most} secondary counters are in use already, which is the most: remove one")
            }
            Self::NotSet => f.write_str("there is no filter or secondary counter with that number"),
        }
    }
}

impl std::error::Error for FilterError {}

/// The addresses of a filter, as users name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Area {
    /// From one address to another.
    Range(u64, u64),
    /// The heap: on each node, as many large blocks and small blocks of each size as there are counters for.
    Heap,
    /// The variables of the program and its libraries.
    Data,
    /// Both.
    All,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(start, end) => write!(f, "{start:#x}-{end:#x}"),
            Self::Heap => f.write_str("range=heap"),
            Self::Data => f.write_str("range=data"),
            Self::All => f.write_str("range=all"),
        }
    }
}

/// A filter in its text form: `range=heap,unit=4K,kinds=reads+diff,direction=out,counter=0,threshold=1000`. The
/// defaults are `all`, 4K, `all` and both; `threshold=every:1000` raises an event again and again.
///
/// # Examples
/// ```
/// use gondwana_monitor::{Area, FilterText, Kind};
///
/// let text: FilterText = "range=heap,unit=64,kinds=reads+diff".parse()?;
/// assert_eq!((text.area, text.filter.unit), (Area::Heap, 6));
/// assert!(text.filter.kinds.contains(Kind::Diff));
/// # Ok::<(), gondwana_monitor::FilterTextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterText {
    /// Which addresses.
    pub area: Area,
    /// The rest; its range is that of `area`, or 0 to 0.
    pub filter: Filter,
}

/// Why the text of a filter is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterTextError(String);

impl fmt::Display for FilterTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilterTextError {}

impl From<FilterError> for FilterTextError {
    fn from(error: FilterError) -> Self {
        Self(error.to_string())
    }
}

impl From<UnknownKind> for FilterTextError {
    fn from(error: UnknownKind) -> Self {
        Self(error.to_string())
    }
}

impl FromStr for FilterText {
    type Err = FilterTextError;

    fn from_str(text: &str) -> Result<Self, FilterTextError> {
        let mut filter = Filter::new(0, 0, 12);
        let mut area = Area::All;
        let mut seen: Vec<&str> = vec![];
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(FilterTextError(format!("\"{part}\" should be NAME=VALUE, such as unit=4K")));
            };
            if seen.contains(&key) {
                return Err(FilterTextError(format!("{key} is given twice")));
            }
            seen.push(key);
            match key {
                "range" => area = read_area(value)?,
                "unit" => filter.unit = read_unit(value).ok_or(FilterError::Unit)?,
                "kinds" => filter.kinds = value.parse()?,
                "direction" => filter.directions = read_directions(value)?,
                "counter" => filter.first = Some(read_number(key, value)?),
                "threshold" => {
                    filter.threshold = Some(match value.strip_prefix("every:") {
                        Some(step) => Threshold::Every(read_number(key, step)?),
                        None => Threshold::Once(read_number(key, value)?),
                    });
                }
                _ => {
                    return Err(FilterTextError(format!(
                        "a filter has no {key}: it has range, unit, kinds, direction, counter and threshold"
                    )));
                }
            }
        }
        let mut probe = filter;
        (filter.start, filter.end) = match area {
            Area::Range(start, end) => (start, end),
            Area::Heap | Area::Data | Area::All => (0, 0),
        };
        (probe.start, probe.end) =
            if filter.end == 0 { (0, 1 << filter.unit) } else { (filter.start, filter.end) };
        probe.check()?;
        Ok(Self { area, filter })
    }
}

fn read_area(text: &str) -> Result<Area, FilterTextError> {
    match text {
        "heap" => return Ok(Area::Heap),
        "data" => return Ok(Area::Data),
        "all" => return Ok(Area::All),
        _ => {}
    }
    let range =
        text.split_once('-').and_then(|(start, end)| Some((read_address(start)?, read_address(end)?)));
    match range {
        Some((start, end)) if start >= end => Err(FilterError::Empty { start, end }.into()),
        Some((start, end)) => Ok(Area::Range(start, end)),
        None => Err(FilterTextError(format!(
            "\"{text}\" is no range: write heap, data, all, or two addresses as in 0x100000000000-0x100000010000"
        ))),
    }
}

fn read_address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn read_unit(text: &str) -> Option<u8> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    let unit = u8::try_from(bytes.trailing_zeros()).ok().filter(|_| bytes.is_power_of_two())?;
    (SMALLEST_UNIT..=LARGEST_UNIT).contains(&unit).then_some(unit)
}

fn read_directions(text: &str) -> Result<Directions, FilterTextError> {
    match text {
        "in" => Ok(Directions::In),
        "out" => Ok(Directions::Out),
        "both" => Ok(Directions::Both),
        _ => Err(FilterTextError(format!("\"{text}\" is no direction: write in, out or both"))),
    }
}

fn read_number<N: FromStr>(key: &str, text: &str) -> Result<N, FilterTextError> {
    text.parse().map_err(|_| FilterTextError(format!("{key}: \"{text}\" is no number, such as 1000")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn a_filter_is_read_as_it_is_written() {
        let text =
            "range=0x10000-0x20000,unit=64,kinds=reads+diff,direction=out,counter=7,threshold=every:50";
        let FilterText { area, filter } = text.parse().unwrap();
        assert_eq!(area, Area::Range(0x10000, 0x20000));
        assert_eq!((filter.start, filter.end, filter.unit, filter.counters()), (0x10000, 0x20000, 6, 1024));
        assert!(filter.kinds.contains(Kind::Diff) && !filter.kinds.contains(Kind::Write));
        assert_eq!((filter.directions, filter.first), (Directions::Out, Some(7)));
        assert_eq!(filter.threshold, Some(Threshold::Every(50)));
        let short: FilterText = "range=heap".parse().unwrap();
        assert_eq!((short.area, short.filter.unit, short.filter.kinds), (Area::Heap, 12, Kinds::ALL));
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let sentence = |text: &str| text.parse::<FilterText>().unwrap_err().to_string();
        for (text, part) in [
            ("", "\"\" should be NAME=VALUE"),
            ("range=heap,range=data", "range is given twice"),
            ("range=stack", "\"stack\" is no range"),
            ("range=0x2000-0x1000", "the range 0x2000-0x1000 is empty"),
            (
                "range=0x1010-0x2000",
                "the address 0x1010 is no multiple of the unit of 4096 bytes: take 0x1000",
            ),
            ("unit=48", "a unit is a power of two"),
            ("unit=16", "a unit is a power of two"),
            ("unit=4M", "a unit is a power of two"),
            ("kinds=reads+wishes", "\"wishes\" is no kind of transaction"),
            ("direction=up", "\"up\" is no direction"),
            ("threshold=0", "a threshold is at least 1"),
            ("threshold=every:", "threshold: \"\" is no number"),
            ("counter=-1", "counter: \"-1\" is no number"),
            ("colour=red", "a filter has no colour"),
        ] {
            assert!(sentence(text).contains(part), "{text}: {}", sentence(text));
        }
    }

    #[test]
    fn filters_that_can_mean_the_same_transaction_overlap() {
        let filter = |text: &str| text.parse::<FilterText>().unwrap().filter;
        let one = filter("range=0x1000-0x3000,kinds=reads,direction=out");
        for (text, overlaps) in [
            ("range=0x2000-0x4000", true),
            ("range=0x3000-0x4000", false),
            ("range=0x2000-0x4000,kinds=writes", false),
            ("range=0x2000-0x4000,kinds=reads,direction=in", false),
            ("range=0x0-0x10000,kinds=cold-read,direction=both", true),
        ] {
            assert_eq!(one.overlaps(&filter(text)), overlaps, "{text}");
            assert_eq!(filter(text).overlaps(&one), overlaps, "{text}");
        }
    }
}
