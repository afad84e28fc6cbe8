//! The protocols that a node can run. A new one is a folder of this crate and a line in [`PROTOCOLS`].

use crate::{Layout, Protocol, c11, csm, erc, sc};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU8;

/// Every protocol.
pub const PROTOCOLS: &[&ProtocolInfo] =
    &[&csm::INFO, &csm::INVALIDATE, &csm::ORDERED, &sc::INFO, &erc::INFO, &c11::INFO];

/// The protocol for programs of which it is not known that they synchronise by functions only, though they have no atomic instructions.
pub const ORDERED: &ProtocolInfo = &csm::ORDERED;

/// Which programs a protocol is right for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Release consistency: programs without data races.
    Rc,
    /// Release consistency, and sequential consistency where threads synchronise by atomic instructions: programs without data races in
    /// the sense of C11.
    C11,
    /// Sequential consistency: any program.
    Sc,
}

impl Consistency {
    /// Its short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rc => "rc",
            Self::C11 => "c11",
            Self::Sc => "sc",
        }
    }

    /// The protocol that gives this consistency unless another one is asked for: the first such in [`PROTOCOLS`].
    #[must_use]
    pub fn protocol(self) -> &'static ProtocolInfo {
        let gives = |info: &&&ProtocolInfo| info.consistency == self;
        PROTOCOLS.iter().find(gives).expect("there is a protocol for each consistency")
    }
}

/// What becomes of a page whose home [`Protocol::place`] decides although it is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedHomes {
    /// The home moves once the node that is to have it writes the page.
    MoveWithWriter,
    /// The home moves once the page is on one node alone; the present one sees to that.
    HandedOver,
    /// Homes do not move: [`Protocol::place`] has no effect.
    Fixed,
}

/// A protocol, before it runs.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolInfo {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// Which programs it is right for.
    pub consistency: Consistency,
    /// How it treats placement.
    pub placed: PlacedHomes,
    /// It can read the memory of homes on the same host without a message.
    pub one_sided: bool,
    /// Its pages may become [common](StartOptions::common_after).
    pub common: bool,
    /// The names of the kinds of its messages; see [`Protocol::kinds`].
    pub kinds: &'static [&'static str],
    /// Makes the machine of one node.
    pub start: fn(Layout, &StartOptions) -> Box<dyn Protocol>,
    /// Decodes a message of the protocol and encodes it again, for fuzz targets: `None` for other bytes.
    pub recode: fn(&[u8]) -> Option<Vec<u8>>,
}

/// What a machine must know at its start about the node that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartOptions {
    /// The memory of other nodes can be read without a message.
    pub one_sided: bool,
    /// When a page becomes common; never if that is `None`.
    pub common_after: Option<CommonAfter>,
}

/// When a page becomes common: then all nodes use it in one place, where the hardware keeps it coherent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CommonAfter {
    /// When a node touches it first, or from the start if it has contents then.
    Touch,
    /// When nodes have used it against each other so often.
    Times(NonZeroU8),
}

/// Pages that become common as one of them is touched: those of an aligned block of so many, 2 MiB, that nobody has touched either. They
/// take memory only as threads touch them.
pub(crate) const TOUCHED_TOGETHER: u32 = 512;

impl CommonAfter {
    /// How often nodes use a page against each other, which could not become common when it was touched, before it becomes common.
    #[must_use]
    pub fn times(self) -> NonZeroU8 {
        match self {
            Self::Touch => NonZeroU8::MIN,
            Self::Times(times) => times,
        }
    }
}

/// The protocol of this name.
#[must_use]
pub fn protocol(name: &str) -> Option<&'static ProtocolInfo> {
    PROTOCOLS.iter().find(|info| info.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MOST_KINDS, Managers, Page, Region};
    use gondwana_topology::NodeId;

    #[test]
    fn every_protocol_is_found_by_its_name_and_starts() {
        for info in PROTOCOLS {
            assert_eq!(protocol(info.name).unwrap().name, info.name);
            assert!(info.kinds.len() <= MOST_KINDS);
            let managers = Managers::Node(NodeId(1));
            let layout = Layout::new(2, NodeId(1), 64, vec![Region { first: Page(0), count: 4, managers }]);
            let mut machine = (info.start)(layout, &StartOptions { one_sided: false, common_after: None });
            assert_eq!(machine.kinds(), info.kinds);
            machine.adopt(Page(0), 2);
            assert_eq!(machine.counters().exclusive_entered, 2);
        }
        assert!(protocol("rc").is_none());
        let kinds = [Consistency::Rc, Consistency::C11, Consistency::Sc];
        assert_eq!(kinds.map(|wanted| wanted.protocol().name), ["csm", "c11", "sc"]);
    }
}
