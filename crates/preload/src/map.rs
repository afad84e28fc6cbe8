//! Anonymous mappings of the program: shared like its heap.

use gondwana_memory::PAGE_SIZE;
use gondwana_node::Node;
use libc::{c_int, c_void, off_t, size_t};

type Mmap = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;

fn map(
    real: Mmap,
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    let readable = protection & libc::PROT_READ != 0 && protection & libc::PROT_EXEC == 0;
    let movable = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == 0;
    if let Some(node) = Node::current()
        && length > 0
        && readable
        && movable
    {
        if flags & libc::MAP_ANONYMOUS != 0 {
            return share(node, length);
        }
        if flags & libc::MAP_PRIVATE != 0 || protection & libc::PROT_WRITE == 0 {
            return copy_file(node, length, fd, offset);
        }
        node.refuse("a writable shared mapping of a file: its pages stay on the node that maps it");
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { real(address, length, protection, flags, fd, offset) }
}

fn share(node: &'static Node, length: size_t) -> *mut c_void {
    node.map_pages(length).map_or_else(
        || {
            crate::errno::set(libc::ENOMEM);
            libc::MAP_FAILED
        },
        |address| address as *mut c_void,
    )
}

/// A private or read-only mapping of a file is a copy of it that every node can read.
fn copy_file(node: &'static Node, length: size_t, fd: c_int, offset: off_t) -> *mut c_void {
    if offset % PAGE_SIZE as off_t != 0 {
        crate::errno::set(libc::EINVAL);
        return libc::MAP_FAILED;
    }
    let address = share(node, length);
    if address == libc::MAP_FAILED {
        return address;
    }
    let mut done = 0;
    while done < length {
        // SAFETY: the mapping is `length` bytes long; `pread` here is the one that makes pages present first.
        let got = unsafe {
            crate::io::pread(fd, address.byte_add(done), (length - done).min(1 << 20), offset + done as off_t)
        };
        match got {
            0 => break,
            1.. => done += got as usize,
            _ => {
                node.unmap_pages(address as usize, length);
                return libc::MAP_FAILED;
            }
        }
    }
    address
}

macro_rules! mapping {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            address: *mut c_void,
            length: size_t,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: off_t,
        ) -> *mut c_void {
            let real =
                crate::real!($name: fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void);
            map(real, address, length, protection, flags, fd, offset)
        }
    )*};
}

mapping! { mmap mmap64 }

/// # Safety
/// As the C library's `munmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    if let Some(node) = Node::current()
        && node.is_shared(address as usize)
    {
        if !(address as usize).is_multiple_of(PAGE_SIZE) || length == 0 {
            crate::errno::set(libc::EINVAL);
            return -1;
        }
        node.unmap_pages(address as usize, length);
        return 0;
    }
    // SAFETY: forwards the caller's arguments.
    unsafe { crate::real!(munmap: fn(*mut c_void, size_t) -> c_int)(address, length) }
}
