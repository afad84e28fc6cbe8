//! The limits of the control groups that this process is in.

use gondwana_topology::Bytes;
use std::path::{Path, PathBuf};

/// The limits of control groups: the least of the own group and its ancestors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The memory limit, if there is one.
    pub memory: Option<Bytes>,
    /// The limit of processor time, in processors, if there is one.
    pub processor_time: Option<f64>,
}

/// The limits of this process, from the files under `root`.
#[must_use]
pub fn limits(root: &Path) -> Limits {
    let mut limits = Limits::default();
    folders(root).iter().for_each(|folder| limits.lower(folder));
    limits
}

/// How often the kernel could reclaim no memory at the limits of this process's groups, so that allocations failed or
/// processes were killed. Groups of version 1 do not count that.
pub(crate) fn times_out_of_memory(root: &Path) -> u64 {
    let events = folders(root).into_iter().filter_map(|folder| {
        let text = std::fs::read_to_string(folder.join("memory.events")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom ")?.parse::<u64>().ok())
    });
    events.sum()
}

/// How many processes the kernel has killed at the memory limits of this process's groups; `None` if none of them
/// counts that (before Linux 4.13). Use differences only: a group of version 2 includes the counts of its
/// descendants.
#[must_use]
pub fn times_killed(root: &Path) -> Option<u64> {
    let counts = folders(root).into_iter().filter_map(|folder| {
        // The versions have different names for it.
        let text = ["memory.events", "memory.oom_control"]
            .iter()
            .find_map(|name| std::fs::read_to_string(folder.join(name)).ok())?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
    });
    counts.reduce(|sum, count| sum + count)
}

/// The folders of this process's groups and of their ancestors.
fn folders(root: &Path) -> Vec<PathBuf> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mounts: Vec<Mount> = mounts.lines().filter_map(mount).collect();
    // Each line has a number, the controllers and the path of the group; the second version has no controllers.
    let groups = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let folders = groups.flat_map(|(controllers, path)| {
        let mounts = mounts.iter().filter(move |mount| mount.has(controllers));
        mounts.flat_map(move |mount| mount.folders(root, path))
    });
    folders.collect()
}

/// A hierarchy of control groups in the file system.
struct Mount {
    /// The group that is mounted at `point`: in containers not the root.
    group: PathBuf,
    point: PathBuf,
    /// Its controllers, with other options; nothing for version 2.
    controllers: Option<String>,
}

fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let (mut place, mut kind) = (place.split(' ').skip(3), kind.split(' '));
    let (group, point) = (place.next()?.into(), place.next()?.into());
    let controllers = match kind.next()? {
        "cgroup2" => None,
        "cgroup" => Some(kind.nth(1)?.to_owned()),
        _ => return None,
    };
    Some(Mount { group, point, controllers })
}

impl Mount {
    fn has(&self, controllers: &str) -> bool {
        match &self.controllers {
            None => controllers.is_empty(),
            Some(own) => {
                !controllers.is_empty()
                    && controllers.split(',').any(|one| own.split(',').any(|own| own == one))
            }
        }
    }

    /// The folder of the group and those of its ancestors.
    fn folders(&self, root: &Path, path: &str) -> Vec<PathBuf> {
        let top = root.join(self.point.strip_prefix("/").unwrap_or(&self.point));
        // Only the mounted group and its descendants are visible.
        let inner = Path::new(path).strip_prefix(&self.group).unwrap_or(Path::new(""));
        let own = top.join(inner);
        own.ancestors().take_while(|folder| folder.starts_with(&top)).map(Path::to_owned).collect()
    }
}

/// Version 1's value for "no limit": the largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

impl Limits {
    fn lower(&mut self, folder: &Path) {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| text(name)?.trim().parse::<f64>().ok();
        let memory = text("memory.max").or_else(|| text("memory.limit_in_bytes"));
        let memory = memory.and_then(|text| text.trim().parse().ok()).filter(|&bytes| bytes < UNLIMITED);
        self.memory = least(self.memory, memory.map(Bytes));
        let time = text("cpu.max").and_then(|text| {
            let (quota, period) = text.trim().split_once(' ')?;
            Some((quota.parse::<f64>().ok()?, period.parse().ok()?))
        });
        let time = time.or_else(|| number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us")));
        // The first version has -1 for "no limit".
        let time = time.filter(|(quota, period)| *quota > 0.0 && *period > 0.0);
        self.processor_time = least(self.processor_time, time.map(|(quota, period)| quota / period));
    }
}

fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}
