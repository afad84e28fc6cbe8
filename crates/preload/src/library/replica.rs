//! Libraries on nodes other than node 0, at the same addresses. The loader of each node loads them, so that it knows their symbols, their
//! unwind tables and their thread-local variables; but it has nothing to relocate and nothing to run.

use super::gaps::Filler;
use super::opened::{self, Opened};
use super::{image, load, loading};
use gondwana_elf::loaded::{self, LoadedObject};
use gondwana_memory::PAGE_SIZE;
use gondwana_node::{Caller, Node};
use gondwana_topology::{Id, NodeId};
use libc::c_int;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A library for other nodes, in shared memory: its path, then its image follow.
#[repr(C)]
struct Replica {
    /// Its pages.
    start: usize,
    bytes: usize,
    handle: usize,
    flags: c_int,
    /// The distance of its thread-local variables from each thread's control block, if it has some.
    locals: Option<u64>,
    path: usize,
    image: usize,
}

/// Has all other nodes load a library; `None` if one cannot.
pub(super) fn give(
    node: &'static Node,
    object: &LoadedObject<'_>,
    library: &Opened,
    flags: c_int,
) -> Option<()> {
    let image = image::of(object, &library.path)?;
    let path = library.path.as_os_str().as_bytes();
    let head = size_of::<Replica>();
    let address = node.allocate(head + path.len() + image.len(), 16, Caller::NONE)?;
    let pages = pages_of(object);
    // SAFETY: the block is long enough for all that is written to it.
    unsafe {
        (address as *mut Replica).write(Replica {
            start: pages.start,
            bytes: pages.len(),
            handle: library.handle,
            flags,
            locals: library.locals.map(|(_, distance)| distance),
            path: path.len(),
            image: image.len(),
        });
        let rest = (address + head) as *mut u8;
        std::ptr::copy_nonoverlapping(path.as_ptr(), rest, path.len());
        std::ptr::copy_nonoverlapping(image.as_ptr(), rest.add(path.len()), image.len());
    }
    drop(image);
    // SAFETY: all nodes have this library at the same address; `take` is given what it expects.
    let taken = (1..node.nodes())
        .all(|other| unsafe { node.call_on(NodeId::from_index(other), take, address) } == Ok(1));
    node.free(address);
    taken.then_some(())
}

/// The pages from its first to its last.
pub(super) fn pages_of(object: &LoadedObject<'_>) -> Range<usize> {
    let Range { start, end } = object.addresses();
    start / PAGE_SIZE * PAGE_SIZE..end.next_multiple_of(PAGE_SIZE)
}

/// Runs on the other nodes; 1 for success.
unsafe extern "C" fn take(address: usize) -> usize {
    let Some(node) = Node::current() else { return 0 };
    // SAFETY: `give` passes a library with its path and its image.
    let (replica, path, image) = unsafe {
        let replica = &*(address as *const Replica);
        let rest = (address + size_of::<Replica>()) as *const u8;
        (
            replica,
            std::slice::from_raw_parts(rest, replica.path),
            std::slice::from_raw_parts(rest.add(replica.path), replica.image),
        )
    };
    usize::from(load(node, replica, path, image).is_some())
}

fn load(node: &'static Node, replica: &Replica, path: &[u8], image: &[u8]) -> Option<()> {
    let pages = replica.start..replica.start + replica.bytes;
    // SAFETY: the pages were allocated for the library, so that nobody uses them.
    if !unsafe { node.exclude_pages(pages.clone()) } {
        return None;
    }
    let file = file(image)?;
    let name = name(&file);
    let filler = Filler::above(pages.end, pages.len())?;
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
    let path = Path::new(OsStr::from_bytes(path));
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
    opened::add(Opened {
        path: path.to_owned(),
        base: object.base(),
        handle: replica.handle,
        real,
        is_whole: false,
        locals: prepared.distance.map(|distance| (object.thread_module(), distance)),
    });
    Some(())
}

/// A file without a name.
fn file(contents: &[u8]) -> Option<File> {
    // SAFETY: the name is a string, and the descriptor is nobody else's.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"gondwana-library".as_ptr(), libc::MFD_CLOEXEC);
        (descriptor >= 0).then(|| File::from_raw_fd(descriptor))?
    };
    // In parts, because the kernel cannot read shared pages that are not there.
    let mut part = vec![0; 1 << 20];
    for contents in contents.chunks(part.len()) {
        let part = &mut part[..contents.len()];
        part.copy_from_slice(contents);
        file.write_all(part).ok()?;
    }
    Some(file)
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
