//! userfaultfd in SIGBUS mode on a shared memfd mapping: missing, minor and write-protect faults all reach the
//! thread that caused them.

use crate::MemoryError;
use crate::geometry::PAGE_SIZE;
use gondwana_page::{to_usize, whole_pages};
use gondwana_racing::RacingBytes;
use linux_raw_sys::general as sys;
use linux_raw_sys::ioctl;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// `UFFDIO_CONTINUE_MODE_WP`: install the page write-protected.
const CONTINUE_MODE_WP: u64 = 1 << 1;
/// `UFFDIO_COPY_MODE_WP`: likewise.
const COPY_MODE_WP: u64 = 1 << 1;
const WRITEPROTECT_MODE_WP: u64 = 1 << 0;

const FEATURES: [(u32, &str); 5] = [
    (sys::UFFD_FEATURE_SIGBUS, "SIGBUS"),
    (sys::UFFD_FEATURE_MISSING_SHMEM, "MISSING_SHMEM"),
    (sys::UFFD_FEATURE_MINOR_SHMEM, "MINOR_SHMEM"),
    (sys::UFFD_FEATURE_WP_HUGETLBFS_SHMEM, "WP_HUGETLBFS_SHMEM"),
    (sys::UFFD_FEATURE_PAGEFAULT_FLAG_WP, "PAGEFAULT_FLAG_WP"),
];

