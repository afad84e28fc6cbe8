//! Numbers and names as people read them.

use super::limits::MOST_NODES;
use gondwana_analysis::Pattern;
use gondwana_console::clean;
use gondwana_console::columns::grouped;

/// A longer name is cut: names of C++ templates can have thousands of characters.
const NAME_LIMIT: usize = 300;

/// A number with a noun.
pub(super) fn things(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A part of the whole, in percent.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match part as f64 / whole.max(1) as f64 * 100.0 {
        0.0 => "0 %".to_owned(),
        share if share < 1.0 => "under 1 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}

/// A time in seconds with three digits or so.
pub(super) fn seconds(time: f64) -> String {
    match time {
        time if !time.is_finite() || time <= 0.0 => "0 s".to_owned(),
        time if time < 1.0 => format!("{:.0} ms", time * 1000.0),
        time if time < 10.0 => format!("{time:.2} s"),
        time if time < 100.0 => format!("{time:.1} s"),
        time => format!("{time:.0} s"),
    }
}

/// A text of one or several lines without other control characters.
pub(super) fn text(text: &str) -> String {
    clean::text(text)
}

/// A name from a recording, without control characters and truncated.
pub(super) fn name(text: &str) -> String {
    let mut name = clean::line(&text.chars().take(NAME_LIMIT).collect::<String>());
    if text.chars().nth(NAME_LIMIT).is_some() {
        name.push('…');
    }
    name
}

/// The nodes with their numbers of something, but those with none of it.
pub(super) fn by_node(counts: &[u64]) -> String {
    let some = counts.iter().take(MOST_NODES).enumerate().filter(|&(_, &count)| count > 0);
    some.map(|(node, &count)| format!("node {node}: {}", grouped(count))).collect::<Vec<_>>().join(", ")
}

/// The meaning of a pattern, and what usually helps.
pub(super) fn meaning(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Private => {
            "each part is used by one node only: what crosses is there because the home is elsewhere"
        }
        Pattern::ReadOnly => "nobody writes it once it is initialised: every node could keep a copy",
        Pattern::ProducerConsumer => {
            "one node writes each part and others read it: its home belongs at the writer"
        }
        Pattern::Migratory => "parts are read and written by one node after the other: they follow the work",
        Pattern::FalselyShared => {
            "nodes write different bytes of the same pages: padding or regrouping ends that"
        }
        Pattern::WidelyWritten => {
            "many nodes write the same bytes: only less writing, or a sum for each node, helps"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_percents() {
        assert_eq!([0, 1, 500, 1000].map(|part| percent(part, 1000)), ["0 %", "under 1 %", "50 %", "100 %"]);
        assert_eq!(percent(0, 0), "0 %");
    }

    #[test]
    fn times_have_three_digits_and_none_is_infinite() {
        let times = [f64::NAN, f64::INFINITY, -1.0, 0.25, 1.5, 12.0, 1234.5].map(seconds);
        assert_eq!(times, ["0 s", "0 s", "0 s", "250 ms", "1.50 s", "12.0 s", "1234 s"]);
    }

    #[test]
    fn names_are_without_control_characters_and_not_endless() {
        assert_eq!(name("a\u{0}b\u{1b}[2J"), "a\u{fffd}b\u{fffd}[2J");
        assert_eq!(name(&"ä".repeat(1000)).chars().count(), NAME_LIMIT + 1);
    }
}
