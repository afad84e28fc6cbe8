//! The memory of one node: two views of the shared pages, their protection, twins and diffs, and the heap that
//! hands out shared addresses. All `unsafe` memory code of the system is here and in
//! `gondwana_racing`, by whose rules pages are copied while others write them.

mod access;
pub mod diff;
mod error;
mod files;
mod geometry;
pub mod heap;
mod mapping;
mod neighbour;
mod pages;
mod resident;
mod sparse_words;
mod twins;

pub use access::{Access, Mechanism, Missing, probe_userfaultfd};
pub use error::MemoryError;
pub use files::out_of_the_way;
pub use geometry::{Geometry, PAGE_SIZE, RUNTIME_BASE, SPAN_BASE, Segment};
#[cfg(debug_assertions)]
pub use neighbour::while_held;
pub use neighbour::{MOST_NEIGHBOURS, Neighbour, Purpose, Visits, Writers};
pub use pages::{PageBytes, Pages, empty_frames};
pub use sparse_words::SparseWords;
