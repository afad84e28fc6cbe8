//! Patterns of sharing, as far as transfers of whole pages show them.
//!
//! A recording has this about a page: the nodes that fetched it, and for each fetch the first touched address, mostly
//! to a unit of 32 bytes; the bytes that each node wrote, exactly from diffs, otherwise by the address of the first
//! write; and the write notices. The home of a page writes in place, which shows only when another node has to fetch
//! the page again.

mod classify;
mod falsely;
mod page;

pub(crate) use classify::{PartSharing, classify};
pub(crate) use falsely::node_bytes;
pub(crate) use page::{Key, PageHistory, key, pages};