/// The missing feature of userfaultfd on this computer.
#[derive(Debug)]
pub enum Missing {
    /// The system call itself is refused.
    Refused(io::Error),
    /// The kernel lacks these features.
    Features(Vec<&'static str>),
}

/// Checks whether the kernel's userfaultfd has all features that a node needs.
///
/// # Errors
/// The missing feature.
pub fn probe() -> Result<(), Missing> {
    let fd = create().map_err(Missing::Refused)?;
    let offered = handshake(&fd, 0).map_err(Missing::Refused)?;
    let mut missing: Vec<_> =
        FEATURES.iter().filter(|(bit, _)| offered & u64::from(*bit) == 0).map(|(_, name)| *name).collect();
    if !maps_write_protected(fd) {
        missing.push("CONTINUE_MODE_WP");
    }
    if missing.is_empty() { Ok(()) } else { Err(Missing::Features(missing)) }
}

/// Whether the kernel can map a page write-protected in one step; there is no feature bit for it. In two steps a
/// write in between would be lost.
fn maps_write_protected(fd: OwnedFd) -> bool {
    // No memory is registered with this descriptor: a kernel that knows the mode finds nothing to map.
    let known = Uffd(fd).continue_range(PAGE_SIZE as u64, PAGE_SIZE as u64, true).0;
    known.is_err_and(|error| error.raw_os_error() != Some(libc::EINVAL))
}

fn create() -> io::Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | sys::UFFD_USER_MODE_ONLY.cast_signed();
    // SAFETY: userfaultfd(flags) touches no memory.
    let fd = unsafe { gondwana_sys::syscall!(libc::SYS_userfaultfd, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn handshake(fd: &OwnedFd, features: u64) -> io::Result<u64> {
    let mut api = sys::uffdio_api { api: u64::from(sys::UFFD_API), features, ioctls: 0 };
    call(fd, ioctl::UFFDIO_API, &mut api)?;
    Ok(api.features)
}

fn call<T>(fd: &OwnedFd, request: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: every request in this file is given the argument structure that the kernel's header pairs with it.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::c_ulong::from(request), argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Touches of pages that are not there, or not mapped.
const TOUCHES: u32 = sys::UFFDIO_REGISTER_MODE_MISSING | sys::UFFDIO_REGISTER_MODE_MINOR;

/// The faults of one process.
pub(crate) struct Uffd(OwnedFd);

impl Uffd {
    pub(super) fn open() -> Result<Self, MemoryError> {
        let system = |source| MemoryError::System { what: "userfaultfd", source };
        let fd = create().map_err(system)?;
        let features = FEATURES.iter().fold(0, |all, (bit, _)| all | u64::from(*bit));
        handshake(&fd, features).map_err(system)?;
        Ok(Self(crate::files::out_of_the_way(fd)))
    }

    /// The userfaultfd of another process, which has passed its descriptor: requests act on that process.
    pub(crate) fn handed(fd: OwnedFd) -> Self {
        Self(crate::files::out_of_the_way(fd))
    }

    /// The descriptor, for another process.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(super) fn register(&self, base: usize, count: u32) -> Result<(), MemoryError> {
        self.register_for(base, count, TOUCHES | sys::UFFDIO_REGISTER_MODE_WP)
    }

    fn register_for(&self, base: usize, count: u32, mode: u32) -> Result<(), MemoryError> {
        let mut argument =
            sys::uffdio_register { range: range(base, count), mode: u64::from(mode), ioctls: 0 };
        call(&self.0, ioctl::UFFDIO_REGISTER, &mut argument)
            .map_err(|source| MemoryError::System { what: "registering memory with userfaultfd", source })
    }

    /// Makes a request for a run of pages. If the run is several mappings because the program has protected a part of
    /// it, the kernel refuses: the request is then made for its halves.
    fn in_one_mapping(
        &self,
        base: usize,
        count: u32,
        request: &mut dyn FnMut(usize, u32) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        match request(base, count) {
            Err(MemoryError::System { source, .. })
                if count > 1 && source.raw_os_error() == Some(libc::ENOENT) =>
            {
                let half = count / 2;
                self.in_one_mapping(base, half, request)?;
                self.in_one_mapping(base + to_usize(bytes(half)), count - half, request)
            }
            result => result,
        }
    }

    /// Takes the pages out of the program's reach; their contents stay in the memfd.
    pub(super) fn zap(&self, base: usize, count: u32) -> Result<(), MemoryError> {
        // By system call: in the preloaded library, the function of that name is the program's.
        // SAFETY: on a shared file mapping both ways drop page table entries, never contents.
        let drop_by =
            |how: u32| unsafe { gondwana_sys::syscall!(libc::SYS_madvise, base, bytes(count), how) };
        // The second one is for what the program has locked; kernels before 5.18 do not have it.
        if drop_by(sys::MADV_DONTNEED) == 0 || drop_by(sys::MADV_DONTNEED_LOCKED) == 0 {
            Ok(())
        } else {
            Err(MemoryError::last("dropping pages of the program's view"))
        }
    }

    /// Makes never-used pages appear, zero-filled and writable.
    pub(super) fn populate(&self, base: usize, count: u32) -> Result<(), MemoryError> {
        self.in_one_mapping(base, count, &mut |base, count| self.populate_here(base, count))
    }

    fn populate_here(&self, base: usize, count: u32) -> Result<(), MemoryError> {
        self.fill(base, count, "filling pages with zeros", |start, length| {
            let mut argument = sys::uffdio_zeropage {
                range: sys::uffdio_range { start, len: length },
                mode: u64::from(sys::UFFDIO_ZEROPAGE_MODE_DONTWAKE),
                zeropage: 0,
            };
            let result = call(&self.0, ioctl::UFFDIO_ZEROPAGE, &mut argument);
            (result, argument.zeropage)
        })
    }

    /// [`Uffd::populate`] of pages that are none of this userfaultfd's, before and afterwards.
    pub(super) fn populate_others(&self, base: usize, count: u32) -> Result<(), MemoryError> {
        // Without write protection, whose end would make the first write of each page one more fault.
        self.register_for(base, count, TOUCHES)?;
        let populated = self.populate(base, count);
        let mut argument = range(base, count);
        call(&self.0, ioctl::UFFDIO_UNREGISTER, &mut argument)
            .map_err(|source| MemoryError::System { what: "unregistering memory", source })?;
        populated
    }

    /// Puts the memfd's pages into the program's view.
    pub(super) fn map(&self, base: usize, count: u32, read_only: bool) -> Result<(), MemoryError> {
        self.in_one_mapping(base, count, &mut |base, count| {
            self.fill(base, count, "mapping pages", |start, length| {
                self.continue_range(start, length, read_only)
            })
        })
    }

    fn continue_range(&self, start: u64, len: u64, read_only: bool) -> (io::Result<()>, i64) {
        let mut argument = sys::uffdio_continue {
            range: sys::uffdio_range { start, len },
            // In SIGBUS mode no thread sleeps in the kernel, so none must be woken.
            mode: 1 | if read_only { CONTINUE_MODE_WP } else { 0 },
            mapped: 0,
        };
        let result = call(&self.0, ioctl::UFFDIO_CONTINUE, &mut argument);
        (result, argument.mapped)
    }

    /// Maps unused pages with the contents of `source`, whole pages; returns how many. The kernel stops at a page
    /// that exists already.
    pub(super) fn copy(&self, base: usize, source: RacingBytes<'_>, read_only: bool) -> u32 {
        let length = source.len() as u64;
        let mut done = 0;
        loop {
            let mut argument = sys::uffdio_copy {
                dst: base as u64 + done,
                src: source.as_ptr() as u64 + done,
                len: length - done,
                mode: u64::from(sys::UFFDIO_COPY_MODE_DONTWAKE) | if read_only { COPY_MODE_WP } else { 0 },
                copy: 0,
            };
            let result = call(&self.0, ioctl::UFFDIO_COPY, &mut argument);
            done += u64::try_from(argument.copy).unwrap_or(0);
            let again = argument.copy > 0
                || result.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EAGAIN));
            if result.is_ok() || !again {
                return whole_pages(to_usize(done));
            }
        }
    }

    /// Repeats a request until the whole range is mapped: the kernel stops at pages that are mapped already, or not
    /// yet in the memfd.
    fn fill(
        &self,
        base: usize,
        count: u32,
        what: &'static str,
        mut request: impl FnMut(u64, u64) -> (io::Result<()>, i64),
    ) -> Result<(), MemoryError> {
        let mut start = base as u64;
        let end = start + bytes(count);
        while start < end {
            let (result, done) = request(start, end - start);
            let Err(error) = result else { return Ok(()) };
            if let Ok(done @ 1..) = u64::try_from(done) {
                start += done;
                continue;
            }
            match error.raw_os_error() {
                // The contents are there already and only the mapping is missing, or nothing is.
                Some(libc::EEXIST) => {
                    let (result, _) = self.continue_range(start, PAGE_SIZE as u64, false);
                    if result.as_ref().is_err_and(|error| error.raw_os_error() != Some(libc::EEXIST)) {
                        return result.map_err(|source| MemoryError::System { what, source });
                    }
                    start += PAGE_SIZE as u64;
                }
                // A hole in the memfd: allocate its page, then try again.
                Some(libc::EFAULT) => {
                    self.populate(to_usize(start), 1)?;
                    self.zap(to_usize(start), 1)?;
                }
                Some(libc::EAGAIN) => {}
                _ => return Err(MemoryError::System { what, source: error }),
            }
        }
        Ok(())
    }

    pub(crate) fn write_protect(&self, base: usize, count: u32, protect: bool) -> Result<(), MemoryError> {
        self.in_one_mapping(base, count, &mut |base, count| self.write_protect_here(base, count, protect))
    }

    fn write_protect_here(&self, base: usize, count: u32, protect: bool) -> Result<(), MemoryError> {
        loop {
            let mut argument = sys::uffdio_writeprotect {
                range: range(base, count),
                mode: if protect { WRITEPROTECT_MODE_WP } else { 2 },
            };
            match call(&self.0, ioctl::UFFDIO_WRITEPROTECT, &mut argument) {
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                result => {
                    return result
                        .map_err(|source| MemoryError::System { what: "write-protecting pages", source });
                }
            }
        }
    }
}

fn bytes(count: u32) -> u64 {
    u64::from(count) * PAGE_SIZE as u64
}

fn range(base: usize, count: u32) -> sys::uffdio_range {
    sys::uffdio_range { start: base as u64, len: bytes(count) }
}
