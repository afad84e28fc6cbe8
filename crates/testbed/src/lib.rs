//! A cluster of protocol machines in one value: memories, messages under way, threads with small programs, mutexes and a barrier.
//! It has no clock. A test, a random walk or a model checker chooses which step comes next.
//!
//! [`World`](world::World) runs whole programs against any protocol that implements [`Machine`](world::Machine);
//! [`Cluster`](cluster::Cluster) has machines of any protocol that do what a test says, one thing after the other.
//! [`Rig`](rig::Rig) and [`Pair`](pair::Pair) have one and two `csm` machines for tests of single transitions.
#![forbid(unsafe_code)]

pub mod cluster;
mod csm;
mod erc;
pub mod memory;
pub mod model;
pub mod pair;
pub mod programs;
pub mod rig;
mod sc;
pub mod world;
