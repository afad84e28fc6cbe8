//! How a thread waits. The model test puts checked counterparts in the place of this module.

use std::time::{Duration, Instant};

/// Tells the processor that the calling thread looks at the same word again and again.
pub(super) fn relax() {
    std::hint::spin_loop();
}

/// Leaves the processor to others for about so long, or, if that is no time, only if they want it. Gives how long it was:
/// twice as long as was asked for at most, since more means that this whole process has stood still.
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
