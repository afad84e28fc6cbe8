//! Clusters of protocol machines: memories, messages under way, threads with small programs.
//!
//! [`World`](world::World) is a value without a clock, with mutexes and a barrier of its own: a test, a random walk or a model
//! checker chooses which step of a program comes next, against any protocol that implements [`Machine`](world::Machine).
//! [`Cluster`](cluster::Cluster) has a simulated clock and runs programs on the whole [`Engine`](gondwana_coherence::Engine) of each
//! node. [`Scripted`](scripted::Scripted) has machines of any protocol that do what a test says, [`Rig`](rig::Rig) and
//! [`Pair`](pair::Pair) one and two `csm` machines for tests of single transitions.
#![forbid(unsafe_code)]

mod c11;
pub mod cluster;
mod csm;
pub mod effects;
mod erc;
mod letter;
pub mod memory;
pub mod model;
pub mod pair;
pub mod programs;
mod random_schedule;
pub mod rig;
mod sc;
pub mod scripted;
pub mod setup;
pub mod world;
