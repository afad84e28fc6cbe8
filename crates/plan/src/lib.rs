//! Placement plans: which memory of a program goes where, as a text that people and the advisor write.
//!
//! docs/plan-file.md describes the text. Names are only names here: what they mean in a program is found out by whoever
//! applies the plan.

#![forbid(unsafe_code)]

mod code_location;
mod entry;
mod error;
mod keep;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use code_location::{CodeLocation, CodeLocationError};
pub use entry::{Allocation, Homes, Plan, ThreadGroup, Traffic, Variable};
pub use error::PlanError;
