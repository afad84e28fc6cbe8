//! Constructs of OpenMP, and who waits for whom at the barriers that end them.

use crate::naming::{Codes, REGIONS};
use crate::{Construct, ConstructThread};
use gondwana_recording::Recording;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Seconds of a number of nanoseconds.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// What a thread did in a construct.
#[derive(Clone, Copy, Default)]
struct Sum {
    node: u16,
    count: u64,
    worked: u64,
    longest: u64,
    waited: u64,
}

/// What is known of a construct: its sums by thread.
#[derive(Default)]
struct Found {
    dealt: bool,
    threads: BTreeMap<u32, Sum>,
}

/// The constructs, those at which threads waited longest first.
pub(crate) fn constructs(recording: &Recording, nodes: usize, codes: &mut Codes<'_>) -> Vec<Construct> {
    let mut found: BTreeMap<(String, String, bool), Found> = BTreeMap::new();
    for (node, record) in recording.constructs.iter().filter(|(node, _)| usize::from(*node) < nodes) {
        let (place, function) = match record.code {
            0 => ("other constructs".to_owned(), String::new()),
            code => codes.in_region(code),
        };
        let key = (place, user_function(&function).to_owned(), record.region);
        let construct = found.entry(key).or_default();
        construct.dealt |= record.dealt;
        let sum = construct.threads.entry(record.thread).or_insert(Sum { node: *node, ..Sum::default() });
        sum.count = sum.count.saturating_add(record.count);
        sum.worked = sum.worked.saturating_add(record.worked);
        sum.longest = sum.longest.max(record.longest);
        sum.waited = sum.waited.saturating_add(record.waited);
    }
    let mut constructs: Vec<(u64, Construct)> = found
        .into_iter()
        .map(|((place, function, region), Found { dealt, threads })| {
            let waited = threads.values().fold(0_u64, |waited, sum| waited.saturating_add(sum.waited));
            let executions = threads.values().map(|sum| sum.count).max().unwrap_or(0);
            let threads = threads.iter().map(|(&number, sum)| ConstructThread {
                number,
                node: sum.node,
                executions: sum.count,
                worked: seconds(sum.worked),
                longest: seconds(sum.longest),
                waited: seconds(sum.waited),
            });
            let threads = threads.collect();
            (waited, Construct { place, function, region, dealt, executions, threads })
        })
        .collect();
    constructs.sort_by(|(a, one), (b, other)| {
        (Reverse(a), &one.place, one.region).cmp(&(Reverse(b), &other.place, other.region))
    });
    constructs.into_iter().map(|(_, construct)| construct).collect()
}

/// The function of the user from which a compiler has made that of a region; empty if its name does not tell.
fn user_function(name: &str) -> &str {
    REGIONS.iter().fold(name, |name, region| name.split_once(region).map_or(name, |(function, _)| function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Names};
    use gondwana_recording::ConstructRecord;

    /// A line for each address, in a function that is inlined into that of a region, and that again as clang does it.
    struct Lines;

    impl Names for Lines {
        fn code(&self, address: u64) -> Vec<Code> {
            let code = |function: &str, line| Code {
                function: function.to_owned(),
                file: "a.c".to_owned(),
                line,
                ..Code::default()
            };
            let line = u32::try_from(address / 16).unwrap();
            vec![code("work", 99), code("main._omp_fn.0", line), code(".omp_outlined.", 1)]
        }
    }

    fn record(code: u64, thread: u32, worked: u64, waited: u64) -> ConstructRecord {
        ConstructRecord {
            code,
            region: false,
            dealt: false,
            thread,
            count: 2,
            worked,
            longest: worked / 2,
            waited,
        }
    }

    #[test]
    fn records_of_a_line_are_added_up_by_thread() {
        const SECOND: u64 = 1_000_000_000;
        let constructs_of = |records| {
            let recording = Recording { constructs: records, ..Recording::default() };
            constructs(&recording, 2, &mut Codes::new(&Lines))
        };
        let found = constructs_of(vec![
            (0, record(0x20, 0, SECOND, 3 * SECOND)),
            (1, record(0x20, 1, 4 * SECOND, 0)),
            // Another call in the same line, such as in a copy of the loop.
            (1, record(0x28, 1, 2 * SECOND, 0)),
            (0, record(0x50, 0, SECOND, SECOND)),
            (0, ConstructRecord { region: true, ..record(0x20, 0, SECOND, SECOND / 2) }),
            (1, record(0, 1, SECOND, 0)),
            // No node of the run.
            (2, record(0x20, 2, SECOND, SECOND)),
        ]);
        let names: Vec<_> = found.iter().map(|it| (&it.place[..], &it.function[..], it.region)).collect();
        let expected = [
            ("a.c:2", "main", false),
            ("a.c:5", "main", false),
            ("a.c:2", "main", true),
            ("other constructs", "", false),
        ];
        assert_eq!(names, expected);
        let first = &found[0];
        assert_eq!((first.executions, first.threads.len()), (4, 2));
        assert_eq!((first.worked(), first.waited(), first.uneven()), (7.0, 3.0, 5.0));
        let slowest = first.slowest().unwrap();
        assert_eq!((slowest.number, slowest.node, slowest.executions), (1, 1, 4));
        assert_eq!((slowest.worked, slowest.longest), (6.0, 2.0));
        assert_eq!(first.ahead(), 2.5);
    }

    #[test]
    fn sums_do_not_overflow() {
        let most = ConstructRecord { count: u64::MAX, ..record(0x20, 0, u64::MAX, u64::MAX) };
        let recording = Recording { constructs: vec![(0, most), (0, most)], ..Recording::default() };
        let found = constructs(&recording, 1, &mut Codes::new(&Lines));
        assert_eq!(found[0].executions, u64::MAX);
        assert!(found[0].waited().is_finite());
    }

    #[test]
    fn functions_have_the_users_names() {
        let names = ["main._omp_fn.3", "solve", "step.omp_outlined.7", ".omp_outlined._debug__.2"];
        assert_eq!(names.map(user_function), ["main", "solve", "step", ""]);
    }
}
