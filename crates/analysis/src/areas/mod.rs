//! Data areas: the owner of every touched address, and the transactions of each area.

mod area_counters;
mod blocks;
mod layer;
mod map;
mod recursion;

pub(crate) use area_counters::{AreaCounters, area_counters, reads_and_writes};
pub(crate) use blocks::Blocks;
pub(crate) use map::{Map, Owner};
