//! C++'s standard streams: their beginning and end, and the buffers that they get by `std::ios::sync_with_stdio(false)`.
//!
//! Where the executable uses `std::cout`, the stream itself is in its data, which is shared. The C++ library has the new buffers in data of its
//! own, of which each node has a copy: on other nodes there is nothing. So they move to shared memory, as soon as they are made.

use super::common;
use crate::alloc::resize;
use gondwana_elf::loaded;
use gondwana_node::Node;
use libc::c_int;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of a `stdio_filebuf`, for characters of either kind.
const BUFFER: usize = 240;

/// Where a table of virtual functions has the distance to the object's `basic_ios`, in words.
const DISTANCE: usize = 3;

/// The streams, and the function that gives one another buffer.
const STREAMS: [(&CStr, [&CStr; 4]); 2] = [
    (
        c"_ZNSt9basic_iosIcSt11char_traitsIcEE5rdbufEPSt15basic_streambufIcS1_E",
        [c"_ZSt3cin", c"_ZSt4cout", c"_ZSt4cerr", c"_ZSt4clog"],
    ),
    (
        c"_ZNSt9basic_iosIwSt11char_traitsIwEE5rdbufEPSt15basic_streambufIwS1_E",
        [c"_ZSt4wcin", c"_ZSt5wcout", c"_ZSt5wcerr", c"_ZSt5wclog"],
    ),
];

/// `basic_ios::rdbuf` with an argument: gives the former buffer.
type SetBuffer = unsafe extern "C-unwind" fn(*mut c_void, *mut u8) -> *mut u8;

/// A `std::ios_base::Init`, of which each counts.
static USER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Initialises the streams on each node, before shared memory is mapped over their copies in the program's data. Natively, constructors
/// of the program do this, but those run on node 0 only.
pub(crate) fn begin() {
    if !USER.load(Ordering::Relaxed).is_null() {
        return;
    }
    let user = Box::into_raw(Box::new(0_u64)).cast();
    if count(c"_ZNSt8ios_base4InitC1Ev", user) {
        USER.store(user, Ordering::Relaxed);
    }
}

/// After all destructors of the program: the last user writes out what the streams hold.
pub(crate) fn end() {
    let user = USER.swap(std::ptr::null_mut(), Ordering::Relaxed);
    if !user.is_null() {
        count(c"_ZNSt8ios_base4InitD1Ev", user);
    }
}

/// Calls a constructor or destructor of `std::ios_base::Init`, if there is one.
fn count(function: &CStr, user: *mut c_void) -> bool {
    let found = symbol(function);
    if let Some(function) = found {
        // SAFETY: it takes the address of an empty object.
        unsafe {
            let function = std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(function);
            function(user);
        }
    }
    found.is_some()
}

/// `std::ios_base::sync_with_stdio`.
///
/// # Safety
/// As the C++ library's function.
#[unsafe(export_name = "_ZNSt8ios_base15sync_with_stdioEb")]
unsafe extern "C-unwind" fn sync_with_stdio(wanted: c_int) -> c_int {
    let real = crate::real!(_ZNSt8ios_base15sync_with_stdioEb: fn(c_int) -> c_int);
    // SAFETY: forwards the caller's argument.
    let former = unsafe { real(wanted) };
    // Only the first byte of a `bool` counts.
    let (wanted, was) = (wanted & 0xff != 0, former & 0xff != 0);
    if let Some(node) = common().filter(|_| was && !wanted) {
        // SAFETY: the C++ library has just made the buffers.
        unsafe { share_buffers(node) };
    }
    former
}

/// Moves the buffers of shared streams to shared memory.
///
/// # Safety
/// They have not been used.
unsafe fn share_buffers(node: &'static Node) {
    // Two streams may have one.
    let mut moved: HashMap<usize, usize> = HashMap::new();
    for (set_buffer, streams) in STREAMS {
        let Some(set_buffer) = symbol(set_buffer) else { continue };
        for stream in streams.into_iter().filter_map(symbol).filter(|&stream| node.is_shared(stream)) {
            // SAFETY: a function of this type, a stream, whose first word leads to its table of virtual functions, and as many bytes as are
            // copied. A buffer that is new has no pointers to itself.
            unsafe {
                let set_buffer = std::mem::transmute::<usize, SetBuffer>(set_buffer);
                let table = *(stream as *const *const isize);
                let ios = stream.wrapping_add_signed(*table.sub(DISTANCE)) as *mut c_void;
                let fresh = resize(std::ptr::null_mut(), BUFFER).cast::<u8>();
                if fresh.is_null() {
                    return;
                }
                // Not without a buffer: that would be an error of the stream.
                let buffer = set_buffer(ios, fresh);
                if let Some(&to) = moved.get(&(buffer as usize)) {
                    set_buffer(ios, to as *mut u8);
                } else if node.is_shared(buffer as usize) {
                    set_buffer(ios, buffer);
                } else {
                    std::ptr::copy_nonoverlapping(buffer, fresh, BUFFER);
                    moved.insert(buffer as usize, fresh as usize);
                }
            }
        }
    }
}

/// The address of what the program means by a name. The loader is not asked: if it finds nothing it allocates a sentence and frees it later,
/// which would never end where the program's own `free` looks up the next one.
fn symbol(name: &CStr) -> Option<usize> {
    loaded::visit(|object| {
        // SAFETY: no object is unloaded meanwhile.
        match unsafe { loaded::at(object.text().start) }.and_then(|object| object.function(name)) {
            Some(address) => ControlFlow::Break(address),
            None => ControlFlow::Continue(()),
        }
    })
}
