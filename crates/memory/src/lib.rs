//! The memory of one node: two views of the shared pages, their protection, twins and diffs, and the heap that
//! hands out shared addresses. All `unsafe` memory code of the system is here and in
//! `gondwana_racing`, by whose rules pages are copied while others write them.

mod access;
mod common_frames;
mod common_set;
pub mod diff;
mod error;
mod files;
mod geometry;
pub mod heap;
mod mapping;
mod memfd;
mod pages;
mod peer;
mod program_data;
mod remote;
mod resident;
mod rseq;
mod sparse_words;
mod thread_memory;
mod twins;

pub use access::{Mechanism, Missing, probe_userfaultfd};
pub use common_frames::CommonWords;
pub use common_set::CommonSet;
pub use error::MemoryError;
pub use files::out_of_the_way;
pub use geometry::{Geometry, LOW, PAGE_SIZE, PageBytes, RUNTIME_BASE, SPAN_BASE, Segment};
pub use gondwana_page::{Access, RemoteAccess, Writers};
pub use mapping::make_executable;
pub use pages::{Pages, empty_frames};
pub use peer::Peer;
#[cfg(debug_assertions)]
pub use remote::while_held;
pub use remote::{
    Capabilities, LoggedReads, RemoteMemory, SharedWords, TableLayout, Withdrawal, claim, complete_claim,
    post_notice,
};
pub use sparse_words::SparseWords;
pub use thread_memory::ThreadMemory;
