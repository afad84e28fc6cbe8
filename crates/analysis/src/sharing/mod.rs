//! How pages are shared, from what can be seen of that when whole pages move.
//!
//! What is known of a page: who fetched it, and for each fetch the first address that was touched, to a unit of (mostly)
//! 32 bytes; which bytes each node wrote, exactly where there were diffs, else by the address of the first write; and
//! who was told of whose writes. The home of a page writes in place, without a trace as long as nobody shares the page:
//! that it wrote is known from those who had to fetch the page again.

mod classify;
mod falsely;
mod page;

pub(crate) use classify::{PartSharing, classify};
pub(crate) use falsely::sides;
pub(crate) use page::{Key, PageHistory, key, pages};
