//! A deterministic machine of several nodes, for random tests and for exhaustive ones.
#![allow(dead_code, reason = "each test uses a part")]

mod csm;
mod erc;
pub mod memory;
pub mod model;
pub mod pair;
pub mod programs;
pub mod rig;
mod sc;
pub mod world;
