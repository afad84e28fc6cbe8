//! Shared mappings of files, at [addresses of their own](gondwana_node::MappedFiles): all nodes of one computer map the file, those of
//! other computers reach it on the node that has.
//!
//! A change is made on the node whose part the addresses are in at last: it may give them out anew as soon as nothing is there.

use super::failed;
use crate::io::descriptors::{There, fetch, status};
use crate::numbers::int;
use crate::private_stack::uninterrupted;
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{FileMapping, MappedFiles, Node, ProcessChange};
use gondwana_page::to_usize;
use libc::{c_int, c_void, off_t, size_t};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flags of a mapping at a given address.
const FIXED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;

/// The bits of the flags that say whether a mapping is shared.
const TYPE: c_int = libc::MAP_TYPE;

/// A file as mappings see it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has contents that all of its mappings share.
    Regular,
    /// Each mapping is new memory (`/dev/zero`).
    Zeros,
    /// A device, or nothing.
    Other,
}

/// What is open at a number of this process.
pub(super) fn kind(fd: c_int) -> Kind {
    match status(fd) {
        Some(found) if found.st_mode & libc::S_IFMT == libc::S_IFREG => Kind::Regular,
        Some(found)
            if found.st_mode & libc::S_IFMT == libc::S_IFCHR && found.st_rdev == libc::makedev(1, 5) =>
        {
            Kind::Zeros
        }
        _ => Kind::Other,
    }
}

/// True if flags of `mmap` ask for a shared mapping.
pub(super) fn is_shared(flags: c_int) -> bool {
    [libc::MAP_SHARED, libc::MAP_SHARED_VALIDATE].contains(&(flags & TYPE))
}

/// True if nobody can write to the file by this descriptor.
fn is_read_only(fd: c_int) -> bool {
    // SAFETY: touches no memory.
    reads_only(int(unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, fd, libc::F_GETFL, 0) }))
}

fn reads_only(flags: c_int) -> bool {
    flags & libc::O_ACCMODE == libc::O_RDONLY
}

/// True if a shared mapping of another node's descriptor is to be a copy of the file.
pub(super) fn is_read_only_there(there: There, fd: c_int, protection: c_int) -> bool {
    protection & libc::PROT_READ != 0
        && reads_only(there.call("fcntl", &[fd.into(), libc::F_GETFL.into(), 0], &[]))
}

/// True if a shared mapping of a regular file is to be in the memory of mapped files, and not a copy, or this node's alone. A copy is as
/// good where nobody can change the file, and other nodes read it without messages.
pub(super) fn is_ours(node: &Node, protection: c_int, fd: c_int) -> bool {
    let is_copy = || is_read_only(fd) && protection & libc::PROT_READ != 0 && !is_open_for_writing(fd);
    node.mapped_files().are_together() || protection & libc::PROT_EXEC == 0 && !is_copy()
}

/// True if the kernel says that somebody, of this program or another one, has the file open to write it. Of files of other computers, and of
/// those of other users, it does not know.
fn is_open_for_writing(fd: c_int) -> bool {
    /// The command of `fcntl` that sets the signal for a lease.
    const SET_SIGNAL: c_int = 10;
    uninterrupted(|| {
        let before = crate::errno::get();
        let path = format!("/proc/self/fd/{fd}\0");
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: all memory is private and as long as the kernel takes it for. A lease to read ends with its descriptor; a signal
        // for it, if somebody opens the file just now, is one that does nothing unless it is handled.
        let is_open = unsafe {
            let own = int(gondwana_sys::syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0));
            let mut system: libc::statfs = std::mem::zeroed();
            gondwana_sys::syscall!(libc::SYS_fstatfs, own, &raw mut system);
            gondwana_sys::syscall!(libc::SYS_fcntl, own, SET_SIGNAL, libc::SIGURG);
            let taken = gondwana_sys::syscall!(libc::SYS_fcntl, own, libc::F_SETLEASE, libc::F_RDLCK);
            let refused = own >= 0 && taken < 0 && crate::errno::get() == libc::EAGAIN;
            gondwana_sys::syscall!(libc::SYS_close, own);
            refused && system.f_type != libc::NFS_SUPER_MAGIC
        };
        crate::errno::set(before);
        is_open
    })
}

