//! Data areas: whose every address is, and what happened to it.

mod blocks;
mod layer;
mod map;
mod recursion;
mod tally;

pub(crate) use blocks::Blocks;
pub(crate) use map::{Map, Owner};
pub(crate) use tally::{Tally, reads_and_writes, tallies};
