//! Memory under the kernel's NUMA balancing: it makes pages inaccessible to sample their users, and kernels before
//! 6.6 report such pages as absent.

use crate::guest::run;

#[test]
fn stripes_are_counted_and_stay_while_the_balancing_looks_at_memory() {
    // By default it starts after a second of a process's time, and scans once in a second at most. With shorter
    // intervals it still takes a small part of the time only, so it may miss the placement of pages.
    let script = "mount -t debugfs debug /sys/kernel/debug || exit
        of=/sys/kernel/debug/sched/numa_balancing/
        [ -e ${of}scan_delay_ms ] || of=/proc/sys/kernel/numa_balancing_
        settings='scan_delay_ms scan_period_min_ms scan_period_max_ms scan_size_mb'
        for name in $settings; do cat $of$name > before.$name || exit; done
        for name in $settings; do echo 1 > $of$name; done
        echo 64 > ${of}scan_size_mb
        looked_at() { awk '/^numa_pte_updates / { print $2 }' /proc/vmstat; }
        before=$(looked_at)
        status=0
        while [ $status = 0 ] && [ $(looked_at) -lt $((before + 1000)) ]; do
            # Fails if a page is not found where it was asked for.
            /tests/placement_cost 32 >&2
            status=$?
        done
        echo $(($(looked_at) - before))
        for name in $settings; do cat before.$name > $of$name; done
        umount /sys/kernel/debug
        exit $status";
    let Some(ran) = run(script) else { return };
    let pages: u64 = ran.succeeded().trim().parse().unwrap();
    assert!(pages > 1000, "the balancing has looked at {pages} pages only");
}
