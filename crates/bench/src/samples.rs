//! Measured values by name.

use std::collections::BTreeMap;
use std::time::Duration;

/// Nanoseconds, by the name of what took so long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(BTreeMap<String, Vec<u64>>);

/// Many values in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Summary {
    /// The least value in nanoseconds.
    pub min: u64,
    /// The one in the middle.
    pub median: u64,
    /// A tenth of the values are greater.
    pub p90: u64,
    /// How many there are.
    pub samples: usize,
}

impl Samples {
    /// One more value.
    pub(crate) fn add(&mut self, name: &str, nanoseconds: u64) {
        self.0.entry(name.to_owned()).or_default().push(nanoseconds);
    }

    /// One more value, of a time that was measured here.
    pub(crate) fn add_time(&mut self, name: &str, time: Duration) {
        self.add(name, nanoseconds(time));
    }

    /// Takes the lines `NAME NANOSECONDS` that a measuring program prints; false if there is any other line.
    pub(crate) fn add_lines(&mut self, text: &str) -> bool {
        text.lines().all(|line| {
            let value = line.split_once(' ').and_then(|(name, value)| Some((name, value.parse().ok()?)));
            value.map(|(name, value)| self.add(name, value)).is_some()
        })
    }

    /// The values of one name in short; `None` if there are none.
    pub(crate) fn summary(&self, name: &str) -> Option<Summary> {
        let mut values = self.0.get(name)?.clone();
        values.sort_unstable();
        let at = |tenths: usize| values[(values.len() * tenths / 10).min(values.len() - 1)];
        Some(Summary { min: *values.first()?, median: at(5), p90: at(9), samples: values.len() })
    }
}

/// A time as samples have it.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_summaries() {
        let mut samples = Samples::default();
        let text: String = (1..=10).rev().map(|value| format!("miss {value}\n")).collect();
        assert!(samples.add_lines(&text));
        assert!(samples.add_lines("hit 7\n"));
        assert_eq!(samples.summary("miss"), Some(Summary { min: 1, median: 6, p90: 10, samples: 10 }));
        assert_eq!(samples.summary("hit"), Some(Summary { min: 7, median: 7, p90: 7, samples: 1 }));
        assert_eq!(samples.summary("other"), None);
    }

    #[test]
    fn other_lines_are_noticed() {
        for text in ["miss\n", "miss -3\n", "miss 3 ns\n"] {
            assert!(!Samples::default().add_lines(text), "{text}");
        }
    }
}
