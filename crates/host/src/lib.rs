//! This computer as a machine: what it has, and where the kernel puts threads and pages.
//!
//! Everything that is asked of the kernel is counted afterwards: a kernel, a container, a cpuset, a full node or huge
//! pages may have pages elsewhere than where they were asked for, and then the caller is told.

pub mod cgroup;
mod discover;
pub mod pages;
mod place;
pub mod process;
mod region;
mod remark;
pub mod sys;
pub mod sysfs;
mod unreadable;

pub use discover::{DiscoverError, discover, recorded};
pub use place::{Placement, place};
pub use region::Region;
pub use remark::Remark;
pub use unreadable::Unreadable;
