//! What the launcher and the nodes of a run say to each other.
//!
//! At its start a node process reads its [`Boot`]. While the program runs, the node sends each [`Report`] and receives each
//! [`Order`] over its [`Control`] channel; nodes of one computer hand over descriptors by an [`Exchange`]. All of it is
//! between processes of one version.

mod bank;
mod boot;
mod channel;
mod exchange;
mod filters;
mod messages;
mod placement;
mod rules;
mod waits;

pub use bank::{BankAnswer, BankError, BankRequest, MOST_COUNTERS, Reached};
pub use boot::{BOOT_VARIABLE, Boot, BootError, FabricBoot, Monitoring, VERSION, Watch};
pub use channel::{CHUNKS_MARK, Control, MAX_CHUNKS, MAX_REPORT, send_crash};
pub use exchange::{EACH, Exchange, MOMENT, Offer};
pub use filters::check_filters;
pub use gondwana_coherence::{CommonAfter, Consistency, ORDERED, PROTOCOLS, PlacedHomes, ProtocolInfo};
pub use messages::{News, Order, Report};
pub use placement::{Homes, PlacementRule, PlacementTarget, RuleMemory, ThreadGroup, machine};
pub use rules::{ResolvedRule, ResolvedRules};
pub use waits::{Awaited, NodeWaits, Wait, WaitingThread, number_for_people};
