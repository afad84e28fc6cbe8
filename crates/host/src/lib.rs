//! This computer as a machine: its resources, and the placement of threads and pages by the kernel.
//!
//! The result of each request to the kernel is checked: because of containers, cpusets, full nodes or huge pages,
//! pages may be elsewhere than requested. The caller then gets an [`UnmetRequest`].

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