/// True if a shared mapping of a regular file is to execute what the program writes by another one, and computers have no file in
/// common. Generators of code that is refused such a mapping, as by systems that forbid it, use memory that they can write to and execute.
pub(super) fn is_of_generated_code(node: &Node, protection: c_int, fd: c_int) -> bool {
    !node.mapped_files().are_together() && protection & libc::PROT_EXEC != 0 && !is_read_only(fd)
}

/// Maps a regular file, shared.
#[allow(clippy::too_many_arguments, reason = "those of mmap")]
pub(super) fn map(
    node: &'static Node,
    wanted: usize,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    let files = node.mapped_files();
    let Some(bytes) = length.checked_next_multiple_of(PAGE_SIZE) else { return failed(libc::ENOMEM) };
    let at_wanted = flags & FIXED != 0;
    if at_wanted && node.out_of_reach(wanted).is_some() {
        node.refuse("mmap() of a file in place of a part of one that another node has mapped");
        return failed(libc::ENODEV);
    }
    let address = if at_wanted { Some(wanted) } else { uninterrupted(|| files.take(bytes)) };
    let Some(address) = address else { return failed(libc::ENOMEM) };
    let how = if at_wanted { flags } else { flags & !FIXED | libc::MAP_FIXED_NOREPLACE };
    let error = map_here(files, address..address + bytes, protection, how, fd, offset);
    if error != 0 {
        if !at_wanted {
            uninterrupted(|| files.remove(&(address..address + bytes)));
        }
        return failed(error);
    }
    let mapping = FileMapping::Map {
        process: gondwana_sys::process(),
        descriptor: fd,
        address: address as u64,
        length: bytes as u64,
        protection,
        flags: how,
        offset: offset.cast_unsigned(),
    };
    map_elsewhere(
        node,
        address..address + bytes,
        mapping,
        "a shared mapping of a file: another node cannot map it",
    )
}

/// There is memory that children would share natively, and have a copy of here.
static IS_COPIED: AtomicBool = AtomicBool::new(false);

/// Before the fork of a child that goes on: says so once.
pub(crate) fn tell_of_copies(node: &Node) {
    if IS_COPIED.swap(false, Ordering::Relaxed) {
        node.refuse(
            "fork(): over tcp, a child has a copy of memory that was mapped shared without a file, and neither process sees what the other \
             writes there; map a file, or run over shm",
        );
    }
}

/// Maps new memory that processes share with their children: a file without a name. `None` if the nodes cannot map the same files; then it is
/// shared memory of the run's, of which a child has a copy.
pub(super) fn map_nameless(
    node: &'static Node,
    length: size_t,
    protection: c_int,
    flags: c_int,
) -> Option<*mut c_void> {
    if !node.mapped_files().are_together() {
        IS_COPIED.store(true, Ordering::Relaxed);
        return None;
    }
    // SAFETY: touches no memory but the name.
    let file =
        unsafe { gondwana_sys::syscall!(libc::SYS_memfd_create, c"shared".as_ptr(), libc::MFD_CLOEXEC) };
    let file = int(file);
    if file < 0 {
        return None;
    }
    // SAFETY: the descriptor was made above, and touches no memory.
    let has_length = unsafe { gondwana_sys::syscall!(libc::SYS_ftruncate, file, length) } == 0;
    let mapped = has_length.then(|| map(node, 0, length, protection, flags & !libc::MAP_ANONYMOUS, file, 0));
    // SAFETY: as above.
    unsafe { gondwana_sys::syscall!(libc::SYS_close, file) };
    mapped.filter(|&mapped| mapped != libc::MAP_FAILED)
}

/// Maps so many bytes of a file for reading and writing, on all nodes that can. The address; `None` after a failure.
pub(crate) fn map_everywhere(node: &'static Node, file: c_int, bytes: size_t) -> Option<usize> {
    let address = map(node, 0, bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0);
    (address != libc::MAP_FAILED).then_some(address as usize)
}

