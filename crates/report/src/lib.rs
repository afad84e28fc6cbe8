//! Output about recordings and machines: tables, CSV, JSON, an HTML page, advice and plans.
//!
//! Everything is made from an [`Analysis`](gondwana_analysis::Analysis) or a [`Machine`](gondwana_topology::Machine) in memory;
//! nothing here reads or writes a file.

#![forbid(unsafe_code)]

pub mod advice;
pub mod csv;
pub mod machine;
pub mod page;
pub mod plan_document;
pub mod recorded;
#[cfg(test)]
mod sample;
pub mod selection;
pub mod table;
