//! What another home would save of a page.
//!
//! A home asks for nothing, so what the present one does with its page is in no recording, and has to be estimated: where
//! pages were dealt out in turn, from what it does with its neighbours that have other homes, and else from what others
//! were told of its writes.

use super::pages::{Usage, UsedPage};

/// Less than this share of a node's requests for a page is no gain to count on.
const CLEAR: f64 = 0.1;

/// The same where it depends on what the present home does.
const CLEAR_OF_ESTIMATE: f64 = 0.5;

/// Others see a home write only while they have copies: for each time, it is taken to have written so often.
const WRITES_SEEN: f64 = 2.0;

/// What a home at a node would save: requests and bytes. Less than nothing if it costs some.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// Requests.
    pub requests: f64,
    /// Bytes.
    pub bytes: f64,
}

impl Gain {
    /// The sum of both.
    pub fn plus(self, more: Self) -> Self {
        Self { requests: self.requests + more.requests, bytes: self.bytes + more.bytes }
    }

    /// The difference.
    pub fn less(self, other: Self) -> Self {
        self.plus(Self { requests: -other.requests, bytes: -other.bytes })
    }
}

/// What is saved of a page if its home is at `node`: all that the node asks for, less what the homes that it had elsewhere
/// would have to ask for, which is `at_homes`.
pub fn gain(page: &UsedPage<u16>, at_homes: &Usage, node: u16) -> Gain {
    let here = page.uses.get(&node).copied().unwrap_or_default();
    Gain { requests: here.requests() - at_homes.requests(), bytes: here.bytes - at_homes.bytes }
}

/// The same if it is a gain that one can count on.
pub fn clear_gain(page: &UsedPage<u16>, at_homes: &Usage, node: u16) -> Option<f64> {
    let requests = gain(page, at_homes, node).requests;
    let share = if at_homes.requests() > 0.0 { CLEAR_OF_ESTIMATE } else { CLEAR };
    let here = page.uses.get(&node)?.requests();
    (requests > 0.0 && here > 0.0 && requests >= here * share).then_some(requests)
}

/// What a home of a page would ask for if that were elsewhere, given what it does with pages beside it, if that is known.
pub fn of_home(page: &UsedPage<u16>, home: u16, beside: Option<Usage>, page_bytes: u64) -> Usage {
    let written = page.seen_to_write(home);
    if let Some(beside) = beside {
        return Usage { diffs: beside.diffs.max(written), ..beside };
    }
    let diffs: f64 = page.uses.iter().filter(|(node, _)| **node != home).map(|(_, uses)| uses.diffs).sum();
    let writers = page.uses.iter().filter(|(node, uses)| **node != home && uses.written() > 0.0).count();
    // It has the page anew each time that somebody else has written between two writes of its own.
    let rounds = written.min(diffs);
    // What one node alone writes, somebody else has initialised.
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
