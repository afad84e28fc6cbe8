//! Addresses for the memory of a rule.

use gondwana_host::AnonymousMemory;
use gondwana_page::PAGE_SIZE;
use std::ffi::CString;
use std::io;
use std::ops::Range;

/// The unit of slabs, and enough for large pages.
const ALIGNMENT: usize = 2 << 20;
/// With fewer addresses than this, rules are useless.
const LEAST: usize = 64 << 20;
/// The longest name that the kernel takes.
const LONGEST_NAME: usize = 240;

/// Reserves so many bytes of addresses, or as many as the process may have, permanently. They are inaccessible until
/// they are renewed as [`AnonymousMemory`].
///
/// A named page is in front of them, by which `gondwana where` recognises the rule.
pub(crate) fn reserve(bytes: usize, rule: &str) -> io::Result<Range<usize>> {
    let mut wanted = bytes;
    let addresses = loop {
        match AnonymousMemory::reserved(wanted + 2 * ALIGNMENT) {
            Ok(addresses) => break addresses,
            Err(_) if wanted / 2 >= LEAST => wanted /= 2,
            Err(error) => return Err(error),
        }
    };
    let start = (addresses.start + ALIGNMENT).next_multiple_of(ALIGNMENT);
    name(start, wanted, rule);
    Ok(start..start + wanted)
}

/// Names the addresses from `start` on. Without a name they are as good.
fn name(start: usize, bytes: usize, rule: &str) {
    let mut name = format!("{}{bytes:x} {rule}", gondwana_host::process::RULE_MARK).into_bytes();
    name.truncate(LONGEST_NAME);
    let Ok(name) = CString::new(name) else { return };
    // SAFETY: the page in front of the addresses is reserved with them; the descriptor is ours.
    unsafe {
        let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if file >= 0 {
            let flags = libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE;
            let page = PAGE_SIZE;
            libc::mmap((start - page) as *mut libc::c_void, page, libc::PROT_NONE, flags, file, 0);
            libc::close(file);
        }
    }
}
