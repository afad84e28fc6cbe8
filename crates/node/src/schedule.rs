//! How the kernel schedules the service thread.

/// The shortest time slice that the kernel grants, in nanoseconds.
const SHORTEST_SLICE: u64 = 100_000;

/// The kernel's `struct sched_attr`, as far as its first version goes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short time slices, which an ordinary thread may: from Linux 6.12 on, a thread that wakes takes the processor
/// at once from one with a longer slice. A thread of the program that computes would otherwise keep the messages of
/// other nodes waiting for a good part of its own slice. Older kernels ignore the wish.
pub fn prefer_latency() {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes { size, ..Attributes::default() };
    // SAFETY: the kernel writes at most `size` bytes to a structure of that size, and reads as many; 0 is the calling
    // thread. A refusal leaves everything as it was.
    unsafe {
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0
            && attributes.policy == libc::SCHED_OTHER as u32
        {
            attributes.runtime = SHORTEST_SLICE;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}
