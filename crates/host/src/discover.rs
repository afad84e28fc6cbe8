//! This computer as a [`Machine`].

use crate::unreadable::Unreadable;
use crate::{cgroup, sys, sysfs};
use gondwana_page::PAGE_SIZE;
use gondwana_topology::{Bytes, Limits, Machine, Problem, ProcessorSet, View};
use std::path::Path;

/// Why a computer cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// A required file of the kernel is missing.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The kernel's data is inconsistent.
    #[error("the kernel describes a computer that cannot be: {0}")]
    Impossible(#[from] Problem),
}

/// This computer, with the resources that this process may use.
pub fn discover() -> Result<Machine, DiscoverError> {
    let root = Path::new("/");
    limited(root, recorded(root)?)
}

/// Like [`discover`], without caches and packages: reading the files of each cache of each processor takes many times
/// as long as the rest, and resource sets need only nodes and cores.
///
/// # Examples
/// ```
/// let machine = gondwana_host::discover_nodes()?;
/// assert!(!machine.processors().is_empty());
/// # Ok::<(), gondwana_host::DiscoverError>(())
/// ```
pub fn discover_nodes() -> Result<Machine, DiscoverError> {
    let root = Path::new("/");
    limited(root, nodes(root, &sysfs::processors(root)?)?)
}

fn limited(root: &Path, mut machine: Machine) -> Result<Machine, DiscoverError> {
    let control_groups = cgroup::limits(root);
    let all = (machine.processors(), machine.memory_nodes());
    let total: u64 = machine.nodes.iter().map(|node| node.memory.total.0).sum();
    machine.limits = Limits {
        // A kernel that does not answer, as in a sandbox, limits nothing that we know of.
        processors: sys::affinity(0).ok().filter(|allowed| !allowed.contains_all(&all.0)),
        nodes: sys::allowed_nodes().ok().filter(|allowed| !allowed.contains_all(&all.1)),
        memory: control_groups.memory.filter(|memory| memory.0 < total),
        processor_time: control_groups.processor_time.filter(|time| *time < all.0.len() as f64),
    };
    Ok(machine)
}

/// The computer whose `/sys` and `/proc` were copied to `root`, without limits.
pub fn recorded(root: &Path) -> Result<Machine, DiscoverError> {
    let online = sysfs::processors(root)?;
    let machine = Machine {
        packages: sysfs::siblings(root, &online, "core_siblings_list"),
        caches: sysfs::caches(root, &online),
        ..nodes(root, &online)?
    };
    machine.check()?;
    Ok(machine)
}

fn nodes(root: &Path, online: &ProcessorSet) -> Result<Machine, DiscoverError> {
    let name = std::fs::read_to_string(root.join("proc/sys/kernel/hostname")).unwrap_or_default();
    let machine = Machine {
        name: name.trim().to_owned(),
        view: View::Host,
        page_size: Bytes(PAGE_SIZE as u64),
        nodes: sysfs::nodes(root, online)?,
        cores: sysfs::siblings(root, online, "thread_siblings_list"),
        ..Machine::default()
    };
    machine.check()?;
    Ok(machine)
}
