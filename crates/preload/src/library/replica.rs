//! Libraries on nodes other than node 0, at the same addresses. The loader of each node loads them, so that it knows their symbols, their
//! unwind tables and their thread-local variables; but it has nothing to relocate and nothing to run.

use super::gaps::Filler;
use super::image::Image;
use super::opened::{self, Opened};
use super::{load, loading};
use crate::ranges::in_pages;
use crate::system_calls;
use gondwana_atomics::SystemCall;
use gondwana_elf::FileVersion;
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_node::{Caller, Node};
use gondwana_topology::{Id, NodeId};
use libc::c_int;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes are written to a file at once.
const PART: usize = 1 << 16;

/// A library for other nodes, in shared memory. Its path follows, its system calls, each with its two numbers, and what changes in its file, each
/// change with its place and its length before it.
#[repr(C)]
struct Replica {
    /// The library that is loaded after it; 0 if there is none.
    next: usize,
    /// Its pages.
    start: usize,
    bytes: usize,
    handle: usize,
    flags: c_int,
    /// The distance of its thread-local variables from each thread's control block, if it has some.
    locals: Option<u64>,
    /// The file that is changed; `None`: zeros.
    version: Option<FileVersion>,
    /// How long the file becomes.
    file: usize,
    path: usize,
    calls: usize,
    changes: usize,
}

/// Bytes of a system call: its address, and how many bytes before it can be moved.
const CALL: usize = 2 * size_of::<u64>();

/// What a node says to libraries.
const FAILED: usize = 0;
const LOADED: usize = 1;
/// A file of one is not on its computer.
const LACKS_FILE: usize = 2;

