//! Whether a whole program can be locked in memory.

/// Why it cannot.
pub(super) const LIMITED: &str = "a whole program cannot be locked in memory: beyond the limit (ulimit -l) its allocations would \
     fail; CAP_IPC_LOCK or ulimit -l unlimited allows it, and with --malloc only that memory is locked";

/// The number of `CAP_IPC_LOCK`.
const CAP_IPC_LOCK: u32 = 14;

/// True if this process may lock any amount of memory.
pub(super) fn is_unlimited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills in the record.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    known && limit.rlim_cur == libc::RLIM_INFINITY || may_lock(&status)
}

fn may_lock(status: &str) -> bool {
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    capabilities.is_some_and(|bits| bits >> CAP_IPC_LOCK & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_found() {
        assert!(may_lock("CapPrm:\t0\nCapEff:\t0000000000004000\n"));
        assert!(!may_lock("CapEff:\t00000000a80425fb\nName: x\n".replace("a80425fb", "a80400fb").as_str()));
        assert!(!may_lock(""));
    }
}
