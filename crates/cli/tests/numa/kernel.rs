//! The guest is as specified; all other tests rely on it.

use crate::guest::{DISTANCES, MEMORY, PROCESSORS, run};

#[test]
fn the_kernel_knows_the_nodes_and_what_each_has() {
    let script = "cd /sys/devices/system/node; cat online has_cpu has_memory; cat node*/cpulist";
    let Some(ran) = run(script) else { return };
    let cpu_lists = PROCESSORS.map(|cpus| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    let expected = format!("0-3\n0-2\n0-3\n{}\n", cpu_lists.join("\n"));
    assert_eq!(ran.succeeded(), expected);
}

#[test]
fn the_kernel_knows_the_distances() {
    let Some(ran) = run("cat /sys/devices/system/node/node*/distance") else { return };
    let rows = DISTANCES.map(|row| row.map(|distance| distance.to_string()).join(" ") + "\n");
    assert_eq!(ran.succeeded(), rows.concat());
}

#[test]
fn the_kernel_has_most_of_the_memory_of_each_node() {
    let Some(ran) = run("cat /sys/devices/system/node/node*/meminfo | awk '/MemTotal/ { print $4 }'") else {
        return;
    };
    let kibibytes: Vec<u32> = ran.succeeded().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(kibibytes.len(), MEMORY.len());
    for (found, given) in kibibytes.iter().zip(MEMORY) {
        // The kernel's own tables are not counted.
        assert!((given * 1024 * 2 / 3..=given * 1024).contains(found), "{kibibytes:?} KiB of {MEMORY:?} MiB");
    }
}
