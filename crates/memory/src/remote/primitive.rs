//! How a thread waits. The loom test replaces this module by checked versions.

use std::time::{Duration, Instant};

/// The processor's hint for a spin loop.
pub(super) fn relax() {
    std::hint::spin_loop();
}

/// Sleeps for about `time`, or yields the processor if it is zero. Returns how long it was, at most twice `time`:
/// more means that the whole process was stopped.
pub(super) fn rest(time: Duration) -> Duration {
    if time.is_zero() {
        std::thread::yield_now();
        return time;
    }
    let length = libc::timespec { tv_sec: 0, tv_nsec: libc::c_long::from(time.subsec_nanos()) };
    let began = Instant::now();
    // By system call: in the preloaded library, the functions that sleep are the program's. A signal may end it early.
    // SAFETY: the kernel reads one timespec and writes nothing.
    unsafe {
        gondwana_sys::syscall!(libc::SYS_nanosleep, &raw const length, std::ptr::null_mut::<libc::timespec>())
    };
    began.elapsed().min(2 * time)
}
