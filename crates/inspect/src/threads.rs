//! The threads of a process.

use std::fs;

/// The kernel's numbers of the threads of a process, in ascending order; none if it has ended.
#[must_use]
pub fn tasks(process: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut tasks: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tasks.sort_unstable();
    tasks
}

/// The name of a thread; empty if it has ended.
pub(crate) fn name(process: u32, task: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/task/{task}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
