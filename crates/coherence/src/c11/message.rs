//! What two [`C11`](super::C11) machines say to each other.

use crate::message::{Encoded, Kind, Part};
use crate::{CsmMessage, Page, ScMessage};
use gondwana_topology::NodeId;
use serde::{Deserialize, Serialize};

/// Messages of the `c11` protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum C11Message {
    /// About ordinary pages.
    Csm(CsmMessage),
    /// About synchronisation pages.
    Sc(ScMessage),
    /// To the page's manager: the page is to become a synchronisation page.
    Promote {
        /// The page.
        page: Page,
    },
    /// Manager to all: nobody may use the page until it is one.
    Quit {
        /// The page.
        page: Page,
    },
    /// Answers `Quit`: if this node's threads have written the page, all that they wrote is released, and it has no copy.
    Left {
        /// The page.
        page: Page,
        /// It is its home, with the contents.
        home: bool,
    },
    /// Manager to all: the page is a synchronisation page from now on.
    Promoted {
        /// The page.
        page: Page,
        /// The node that has it.
        owner: NodeId,
    },
}

/// How the messages about ordinary pages are encoded.
pub(super) const CSM: Part = Part { variant: 0, first_kind: 0 };

/// The number of the kind of messages about synchronisation pages.
const SC: u8 = 9;

/// Names of the kinds of these messages: those of `csm`, of `sc`, and of how a page becomes one of the other.
pub(super) const KINDS: &[&str] = &[
    "fetch",
    "pages",
    "diffs",
    "diff_acks",
    "notices",
    "notice_acks",
    "homes",
    "commons",
    "commits",
    "sc",
    "promotions",
];

impl Encoded for C11Message {
    fn kind(&self) -> Kind {
        match self {
            Self::Csm(message) => message.kind(),
            Self::Sc(_) => Kind(SC),
            Self::Promote { .. } | Self::Quit { .. } | Self::Left { .. } | Self::Promoted { .. } => {
                Kind(SC + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Encoder;
    use crate::{Csm, Protocol, Sc};

    #[test]
    fn the_kinds_are_those_of_the_parts() {
        let layout = crate::Layout::new(1, NodeId(0), 64, vec![]);
        let csm = Csm::new(layout.clone(), crate::CsmOptions::default());
        let sc = Sc::new(layout, crate::ScOptions::default());
        assert_eq!(KINDS[..usize::from(SC)], *csm.kinds());
        assert_eq!(KINDS[usize::from(SC)..][..1], *sc.kinds());
    }

    #[test]
    fn a_part_says_what_the_whole_understands() {
        let mut part = Encoder::of_part(CSM);
        for pages in [0, 3, 1000] {
            let notices = CsmMessage::Notices {
                flush: 3,
                origin: NodeId(1),
                pages: (0..pages).map(Page).collect(),
                updates: vec![],
            };
            let (kind, bytes) = part.with(&notices, |encoded| (encoded.kind, encoded.bytes.to_vec()));
            assert_eq!(kind, notices.kind());
            assert_eq!(C11Message::decode(&bytes), Some(C11Message::Csm(notices)));
        }
    }
}
