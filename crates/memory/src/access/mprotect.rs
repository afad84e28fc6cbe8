//! The fallback: one mprotect for each run of pages. Each change of protection inside a mapping splits it, so
//! alternating protections can exceed the kernel's `max_map_count`.

use super::Access;
use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use crate::mapping::protection;

pub(super) fn set(base: usize, count: u32, access: Access, executable: bool) -> Result<(), MemoryError> {
    let protection = protection(access, executable);
    // By system call: in the preloaded library, the function of that name is the program's.
    // SAFETY: the range is part of the program's view of the span, which this crate mapped; forbidding access
    // raises faults that the node resolves.
    let result =
        unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, base, count as usize * PAGE_SIZE, protection) };
    if result == 0 {
        return Ok(());
    }
    Err(MemoryError::last("mprotect (the limit is /proc/sys/vm/max_map_count)"))
}