/// Has the other nodes map what this one has mapped, if all nodes map the same files. The address, or a failure, `refused` in a sentence.
pub(super) fn map_elsewhere(
    node: &'static Node,
    addresses: Range<usize>,
    mapping: FileMapping,
    refused: &str,
) -> *mut c_void {
    if node.mapped_files().are_together()
        && let Err(error) = node.change_elsewhere(ProcessChange::File(mapping))
    {
        unmap(node, addresses.start, addresses.len());
        let why = std::io::Error::from_raw_os_error(error);
        node.refuse(&format!("{refused} ({why}), so no node does"));
        return failed(error);
    }
    addresses.start as *mut c_void
}

/// Maps a file in this process; 0 or an error number.
fn map_here(
    files: &MappedFiles,
    addresses: Range<usize>,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> c_int {
    let (start, bytes) = (addresses.start, addresses.len());
    // SAFETY: addresses for mapped files are used by nothing else; what the program has there it wants replaced.
    let mapped = unsafe {
        gondwana_sys::syscall!(libc::SYS_mmap, start, bytes, protection, flags, fd, offset.cast_unsigned())
    };
    if mapped < 0 {
        return crate::errno::get();
    }
    uninterrupted(|| files.set(addresses, protection));
    0
}

/// Makes a change in this process, for a thread of this node or another one; 0 or an error number.
pub(crate) fn change_file_here(mapping: &FileMapping) -> c_int {
    let Some(node) = Node::current() else { return 0 };
    let files = node.mapped_files();
    match *mapping {
        FileMapping::Map { process, descriptor, address, length, protection, flags, offset } => {
            let file = fetch(process, descriptor);
            if file < 0 {
                return crate::errno::get();
            }
            let start = to_usize(address);
            let addresses = start..start + to_usize(length);
            let error = map_here(files, addresses, protection, flags, file, offset.cast_signed());
            // SAFETY: the copy is nobody else's.
            unsafe { gondwana_sys::syscall!(libc::SYS_close, file) };
            error
        }
        FileMapping::Attach { segment, address, length, flags } => {
            let start = to_usize(address);
            super::segments::attach_here(files, segment, start..start + to_usize(length), flags)
        }
        FileMapping::Detach { address } => super::segments::detach_here(files, to_usize(address)),
        FileMapping::Unmap { address, length } => {
            let (start, bytes) = (to_usize(address), to_usize(length));
            // SAFETY: the program gives the memory up.
            let done = unsafe { gondwana_sys::syscall!(libc::SYS_munmap, start, bytes) };
            error_of(done, || uninterrupted(|| files.remove(&(start..start + bytes))))
        }
        FileMapping::Protect { address, length, protection } => {
            let (start, bytes) = (to_usize(address), to_usize(length));
            // SAFETY: as the program wants it.
            let done = unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, start, bytes, protection) };
            error_of(done, || uninterrupted(|| files.set(start..start + bytes, protection)))
        }
        FileMapping::Move { old, old_length, new, new_length } => {
            let (old, old_bytes) = (to_usize(old), to_usize(old_length));
            let (new, new_bytes) = (to_usize(new), to_usize(new_length));
            let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            let protection =
                PROTECTIONS.into_iter().rfind(|&protection| files.allow(&(old..old + old_bytes), protection));
            // SAFETY: the new addresses are free; the program wants the mapping there.
            let done =
                unsafe { gondwana_sys::syscall!(libc::SYS_mremap, old, old_bytes, new_bytes, how, new) };
            error_of(if done < 0 { -1 } else { 0 }, || {
                uninterrupted(|| {
                    files.remove(&(old..old + old_bytes));
                    files.set(new..new + new_bytes, protection.unwrap_or(libc::PROT_NONE));
                });
            })
        }
        FileMapping::Sync { address, length, flags } => {
            // SAFETY: changes nothing about the memory.
            let done = unsafe {
                gondwana_sys::syscall!(libc::SYS_msync, to_usize(address), to_usize(length), flags)
            };
            error_of(done, || {})
        }
    }
}

/// Protections that a mapping may have, by what they allow.
const PROTECTIONS: [c_int; 3] = [libc::PROT_NONE, libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE];

/// 0 after something has been done in consequence, or the error number of a system call.
pub(super) fn error_of(result: i64, then: impl FnOnce()) -> c_int {
    if result < 0 {
        return crate::errno::get();
    }
    then();
    0
}

