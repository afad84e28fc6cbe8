//! The command and its runtime library on a real NUMA kernel, in an emulated computer (`crates/guest`).
//!
//! All tests share one guest and run in it one after the other. The command's output is compared with the guest
//! kernel's. Without QEMU and a kernel the tests are skipped, with a line that says why; with
//! `GONDWANA_GUEST=required` they fail.

#[path = "../common/mod.rs"]
mod common;
mod guest;

mod balancing;
mod c_api;
mod colours;
mod cost;
mod exec;
mod host;
mod kernel;
mod malloc;
mod memory;
mod runs;
mod shortage;
mod topo;
mod where_;
mod witness;
