//! A Linux machine with several NUMA nodes, in software, for tests.
//!
//! QEMU emulates a computer with the nodes and distances that a [`Machine`] describes. It boots the kernel of the
//! distribution with a file system in memory, an [`Image`], that holds the programs under test. A [`Guest`] then runs
//! scripts in it, one after the other, and hands back what they print. Emulation knows no caches and no latency: it
//! tells where pages and threads are, never how fast they are.

mod agent;
mod cpio;
mod guest;
mod image;
mod machine;
mod tools;

pub use agent::Ran;
pub use guest::{Broken, Guest};
pub use image::Image;
pub use machine::{Machine, Node};
pub use tools::{Missing, Tools};
