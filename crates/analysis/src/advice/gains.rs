//! The saving of another home for a page.
//!
//! A home requests nothing, so a recording does not have the present home's use of its page. It is estimated: where
//! pages were striped, from the home's use of adjacent pages with other homes, and otherwise from the notices that
//! others received.

use super::pages::{Usage, UsedPage};

/// A gain below this share of a node's requests for a page is not reliable.
const CLEAR: f64 = 0.1;

/// The same where the gain depends on the use by the present home.
const CLEAR_OF_ESTIMATE: f64 = 0.5;

/// Other nodes see writes of a home only while they have copies: each counts as this many writes.
const WRITES_SEEN: f64 = 2.0;

/// The saving of a home at a node, in requests and bytes; negative if it costs some.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Gain {
    /// Requests.
    pub requests: f64,
    /// Bytes.
    pub bytes: f64,
}

impl Gain {
    /// The sum of both.
    pub(super) fn plus(self, more: Self) -> Self {
        Self { requests: self.requests + more.requests, bytes: self.bytes + more.bytes }
    }

    /// The difference.
    pub(super) fn less(self, other: Self) -> Self {
        self.plus(Self { requests: -other.requests, bytes: -other.bytes })
    }
}

/// The saving of a page whose home is at `node`: the node's requests, less `at_homes`, the requests that its former
/// homes elsewhere would make.
pub(super) fn gain(page: &UsedPage<u16>, at_homes: &Usage, node: u16) -> Gain {
    let here = page.uses.get(&node).copied().unwrap_or_default();
    Gain { requests: here.requests() - at_homes.requests(), bytes: here.bytes - at_homes.bytes }
}

/// The same if the gain is reliable.
pub(super) fn clear_gain(page: &UsedPage<u16>, at_homes: &Usage, node: u16) -> Option<f64> {
    let requests = gain(page, at_homes, node).requests;
    let share = if at_homes.requests() > 0.0 { CLEAR_OF_ESTIMATE } else { CLEAR };
    let here = page.uses.get(&node)?.requests();
    (requests > 0.0 && here > 0.0 && requests >= here * share).then_some(requests)
}

/// The requests of a home of a page if the home were elsewhere, from its use of adjacent pages, if that is known.
pub(super) fn of_home(page: &UsedPage<u16>, home: u16, beside: Option<Usage>, page_bytes: u64) -> Usage {
    let written = page.seen_to_write(home);
    if let Some(beside) = beside {
        return Usage { diffs: beside.diffs.max(written), ..beside };
    }
    let diffs: f64 = page.uses.iter().filter(|(node, _)| **node != home).map(|(_, uses)| uses.diffs).sum();
    let writers = page.uses.iter().filter(|(node, uses)| **node != home && uses.written() > 0.0).count();
    // It fetches the page each time that another node wrote between two writes of its own.
    let rounds = written.min(diffs);
    // Another node has initialised what one node alone writes.
    let initialised = if written == 0.0 && writers <= 1 { 1.0 } else { 0.0 };
    Usage {
        fetches: rounds,
        reads: 0.0,
        writes: written,
        ahead: 0.0,
        diffs: written * WRITES_SEEN + initialised,
        notices: rounds,
        bytes: (rounds + initialised) * page_bytes as f64,
    }
}
