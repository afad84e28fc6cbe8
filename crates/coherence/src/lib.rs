//! Coherence protocols and synchronisation of a Gondwana machine, as state machines.
//!
//! Every protocol is a value that takes events (a fault, a release, an acquire, a message) and acts through the
//! [`Env`] it is given. There is no I/O, no clock and no `unsafe` here, so the same code runs in a node, in the
//! model checker and in the simulated cluster of the random tests.
//!
//! [`directory`] is the protocol of simulated machines, whose nodes exchange lines and not pages.
#![forbid(unsafe_code)]

mod c11;
mod counters;
mod csm;
pub mod directory;
mod engine;
mod env;
mod erc;
mod layout;
mod message;
mod page_table;
mod registry;
mod runs;
mod sc;
mod slab;
mod slices;
pub mod sync;
mod table;
mod violation;

pub use c11::{C11, C11Message, C11Options, PageKind};
pub use counters::Counters;
pub use csm::{Csm, CsmMessage, CsmOptions, DiffEntry, Grant, History, HomeGrant, PageView, State, Update};
pub use engine::{Continuation, Engine, EngineEnv, EngineViolation};
pub use env::{
    Claims, Env, Event, Exposure, HomeRole, MOST_KINDS, Outcome, Page, PlacedPages, Protocol, SyncPoint,
    Waiter,
};
pub use erc::{Erc, ErcMessage, ErcOptions, ErcState, ErcView};
pub use gondwana_page::{Access, RemoteAccess, Writers};
pub use layout::{Layout, Managers, Region};
pub use message::{Encoded, Kind, MESSAGE_TAG, Message};
pub use registry::{
    CommonAfter, Consistency, ORDERED, PROTOCOLS, PlacedHomes, ProtocolInfo, StartOptions, protocol,
};
pub use sc::{Sc, ScMessage, ScOptions, ScState, ScView};
pub use slices::Slices;
pub use violation::Violation;
