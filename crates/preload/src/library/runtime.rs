//! Libraries of the language runtimes that were not there from the start: the loader of each node loads them, at the same
//! addresses, and each node has its own variables of them.

use super::gaps::Filler;
use super::opened::{self, Opened};
use super::{load, loading};
use gondwana_elf::loaded::LoadedObject;
use gondwana_node::{Caller, Node};
use gondwana_topology::{Id, NodeId};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The end of the addresses for these libraries, which nothing else uses on any node.
const END: usize = 0x5500_0000_0000;

/// Where the next one ends; on node 0 only.
static NEXT: AtomicUsize = AtomicUsize::new(END);

/// A library for all nodes, in shared memory. The path and a text that says what has been loaded follow.
#[repr(C)]
struct Wanted {
    end: usize,
    handle: usize,
    path: usize,
    text: usize,
}

/// Has all nodes load the library in a file; on node 0 only. The handle.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn open(node: &'static Node, path: &Path) -> Result<usize, String> {
    let refused = || {
        let sentence = format!(
            "dlopen({}): not every node has this library, of the same version and at the same place; link the program with it instead",
            path.display()
        );
        node.refuse(&sentence);
        sentence
    };
    match opened::in_file(path) {
        Some(library) if library.is_spoiled => return Err(refused()),
        Some(library) if library.handle != 0 => return Ok(library.handle),
        _ => {}
    }
    let handle = node.allocate(size_of::<usize>(), 16, Caller::NONE).ok_or("out of memory")?;
    let end = NEXT.load(Ordering::Relaxed);
    let (text, start) = load_below(end, path, handle)?;
    NEXT.store(start, Ordering::Relaxed);
    if give(node, end, handle, path, &text).is_none() {
        opened::spoil(path);
        return Err(refused());
    }
    Ok(handle)
}

fn give(node: &'static Node, end: usize, handle: usize, path: &Path, text: &str) -> Option<()> {
    let path = path.as_os_str().as_bytes();
    let head = size_of::<Wanted>();
    let address = node.allocate(head + path.len() + text.len(), 16, Caller::NONE)?;
    // SAFETY: the block is long enough.
    unsafe {
        (address as *mut Wanted).write(Wanted { end, handle, path: path.len(), text: text.len() });
        let rest = (address + head) as *mut u8;
        std::ptr::copy_nonoverlapping(path.as_ptr(), rest, path.len());
        std::ptr::copy_nonoverlapping(text.as_ptr(), rest.add(path.len()), text.len());
    }
    let others: Vec<NodeId> = (1..node.nodes()).map(NodeId::from_index).collect();
    // SAFETY: all nodes have this library at the same address; `take` is given what it expects.
    let taken = unsafe { node.call_on_each(&others, take, address) };
    node.free(address);
    taken.iter().all(|taken| *taken == Ok(1)).then_some(())
}

/// Runs on the other nodes; 1 for success.
unsafe extern "C" fn take(address: usize) -> usize {
    // SAFETY: `give` passes a wish with its texts. Copies: the loader's system calls cannot read shared pages that are not there.
    let (end, handle, path, text) = unsafe {
        let &Wanted { end, handle, path, text } = &*(address as *const Wanted);
        let rest = (address + size_of::<Wanted>()) as *const u8;
        (
            end,
            handle,
            std::slice::from_raw_parts(rest, path).to_vec(),
            std::slice::from_raw_parts(rest.add(path), text).to_vec(),
        )
    };
    let path = PathBuf::from(OsString::from_vec(path));
    usize::from(load_below(end, &path, handle).is_ok_and(|(mine, _)| mine.as_bytes() == text))
}

/// Loads a library on this node so that it ends at an address. What was loaded, as a text that is the same for the same libraries at the
/// same addresses, and where they begin.
fn load_below(end: usize, path: &Path, handle: usize) -> Result<(String, usize), String> {
    let filler = Filler::above(end, gondwana_memory::PAGE_SIZE, 1).ok_or("out of memory")?;
    load::touch_stack();
    // For all to find: functions of the program's that stand in front of those of these libraries look for the next one.
    let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
    let (real, mut loading) = loading::during(false, || loading::load(path, flags));
    drop(filler);
    let real = real?;
    // SAFETY: what was opened is never unloaded.
    let objects = unsafe { loading.objects() };
    let mut text = String::new();
    for object in &objects {
        // SAFETY: the loader has loaded it, and no other thread uses it yet.
        let prepared = unsafe { loading.finish(object) }.unwrap_or_default();
        let _ = writeln!(text, "{:x} {:?} {:x?}", object.base(), object.build_id(), prepared.distance);
        add(object, path, (handle, real), prepared.distance);
    }
    if !objects.iter().any(|object| file_of(object) == path) {
        opened::name(path, (handle, real));
    }
    crate::process::standard_streams::begin();
    let start = objects.iter().map(|object| super::replica::pages_of(object).start).min();
    Ok((text, start.unwrap_or(end)))
}

/// The file of a library, with all links followed.
fn file_of(object: &LoadedObject<'_>) -> PathBuf {
    std::fs::canonicalize(object.path()).unwrap_or_default()
}

/// Remembers a library, which has the handles if it is the one in the file and not one that this needs.
fn add(object: &LoadedObject<'_>, path: &Path, (handle, real): (usize, usize), distance: Option<u64>) {
    let file = file_of(object);
    let (handle, real) = if file == path { (handle, real) } else { (0, 0) };
    opened::add(Opened {
        path: file,
        base: object.base(),
        handle,
        real,
        is_spoiled: false,
        is_whole: true,
        calls: vec![],
        locals: distance.map(|distance| (object.thread_module(), distance)),
    });
}