/// Has all other nodes load libraries in this order; `None` if one cannot.
pub(super) fn give(
    node: &'static Node,
    libraries: &[(&LoadedObject<'static>, Opened)],
    flags: c_int,
) -> Option<()> {
    let images: Option<Vec<Image>> =
        libraries.iter().map(|(object, library)| Image::of(object, &library.path)).collect();
    let libraries: Vec<_> = libraries.iter().zip(images?).collect();
    let mut left: Vec<NodeId> = (1..node.nodes()).map(NodeId::from_index).collect();
    for whole in [false, true] {
        let (mut blocks, mut next) = (vec![], 0);
        for ((object, library), image) in libraries.iter().rev() {
            let Some(address) = write(node, object, library, image, (flags, whole, next)) else { break };
            blocks.push(address);
            next = address;
        }
        let answers = if blocks.len() == libraries.len() {
            // SAFETY: all nodes have this library at the same address; `take` is given what it expects.
            unsafe { node.call_on_each(&left, take, next) }
        } else {
            vec![Err(libc::ENOMEM)]
        };
        blocks.into_iter().for_each(|address| node.free(address));
        if answers.iter().any(|answer| !matches!(answer, Ok(LOADED | LACKS_FILE))) {
            return None;
        }
        let mut answers = answers.into_iter();
        left.retain(|_| answers.next() == Some(Ok(LACKS_FILE)));
        if left.is_empty() {
            return Some(());
        }
    }
    None
}

/// Writes a library for other nodes to a new block of shared memory: `whole`, or as changes of its file.
fn write(
    node: &'static Node,
    object: &LoadedObject<'_>,
    library: &Opened,
    image: &Image,
    (flags, whole, next): (c_int, bool, usize),
) -> Option<usize> {
    let path = library.path.as_os_str().as_bytes();
    let calls = library.calls.iter().flat_map(|call| [call.address, call.before]);
    let calls: Vec<u8> = calls.flat_map(u64::to_ne_bytes).collect();
    let changes = if whole { std::iter::once(0..image.bytes().len()).collect() } else { image.changes() };
    let mut rest = [path, &calls].concat();
    let head = rest.len();
    for change in changes {
        rest.extend([change.start, change.len()].map(usize::to_ne_bytes).as_flattened());
        rest.extend(&image.bytes()[change]);
    }
    let pages = pages_of(object);
    let replica = Replica {
        next,
        start: pages.start,
        bytes: pages.len(),
        handle: library.handle,
        flags,
        locals: library.locals.map(|(_, distance)| distance),
        version: (!whole).then_some(image.version),
        file: image.bytes().len(),
        path: path.len(),
        calls: calls.len(),
        changes: rest.len() - head,
    };
    let address = node.allocate(size_of::<Replica>() + rest.len(), 16, Caller::NONE)?;
    // SAFETY: the block is long enough for all that is written to it.
    unsafe {
        (address as *mut Replica).write(replica);
        std::ptr::copy_nonoverlapping(rest.as_ptr(), (address as *mut Replica).add(1).cast(), rest.len());
    }
    Some(address)
}

/// The pages from its first to its last.
pub(super) fn pages_of(object: &LoadedObject<'_>) -> Range<usize> {
    in_pages(&object.addresses())
}

/// Runs on the other nodes, with the first of libraries that are to be loaded.
unsafe extern "C" fn take(first: usize) -> usize {
    let Some(node) = Node::current() else { return FAILED };
    let mut next = first;
    while next != 0 {
        // SAFETY: `give` passes libraries with their paths and changes.
        let (replica, rest) = unsafe {
            let replica = &*(next as *const Replica);
            let rest = (replica as *const Replica).add(1).cast::<u8>();
            (replica, std::slice::from_raw_parts(rest, replica.path + replica.calls + replica.changes))
        };
        let (path, rest) = rest.split_at(replica.path);
        let (calls, changes) = rest.split_at(replica.calls);
        let path = Path::new(OsStr::from_bytes(path));
        // One of them may have been loaded before a file was not there.
        if opened::with_handle(replica.handle).is_none() {
            let Some(file) = file(replica, path, changes) else { return LACKS_FILE };
            if load(node, replica, (path, calls), &file).is_none() {
                return FAILED;
            }
        }
        next = replica.next;
    }
    LOADED
}

/// The file to load, without a name; `None` if this computer does not have the one that is changed.
fn file(replica: &Replica, path: &Path, mut changes: &[u8]) -> Option<File> {
    // SAFETY: the name is a string, and the descriptor is nobody else's.
    let file = unsafe {
        let descriptor = libc::memfd_create(c"gondwana-library".as_ptr(), libc::MFD_CLOEXEC);
        (descriptor >= 0).then(|| File::from_raw_fd(descriptor))?
    };
    if let Some(version) = replica.version {
        let original = File::open(path).ok()?;
        if FileVersion::of(&original.metadata().ok()?) != version {
            return None;
        }
        copy(&original, &file, replica.file)?;
    }
    file.set_len(replica.file as u64).ok()?;
    // In parts, because the kernel cannot read shared pages that are not there.
    let mut part = vec![0; PART];
    while let Some((head, rest)) = changes.split_first_chunk::<{ 2 * size_of::<usize>() }>() {
        let (place, length) = head.split_at(size_of::<usize>());
        let number = |bytes: &[u8]| usize::from_ne_bytes(bytes.try_into().expect("a half"));
        let (bytes, rest) = rest.split_at(number(length));
        for (bytes, place) in bytes.chunks(PART).zip((number(place)..).step_by(PART)) {
            let part = &mut part[..bytes.len()];
            part.copy_from_slice(bytes);
            file.write_all_at(part, place as u64).ok()?;
        }
        changes = rest;
    }
    Some(file)
}

/// Copies so many bytes of a file to another one, or as many as there are.
fn copy(from: &File, to: &File, mut bytes: usize) -> Option<()> {
    while bytes > 0 {
        let none = null_mut::<libc::off_t>();
        // SAFETY: there is no offset to be written.
        let copied = unsafe {
            gondwana_sys::syscall!(libc::SYS_sendfile, to.as_raw_fd(), from.as_raw_fd(), none, bytes)
        };
        match usize::try_from(copied).ok()? {
            0 => break,
            copied => bytes -= copied.min(bytes),
        }
    }
    Some(())
}

fn load(node: &'static Node, replica: &Replica, (path, calls): (&Path, &[u8]), file: &File) -> Option<()> {
    let pages = replica.start..replica.start + replica.bytes;
    // SAFETY: the pages were allocated for the library, so that nobody uses them.
    if !unsafe { node.exclude_pages(pages.clone()) } {
        return None;
    }
    let name = name(file);
    let filler = Filler::above(pages.end, pages.len(), 1)?;
    load::touch_stack();
    let flags = replica.flags & libc::RTLD_GLOBAL | libc::RTLD_NOW;
    let (real, mut loading) = loading::during(false, || loading::load(&name, flags));
    drop(filler);
    let real = real.ok()?;
    // SAFETY: the library is never unloaded if it is there.
    let object = unsafe { loading.objects() }.into_iter().find(|object| pages_of(object) == pages)?;
    // SAFETY: the loader has loaded it, and no thread of this node uses it yet.
    let prepared = unsafe { loading.finish(&object) }?;
    if prepared.distance != replica.locals {
        return None;
    }
    // SAFETY: as above; nobody asks for its name yet. The name lives for ever.
    unsafe {
        let named: &'static CStr =
            Box::leak(CString::new(path.as_os_str().as_bytes()).ok()?.into_boxed_c_str());
        loaded::at(object.text().start)?.rename(named);
    }
    for segment in object.loads() {
        let (_, shared) = load::divide(&object, segment);
        // SAFETY: variables of the library, which no thread of this node has used.
        if !shared.is_empty() && !unsafe { node.include_pages(shared) } {
            return None;
        }
    }
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    let call = |call: &[u8]| SystemCall { address: number(&call[..8]), before: number(&call[8..]) };
    let calls: Vec<SystemCall> = calls.chunks_exact(CALL).map(call).collect();
    // SAFETY: as above; node 0 has found the calls in the same file.
    unsafe { system_calls::replace_in(&object, path, &calls) };
    opened::add(Opened {
        path: path.to_owned(),
        base: object.base(),
        handle: replica.handle,
        real,
        is_spoiled: false,
        is_whole: false,
        calls,
        locals: prepared.distance.map(|distance| (object.thread_module(), distance)),
    });
    Some(())
}

/// A path of a file, which this process has not used for any other: the loader takes files of equal names for the same.
fn name(file: &File) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let digit = |bit: u32| if count >> bit & 1 == 1 { "/." } else { "" };
    let digits: String =
        (0..usize::BITS).map(digit).zip(std::iter::repeat("/")).flat_map(|(one, two)| [one, two]).collect();
    format!("/proc/self{digits}fd/{}", file.as_raw_fd()).into()
}
