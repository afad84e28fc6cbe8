//! Copies of the code and constants of a library on nodes other than node 0, at the same addresses.

use gondwana_elf::loaded::LoadedObject;
use gondwana_node::{Caller, Node};
use gondwana_topology::{Id, NodeId};
use libc::{c_int, c_void, off_t, size_t};
use std::ops::Range;

/// A library in shared memory; its parts follow.
#[repr(C)]
struct Replica {
    /// The address of the unwind tables; 0 if there are none.
    frames: usize,
    parts: usize,
}

/// A part of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct ReplicaPart {
    start: usize,
    bytes: usize,
    protection: c_int,
    /// Where its contents are.
    contents: usize,
}

/// Copies parts of a library to all other nodes, with their protection; `None` if one node fails.
pub(super) fn give(
    node: &'static Node,
    object: &LoadedObject<'_>,
    parts: &[(Range<usize>, c_int)],
) -> Option<()> {
    let head = size_of::<Replica>() + parts.len() * size_of::<ReplicaPart>();
    let bytes: usize = parts.iter().map(|(part, _)| part.len()).sum();
    let address = node.allocate(head + bytes, 16, Caller::NONE)?;
    let mut contents = address + head;
    // SAFETY: the block is long enough for all that is written to it; the loader has mapped the parts.
    unsafe {
        (address as *mut Replica)
            .write(Replica { frames: object.unwind_frames().unwrap_or(0), parts: parts.len() });
        let list = (address + size_of::<Replica>()) as *mut ReplicaPart;
        for (index, (part, protection)) in parts.iter().enumerate() {
            let (start, bytes) = (part.start, part.len());
            list.add(index).write(ReplicaPart { start, bytes, protection: *protection, contents });
            std::ptr::copy_nonoverlapping(start as *const u8, contents as *mut u8, bytes);
            contents += bytes;
        }
    }
    // SAFETY: all nodes have this library at the same address; `take` is given what it expects.
    let taken = (1..node.nodes())
        .all(|other| unsafe { node.call_on(NodeId::from_index(other), take, address) } == Ok(1));
    node.free(address);
    taken.then_some(())
}

/// Runs on the other nodes; 1 for success.
unsafe extern "C" fn take(address: usize) -> usize {
    let Some(node) = Node::current() else { return 0 };
    // SAFETY: `give` passes an image with its parts.
    let (image, parts) = unsafe {
        let image = &*(address as *const Replica);
        (
            image,
            std::slice::from_raw_parts((address + size_of::<Replica>()) as *const ReplicaPart, image.parts),
        )
    };
    if !parts.iter().all(|part| take_part(node, *part)) {
        return 0;
    }
    if image.frames != 0 {
        // SAFETY: the frames are there now, and stay.
        unsafe { __register_frame(image.frames as *const c_void) };
    }
    1
}

fn take_part(node: &'static Node, ReplicaPart { start, bytes, protection, contents }: ReplicaPart) -> bool {
    // SAFETY: the pages were allocated for the library; what replaces them has just been mapped.
    unsafe {
        node.exclude_pages(start..start + bytes)
            && crate::real!(mmap: fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void)(
                start as *mut c_void,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            ) as usize
                == start
            && {
                std::ptr::copy_nonoverlapping(contents as *const u8, start as *mut u8, bytes);
                crate::real!(mprotect: fn(*mut c_void, size_t, c_int) -> c_int)(
                    start as *mut c_void,
                    bytes,
                    protection,
                ) == 0
            }
    }
}

unsafe extern "C" {
    /// Of the compiler's runtime: registers unwind tables that the loader does not know.
    fn __register_frame(frames: *const c_void);
}
