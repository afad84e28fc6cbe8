//! Checks limits of this process (`ulimit`) that a run would exceed, before anything is started.

use crate::probes::number_in;
use gondwana_console::failure::Failure;
use gondwana_console::rlimit::limit;
use gondwana_memory::{LOW, ThreadMemory};

/// The least stack that a node needs before it has stacks of its own, in bytes.
pub const LEAST_STACK: u64 = 256 << 10;

/// Threads of each node besides the program's: the main thread, and one that serves the other nodes or flushes
/// streams.
const EACH: u64 = 2;

/// Threads of the launcher that begin after this check.
const LAUNCHER: u64 = 2;

/// From this limit on it is not checked how much is left: that reads the status of all processes of the computer.
const PLENTY: u64 = 4096;

/// Refuses a run with more nodes on this computer than the limits permit. The message has the limit and what to do.
pub fn check(nodes: usize) -> Result<(), Failure> {
    processes(nodes as u64).map_err(Failure::cannot)
}

/// Refuses to do anything with a stack that is too small for this process or the nodes.
pub fn check_stack() -> Result<(), Failure> {
    stack(limit(libc::RLIMIT_STACK)).map_err(Failure::cannot)
}

/// From now on a file that grows beyond its limit is an error for who writes, not the end of the process.
pub fn survive_full_files() {
    // SAFETY: no handler is installed. Programs that are started have the signal as usual again.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn stack(limit: u64) -> Result<(), String> {
    if limit >= LEAST_STACK {
        return Ok(());
    }
    Err(format!(
        "the limit on stacks is {} KiB, and a node needs {}: raise it (ulimit -s 8192)",
        limit >> 10,
        LEAST_STACK >> 10
    ))
}

fn processes(nodes: u64) -> Result<(), String> {
    let limit = limit(libc::RLIMIT_NPROC);
    let needed = nodes * EACH + LAUNCHER;
    if limit >= PLENTY.max(2 * needed) || is_exempt() {
        return Ok(());
    }
    // SAFETY: touches no memory.
    let taken = tasks_of(unsafe { libc::getuid() });
    room_for(limit, taken, needed, nodes)
}

fn room_for(limit: u64, taken: u64, needed: u64, nodes: u64) -> Result<(), String> {
    if taken + needed <= limit {
        return Ok(());
    }
    Err(format!(
        "the limit on processes and threads of a user is {limit}, {taken} of which are taken, and {nodes} nodes need \
         {needed} at least: raise it (ulimit -u {})",
        (taken + needed).next_power_of_two().max(PLENTY)
    ))
}

/// True for users whose processes the kernel does not limit.
fn is_exempt() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    // SAFETY: touches no memory.
    unsafe { libc::getuid() == 0 || effective & (1 << CAP_SYS_ADMIN | 1 << CAP_SYS_RESOURCE) != 0 }
}

/// The number of threads of a user's processes. Processes that end meanwhile do not count.
fn tasks_of(user: u32) -> u64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let status = processes
        .filter(|process| process.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    status.filter_map(|status| threads_of(&status, user)).sum()
}

/// The number of threads of a process, if it is the user's.
fn threads_of(status: &str, user: u32) -> Option<u64> {
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next();
    let is_own = field("Uid:")?.parse() == Ok(user);
    is_own.then(|| field("Threads:")?.parse().ok()).flatten()
}

/// Bytes of addresses that each node needs besides the span: for messages, for the streams and the threads of each
/// node, for two views of low addresses, and for the rest.
pub fn beside_span(nodes: usize, messages: usize) -> u64 {
    const STREAMS: u64 = 64 << 20;
    const REST: u64 = 512 << 20;
    let low = 2 * LOW.len() as u64;
    nodes as u64 * (STREAMS + 2 * ThreadMemory::LEAST_PART) + messages as u64 + low + REST
}

/// True if nodes may use as many addresses as they like. Common pages need as many again as the span.
pub fn has_all_addresses() -> bool {
    limit(libc::RLIMIT_AS) == libc::RLIM_INFINITY
}

/// Why a node cannot reserve this span and `beside` more bytes of addresses; `None` if it can.
pub fn lacks_addresses(span: u64, beside: u64) -> Option<String> {
    lacks(span, beside, limit(libc::RLIMIT_AS))
}

fn lacks(span: u64, beside: u64, limit: u64) -> Option<String> {
    // Two views, tables with some bytes for each page, and the memory of threads.
    let parts = span / 64 + ThreadMemory::most(span);
    let needed = span.saturating_mul(2).saturating_add(parts).saturating_add(beside);
    (needed > limit).then(|| {
        format!(
            "the limit on addresses (ulimit -v) is {} MiB, and a node with a span of {} MiB needs {} MiB",
            limit >> 20,
            span >> 20,
            needed >> 20
        )
    })
}

/// The finding of `gondwana doctor` about stacks.
pub fn stacks_found() -> String {
    let limit = limit(libc::RLIMIT_STACK);
    if limit == u64::MAX { "no limit".to_owned() } else { format!("up to {} KiB", limit >> 10) }
}

/// Its finding about processes: the limit, and the number of nodes that it permits; an error if less than two.
pub fn processes_found() -> Result<String, String> {
    let limit = limit(libc::RLIMIT_NPROC);
    if limit == u64::MAX || is_exempt() {
        let threads = number_in("/proc/sys/kernel/threads-max").unwrap_or(0);
        return Ok(format!("no limit for this user, {threads} on this computer"));
    }
    processes(2)?;
    Ok(format!("{limit} with their threads"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_stacks_are_refused() {
        assert!(stack(8 << 20).is_ok() && stack(u64::MAX).is_ok() && stack(LEAST_STACK).is_ok());
        let why = stack(64 << 10).unwrap_err();
        assert!(why.contains("64 KiB") && why.contains("ulimit -s"), "{why}");
    }

    #[test]
    fn what_is_taken_counts() {
        assert!(room_for(16, 6, 10, 4).is_ok());
        let why = room_for(8, 3, 6, 2).unwrap_err();
        assert_eq!(
            why,
            "the limit on processes and threads of a user is 8, 3 of which are taken, and 2 nodes need 6 at least: \
             raise it (ulimit -u 4096)"
        );
    }

    #[test]
    fn threads_are_counted_by_user() {
        let status = "Name:\tsh\nUid:\t1000\t0\t0\t0\nThreads:\t3\n";
        assert_eq!(threads_of(status, 1000), Some(3));
        assert_eq!(threads_of(status, 0), None);
        // SAFETY: touches no memory.
        assert!(tasks_of(unsafe { libc::getuid() }) > 0);
    }

    #[test]
    fn addresses_are_needed_for_two_views_and_more() {
        assert_eq!(lacks(1 << 30, 1 << 30, u64::MAX), None);
        assert_eq!(lacks(1 << 30, 1 << 30, 4 << 30), None);
        let why = lacks(1 << 30, 1 << 30, 3 << 30).unwrap();
        assert!(why.contains("3072 MiB") && why.contains("3152 MiB"), "{why}");
        assert_eq!(lacks(u64::MAX, u64::MAX, u64::MAX), None);
    }
}
