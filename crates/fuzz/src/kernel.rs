//! What the kernel tells in `/proc` and `/sys`: also about processes of others, who choose names in it.

use gondwana_host::{cgroup, process, recorded};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that stands for the root of the file system; it goes away with its thread.
struct Root(PathBuf);

impl Root {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("gondwana-fuzz-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("the folder is new");
        Self(folder)
    }

    /// Writes the files, each with what is between two zero bytes; what there is no more of is empty.
    fn fill(&self, names: &[&str], bytes: &[u8]) {
        let mut parts = bytes.split(|&byte| byte == 0);
        for name in names {
            let file = self.0.join(name);
            let part = parts.next().unwrap_or_default();
            if std::fs::write(&file, part).is_err() {
                std::fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("it is ours");
                std::fs::write(&file, part).expect("it is ours");
            }
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // Left in the folder for temporary files at the worst.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    static ROOT: OnceCell<Root> = const { OnceCell::new() };
}

fn with_files(names: &[&str], bytes: &[u8], look: impl FnOnce(&Path)) {
    ROOT.with(|root| {
        let root = root.get_or_init(Root::new);
        root.fill(names, bytes);
        look(&root.0);
    });
}

/// A computer with two nodes and two processors.
const COMPUTER: &[&str] = &[
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node0/distance",
    "sys/devices/system/node/node0/meminfo",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
    "sys/devices/system/node/node1/cpulist",
    "sys/devices/system/node/node1/distance",
    "sys/devices/system/node/node1/meminfo",
    "sys/devices/system/cpu/cpu0/cache/index0/type",
    "sys/devices/system/cpu/cpu0/cache/index0/size",
    "sys/devices/system/cpu/cpu0/cache/index0/level",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
    "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu0/topology/package_cpus_list",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "sys/fs/cgroup/memory.max",
    "sys/fs/cgroup/cpu.max",
];

/// The computer and its limits.
pub(crate) fn computer(bytes: &[u8]) {
    with_files(COMPUTER, bytes, |root| {
        if let Ok(machine) = recorded(root) {
            assert!(machine.check().is_ok(), "a machine that cannot be: {machine:?}");
        }
        let _ = cgroup::limits(root);
    });
}

/// The mappings of a process.
pub(crate) fn process(bytes: &[u8]) {
    with_files(&["proc/1/maps", "proc/1/numa_maps"], bytes, |root| {
        for mapping in process::mappings(root, 1).into_iter().flatten() {
            assert!(mapping.addresses.start <= mapping.addresses.end, "{mapping:?}");
        }
    });
}
