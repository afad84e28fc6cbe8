//! This computer as a machine: what it has, and where the kernel puts threads and pages.
//!
//! Everything that is asked of the kernel is counted afterwards: a kernel, a container, a cpuset, a full node or huge
//! pages may have pages elsewhere than where they were asked for, and then the caller is told.

mod allocate;
mod anonymous_memory;
mod binding;
pub mod cgroup;
mod colour;
mod discover;
mod ended;
mod malloc_plan;
mod names;
pub mod pages;
mod place;
mod place_untouched;
mod present_pages;
mod probe;
pub mod process;
mod shortage;
pub mod sys;
pub mod sysfs;
mod threads;
mod unmet_request;
mod unreadable;

pub use allocate::{Extras, allocate, fill};
pub use anonymous_memory::AnonymousMemory;
pub use binding::{Binding, Malformed};
pub use colour::{Colours, colour, colours};
pub use discover::{DiscoverError, discover, discover_nodes, recorded};
pub use ended::{Ended, OutOfMemory};
pub use malloc_plan::{MALLOC_VARIABLE, MallocPlan, Reporter};
pub use names::{Names, NamesError};
pub use place::{Placed, place};
pub use place_untouched::place_untouched;
pub use present_pages::present_pages;
pub use probe::Tried;
pub use shortage::Shortage;
pub use threads::{Asked, THREADS_VARIABLE, Threads, translate};
pub use unmet_request::UnmetRequest;
pub use unreadable::Unreadable;
