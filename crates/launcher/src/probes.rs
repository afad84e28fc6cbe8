//! Probes of the kernel's capabilities. A run makes the same probes before it starts.

use gondwana_console::rlimit::limit;
use gondwana_memory::{LOW, Missing, PAGE_SIZE, RUNTIME_BASE, SPAN_BASE, probe_userfaultfd};
use gondwana_topology::MAX_PROCESSORS;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Probes userfaultfd; the error says why it does not work.
pub fn userfaultfd() -> Result<(), String> {
    probe_userfaultfd().map_err(|missing| match missing {
        Missing::Refused(error) => format!("userfaultfd is refused: {error}"),
        Missing::Features(names) => format!("userfaultfd lacks {}", names.join(", ")),
    })
}

/// Probes whether a span of this many bytes fits: a sparse file and its two views at their fixed addresses. The error
/// says why it does not.
pub fn span(bytes: u64) -> Result<(), String> {
    let explain = |what: &str, error: io::Error| format!("{what} of {} GiB fails: {error}", bytes >> 30);
    // A file beyond its size limit raises a signal instead of an error.
    let limit = limit(libc::RLIMIT_FSIZE);
    if limit < bytes + LOW.len() as u64 {
        return Err(format!("the file size limit (ulimit -f) is {} MiB", limit >> 20));
    }
    let file = memfd(bytes).map_err(|error| explain("a memory file", error))?;
    let app = Reservation::new(&file, SPAN_BASE, bytes).map_err(|error| explain("a view", error))?;
    let runtime =
        Reservation::new(&file, RUNTIME_BASE, bytes).map_err(|error| explain("a second view", error))?;
    drop((app, runtime));
    Ok(())
}

/// True unless parts of this computer's memory are nearer to some processors than to others. Where the kernel says nothing, it has no NUMA.
pub fn has_one_memory() -> bool {
    let list = fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_default();
    !list.trim().contains([',', '-'])
}

/// Probes memfd_create.
pub fn memory_files() -> io::Result<()> {
    memfd(0).map(drop)
}

fn memfd(bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"gondwana-probe".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    let file = unsafe { fs::File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    Ok(file.into())
}

/// A view of a file at a fixed address.
struct Reservation {
    base: *mut libc::c_void,
    bytes: usize,
}

impl Reservation {
    fn new(file: &OwnedFd, address: usize, bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: MAP_FIXED_NOREPLACE never touches an existing mapping.
        let base = unsafe {
            libc::mmap(
                address as *mut libc::c_void,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { base, bytes }) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody has a pointer into it.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

/// Probes whether programs can be started without address space randomisation.
pub fn fixed_addresses() -> Result<(), io::Error> {
    // SAFETY: personality touches no memory; the second call puts back what was there.
    unsafe {
        let before = libc::personality(0xffff_ffff);
        if before >= 0 && libc::personality((before | libc::ADDR_NO_RANDOMIZE).cast_unsigned().into()) >= 0 {
            libc::personality(before.cast_unsigned().into());
            return Ok(());
        }
    }
    let error = io::Error::last_os_error();
    let off = fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|text| text.trim() == "0");
    if off { Ok(()) } else { Err(error) }
}

/// Probes `PAGEMAP_SCAN` (Linux 6.7), which reports used pages.
pub fn pagemap_scan() -> Result<(), io::Error> {
    let on_the_stack = 0_u8;
    let here = (&raw const on_the_stack as usize) & !(PAGE_SIZE - 1);
    gondwana_host::present_pages(here..here + PAGE_SIZE, |_| {})
}

/// A number from a file of the kernel.
pub fn number_in(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The mode of the system call filter on this process: 0 none, 1 strict, 2 a filter, as in containers.
pub fn seccomp_mode() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?.trim().parse().ok()
}

/// How many processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// How many of some processors are for each of some nodes, which have at least one.
pub(crate) fn share(processors: usize, nodes: usize) -> u16 {
    let share = (processors / nodes).clamp(1, MAX_PROCESSORS);
    u16::try_from(share).expect("processors have numbers of 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_span_fits_and_is_given_back() {
        // Twice, because the views have fixed addresses.
        assert_eq!(span(64 << 20), Ok(()));
        assert_eq!(span(64 << 20), Ok(()));
    }

    #[test]
    fn a_span_beyond_the_address_space_does_not_fit() {
        let why = span(1 << 47).unwrap_err();
        assert!(why.contains("131072 GiB"), "{why}");
    }

    #[test]
    fn the_personality_stays_as_it_was() {
        let now = || fs::read_to_string("/proc/self/personality").unwrap();
        let before = now();
        fixed_addresses().unwrap();
        assert_eq!(now(), before);
    }
}
