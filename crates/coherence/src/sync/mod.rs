//! Synchronisation objects of the program: mutexes, conditions, barriers, semaphores and so on.
//!
//! An object is known by its address; its state lives here and never in the page that holds the program's
//! `pthread_..._t`, so that synchronising moves no page. There are four kinds of machine:
//!
//! * [`Locks`]: a mutex is a token that rests where it was used last. [`LockTable`] lets the threads of that node
//!   lock and unlock it with one atomic instruction and no message.
//! * [`Barriers`]: threads that arrive are gathered within each node and then along a tree of nodes.
//! * [`Keepers`]: a condition, semaphore or readers-writer lock rests with the node that uses it alone, or with its manager;
//!   several nodes may share the right to read. [`RestingTable`] is for it what `LockTable` is for mutexes.
//! * [`Server`]: everything else has a manager, a node that answers requests about it, at once or later.
//!
//! None does coherence: the node releases before a request, an arrival or a token leaves it and acquires when an
//! answer or a token arrives.

mod barrier;
mod barrier_message;
mod barriers;
#[cfg(test)]
mod barriers_model;
#[cfg(test)]
mod barriers_tests;
#[cfg(test)]
mod barriers_world;
mod entry;
mod error;
mod gathering;
mod keeper_history;
mod keeper_message;
mod keepers;
#[cfg(test)]
mod keepers_model;
#[cfg(test)]
mod keepers_world;
mod key;
mod lock_message;
mod locks;
#[cfg(test)]
mod locks_ahead_tests;
#[cfg(test)]
mod locks_hot_tests;
#[cfg(test)]
mod locks_model;
#[cfg(test)]
mod locks_tests;
#[cfg(test)]
mod locks_world;
mod message;
mod object_key;
mod object_map;
mod object_states;
mod once;
mod primitive;
mod reported;
mod request;
mod resting;
mod rwlock;
mod semaphore;
mod server;
#[cfg(test)]
mod server_tests;
mod table;
mod thread;
mod tree;
mod wait_queue;
mod work_sharing;

pub use barrier_message::{BarrierMessage, BarrierViolation};
pub use barriers::{BarrierCounters, BarrierEnv, Barriers};
pub use entry::{Entry, Fast, Kind};
pub use error::SyncError;
pub use keeper_message::{KeeperMessage, KeeperViolation};
pub use keepers::{KeeperCounters, KeeperEnv, Keepers, RestingTable};
pub use key::KEYS_MAX;
pub use lock_message::{LockMessage, LockViolation};
pub use locks::{KEPT_USES, LOCAL_HANDOVERS, LockCounters, LockEnv, LockGrant, Locks, ManagerOf, TryOutcome};
pub use message::SyncMessage;
pub use object_key::{ObjectKey, ObjectKind};
pub use once::ONCE_RUN;
pub use request::{Answer, Initialised, Reply, Request, Ticket};
pub use resting::Resting;
pub use semaphore::SEM_VALUE_MAX;
pub use server::Server;
pub use table::{LockTable, Table};
pub use tree::FAN_IN;
pub use work_sharing::{Claim, Construct, Part};

pub use crate::slices::Turn;

use serde::{Deserialize, Serialize};

/// A synchronisation object of the program, known by its address (the same on every node; never 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Object(pub u64);

/// A thread of the program, numbered uniquely over all nodes; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Thread(pub u64);
