//! How the kernel schedules the threads of a node.

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
/// other nodes waiting for a good part of its own slice. Older kernels ignore the request.
pub(crate) fn prefer_latency() {
    let size = u32::try_from(size_of::<Attributes>()).expect("a small structure");
    let mut attributes = Attributes { size, ..Attributes::default() };
    // SAFETY: the kernel writes at most `size` bytes to a structure of that size, and reads as many; 0 is the calling
    // thread. A refusal leaves everything as it was.
    unsafe {
        if gondwana_sys::syscall!(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0
            && attributes.policy == libc::SCHED_OTHER as u32
        {
            attributes.runtime = SHORTEST_SLICE;
            gondwana_sys::syscall!(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}

/// Words of the kernel's sets of processors that are looked at: enough for 8,192 of them.
const WORDS: usize = 128;

/// Moves the calling thread to the processor with this place among those that it may use, from the first again after the last.
/// It stays free to run on all of them.
///
/// The kernel puts a new thread where there happens to be room, which is where the service thread that makes it is about to
/// sleep, or not. Where that is the processor on which a thread of another node polls for what this one will do, they share it
/// for a millisecond or several, beside one that is idle.
pub(crate) fn begin_at(place: usize) {
    let mut allowed = [0_u64; WORDS];
    // SAFETY: the kernel writes no more bytes than the set has; 0 is the calling thread.
    let filled = unsafe {
        gondwana_sys::syscall!(libc::SYS_sched_getaffinity, 0, size_of_val(&allowed), allowed.as_mut_ptr())
    };
    if filled <= 0 {
        return;
    }
    let numbers = || (0..WORDS * 64).filter(|number| allowed[number / 64] >> (number % 64) & 1 == 1);
    let Some(number) = numbers().nth(place % numbers().count().max(1)) else { return };
    let mut only = [0_u64; WORDS];
    only[number / 64] = 1 << (number % 64);
    for set in [&only, &allowed] {
        // SAFETY: the kernel reads as many bytes as the set has. A refusal leaves the thread where it is.
        unsafe { gondwana_sys::syscall!(libc::SYS_sched_setaffinity, 0, size_of_val(set), set.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    #[test]
    fn a_thread_begins_where_it_is_told_to_and_may_go_anywhere() {
        std::thread::spawn(|| {
            let before = allowed();
            let places: std::collections::BTreeSet<i32> = (0..before)
                .map(|place| {
                    begin_at(place);
                    // SAFETY: the call only tells a number.
                    unsafe { libc::sched_getcpu() }
                })
                .collect();
            assert!(!places.is_empty() && places.iter().all(|&place| place >= 0));
            assert_eq!(allowed(), before);
            begin_at(before + 3);
            assert_eq!(allowed(), before);
        })
        .join()
        .unwrap();
    }
}
