//! The protocols that this machine is, and what may be tuned.

use super::Csm;
use super::message::{self, CsmMessage};
use crate::message::recode;
use crate::registry::{CommonAfter, Consistency, PlacedHomes, ProtocolInfo, StartOptions};
use crate::{Layout, Protocol};

/// This protocol in [`PROTOCOLS`](crate::PROTOCOLS).
pub(crate) const INFO: ProtocolInfo = ProtocolInfo {
    name: "csm",
    consistency: Consistency::Rc,
    placed: PlacedHomes::MoveWithWriter,
    one_sided: true,
    common: true,
    kinds: message::KINDS,
    start: |layout, options| start(layout, options, KEEP, false),
    recode: recode::<CsmMessage>,
};

/// The same without pages that stay writable or are common: each release takes write access away, and each acquire gives up stale
/// copies.
pub(crate) const INVALIDATE: ProtocolInfo = ProtocolInfo {
    name: "csm-invalidate",
    common: false,
    start: |layout, options| start(layout, options, 0, false),
    ..INFO
};

/// As [`INFO`], for programs that synchronise by plain loads and stores, too (`ordered.rs`), between nodes that cannot read each other's
/// memory.
pub(crate) const ORDERED: ProtocolInfo = ProtocolInfo {
    name: "csm-ordered",
    start: |layout, options| start(layout, options, KEEP, !options.one_sided),
    ..INFO
};

fn start(layout: Layout, options: &StartOptions, keep: u8, ordered: bool) -> Box<dyn Protocol> {
    let StartOptions { one_sided, common_after } = *options;
    let updates = if keep > 0 { UPDATES } else { 0 };
    let options = CsmOptions { one_sided, keep, updates, ordered, common_after, ..CsmOptions::default() };
    Box::new(Csm::new(layout, options))
}

/// Over how many releases in a row a page may not be written before it is an ordinary one: programs write some pages in every
/// second or third phase only.
const KEEP: u8 = 4;

/// A notice after so many updates costs little beside them.
const UPDATES: u8 = 16;

/// What may be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CsmOptions {
    /// Homes move to nodes that write (see [`History`](super::History)). First touch places homes in any case.
    pub migrate: bool,
    /// A message with diffs is sent when it has this many bytes, even if more diffs go to the same home.
    pub bulk_limit: usize,
    /// Nodes read from the memory of homes without asking them, where the [`Env`](crate::Env) can (see [`Env::expose`](crate::Env::expose)).
    pub one_sided: bool,
    /// Pages that several nodes go on writing stay writable (see `kept.rs`) until they are not written over so many releases in a
    /// row; 0: never.
    pub keep: u8,
    /// A sharer that fetches a page again after each notice, where it cannot read the home's memory, or goes on writing it, gets so
    /// many updates in a row instead of notices; then one notice. 0: none.
    pub updates: u8,
    /// Who reads what another node has written finds all that was written before it, even if the program synchronises by plain loads
    /// and stores (see `ordered.rs`). Then no page is read one-sided, kept or common.
    pub ordered: bool,
    /// As [`StartOptions::common_after`].
    pub common_after: Option<CommonAfter>,
    /// While a monitor observes the node, one in so many releases (at least 1) stops the writers of pages that are kept: it sees
    /// accesses at faults.
    pub sample: u32,
    /// At most so many pages with contents come in one answer. Whoever goes on from so many pages of its own that nobody had
    /// touched before asks for eight times as many, which need no contents.
    pub window: u32,
}

impl CsmOptions {
    /// The same without what would show a write before others are told of those before it.
    pub(super) fn in_order(self) -> Self {
        if self.ordered { Self { one_sided: false, keep: 0, common_after: None, ..self } } else { self }
    }
}

impl Default for CsmOptions {
    fn default() -> Self {
        Self {
            migrate: true,
            bulk_limit: 512 << 10,
            one_sided: true,
            keep: KEEP,
            updates: UPDATES,
            ordered: false,
            common_after: None,
            sample: 16,
            window: 128,
        }
    }
}
