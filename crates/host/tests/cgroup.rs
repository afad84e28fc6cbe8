//! The limits of control groups.

mod common;

use common::Computer;
use gondwana_host::cgroup::{Limits, limits, times_killed};
use gondwana_topology::Bytes;

#[test]
fn the_least_limit_of_all_groups_around_counts() {
    let computer = Computer::of(
        "proc/self/cgroup\t0::/service/job\n\
         proc/self/mountinfo\t30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n\
         sys/fs/cgroup/service/memory.max\t1073741824\n\
         sys/fs/cgroup/service/cpu.max\tmax 100000\n\
         sys/fs/cgroup/service/job/memory.max\tmax\n\
         sys/fs/cgroup/service/job/cpu.max\t150000 100000\n",
    );
    let expected = Limits { memory: Some(Bytes(1 << 30)), processor_time: Some(1.5) };
    assert_eq!(limits(&computer), expected);
}

#[test]
fn the_first_version_has_a_hierarchy_for_each_controller() {
    let computer = Computer::of(
        "proc/self/cgroup\t4:memory:/box/inner\n\
         proc/self/cgroup\t2:cpu,cpuacct:/\n\
         proc/self/cgroup\t0::/\n\
         proc/self/mountinfo\t33 29 0:30 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         proc/self/mountinfo\t34 29 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
         sys/fs/cgroup/memory/memory.limit_in_bytes\t9223372036854771712\n\
         sys/fs/cgroup/memory/inner/memory.limit_in_bytes\t524288\n\
         sys/fs/cgroup/cpu/cpu.cfs_quota_us\t-1\n\
         sys/fs/cgroup/cpu/cpu.cfs_period_us\t100000\n",
    );
    assert_eq!(limits(&computer), Limits { memory: Some(Bytes(512 << 10)), processor_time: None });
}

#[test]
fn without_control_groups_nothing_is_limited() {
    assert_eq!(limits(&Computer::of("proc/self/cgroup\t0::/")), Limits::default());
}

#[test]
fn processes_that_were_ended_are_counted_by_both_versions() {
    let second = Computer::of(
        "proc/self/cgroup\t0::/service/job\n\
         proc/self/mountinfo\t30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
         sys/fs/cgroup/service/memory.events\tlow 0\n\
         sys/fs/cgroup/service/memory.events\toom 7\n\
         sys/fs/cgroup/service/memory.events\toom_kill 3\n\
         sys/fs/cgroup/service/memory.events\toom_group_kill 9\n\
         sys/fs/cgroup/service/job/memory.events\toom_kill 2\n",
    );
    assert_eq!(times_killed(&second), Some(5));
    let first = Computer::of(
        "proc/self/cgroup\t4:memory:/box\n\
         proc/self/mountinfo\t33 29 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         sys/fs/cgroup/memory/memory.oom_control\toom_kill_disable 0\n\
         sys/fs/cgroup/memory/memory.oom_control\toom_kill 0\n\
         sys/fs/cgroup/memory/box/memory.oom_control\toom_kill_disable 0\n\
         sys/fs/cgroup/memory/box/memory.oom_control\tunder_oom 1\n\
         sys/fs/cgroup/memory/box/memory.oom_control\toom_kill 4\n",
    );
    assert_eq!(times_killed(&first), Some(4));
    assert_eq!(times_killed(&Computer::of("proc/self/cgroup\t0::/")), None);
}