/// Makes a change of mappings wherever they are; 0 or the first error number.
pub(super) fn change(node: &'static Node, address: usize, mapping: FileMapping) -> c_int {
    let files = node.mapped_files();
    let (me, owner) = (node.number().index(), files.node_of(address).unwrap_or(0));
    let others = (0..node.nodes()).filter(|&other| files.are_together() && other != owner);
    let make = |at: usize| {
        if at == me {
            change_file_here(&mapping)
        } else {
            node.change_on_node(at, ProcessChange::File(mapping)).err().unwrap_or(0)
        }
    };
    others.chain([owner]).map(make).fold(0, |first, error| if first == 0 { error } else { first })
}

/// `munmap` of mapped files; 0 or an error number.
pub(super) fn unmap(node: &'static Node, address: usize, length: size_t) -> c_int {
    match whole(node, address, length) {
        Some(length) => change(node, address, FileMapping::Unmap { address: address as u64, length }),
        None => libc::EINVAL,
    }
}

/// `mprotect` of mapped files; 0 or an error number.
pub(super) fn protect(node: &'static Node, address: usize, length: size_t, protection: c_int) -> c_int {
    match whole(node, address, length) {
        Some(length) => {
            change(node, address, FileMapping::Protect { address: address as u64, length, protection })
        }
        None => libc::EINVAL,
    }
}

/// Bytes of the pages of a range, which is one node's; `None` if it is not, or does not begin at a page.
fn whole(node: &Node, address: usize, length: size_t) -> Option<u64> {
    let bytes = length.checked_next_multiple_of(PAGE_SIZE).filter(|&bytes| bytes > 0)?;
    let last = address.checked_add(bytes - 1)?;
    let files = node.mapped_files();
    let is_whole = address.is_multiple_of(PAGE_SIZE) && files.node_of(address) == files.node_of(last);
    is_whole.then_some(bytes as u64)
}

/// `mremap` of mapped files.
///
/// # Errors
/// The error number.
pub(super) fn resize(
    node: &'static Node,
    old: usize,
    old_length: size_t,
    new_length: size_t,
    flags: c_int,
) -> Result<*mut c_void, c_int> {
    if flags & !libc::MREMAP_MAYMOVE != 0 {
        node.refuse("mremap() of a mapped file to an address of the program's choice");
        return Err(libc::EINVAL);
    }
    let old_length = whole(node, old, old_length).ok_or(libc::EINVAL)?;
    let new_bytes =
        new_length.checked_next_multiple_of(PAGE_SIZE).filter(|&bytes| bytes > 0).ok_or(libc::EINVAL)?;
    let old_bytes = to_usize(old_length);
    let ok = |error| if error == 0 { Ok(()) } else { Err(error) };
    if new_bytes <= old_bytes {
        if new_bytes < old_bytes {
            ok(unmap(node, old + new_bytes, old_bytes - new_bytes))?;
        }
        return Ok(old as *mut c_void);
    }
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return Err(libc::ENOMEM);
    }
    if node.out_of_reach(old).is_some() {
        node.refuse("mremap() of a file that another node has mapped");
        return Err(libc::ENOMEM);
    }
    let new = uninterrupted(|| node.mapped_files().take(new_bytes)).ok_or(libc::ENOMEM)?;
    let (old_at, new_at) = (old as u64, new as u64);
    let moved = FileMapping::Move { old: old_at, old_length, new: new_at, new_length: new_bytes as u64 };
    ok(change(node, old, moved)).inspect_err(|_| {
        uninterrupted(|| node.mapped_files().remove(&(new..new + new_bytes)));
    })?;
    Ok(new as *mut c_void)
}

/// # Safety
/// As the C library's `msync`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn msync(address: *mut c_void, length: size_t, flags: c_int) -> c_int {
    if let Some(node) = Node::current()
        && node.mapped_files().out_of_reach(address as usize).is_some()
    {
        let mapping = FileMapping::Sync { address: address as u64, length: length as u64, flags };
        return super::protection::result(change(node, address as usize, mapping));
    }
    crate::pthread::cancel::at_point_if(true, || {
        // SAFETY: forwards the caller's arguments.
        unsafe { crate::real!(msync: fn(*mut c_void, size_t, c_int) -> c_int)(address, length, flags) }
    })
}
