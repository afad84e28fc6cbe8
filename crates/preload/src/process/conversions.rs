//! Conversions between encodings (`iconv`): a descriptor of one means the same on all nodes.
//!
//! The C library loads the code of a conversion on the node that opens it. So the program's descriptor leads to the names of the encodings, by
//! which each node opens the conversion for itself when a thread there uses it. Where in a text a conversion is that keeps that in mind (UTF-16,
//! ISO-2022), only the node knows whose threads have converted it so far.

use super::common;
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Caller, Node};
use libc::{c_char, c_int, size_t};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a descriptor leads to, in shared memory.
#[repr(C)]
struct Conversion {
    /// No other one of the run has had it.
    number: u64,
    /// The names of the encodings, to and from, each with its NUL.
    names: [u8; NAMES],
}

/// Bytes of the names of two encodings; natively there are none as long.
const NAMES: usize = 496;

/// What the C library gives: -1 if there is none.
type Native = usize;

const NONE: Native = usize::MAX;

/// How many conversions this node's threads have opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// This node's conversions by the addresses of the program's, with their numbers.
static OWN: Mutex<BTreeMap<usize, (u64, Native)>> = Mutex::new(BTreeMap::new());

fn open(to: &CStr, from: &CStr) -> Native {
    // SAFETY: strings.
    unsafe {
        crate::real!(iconv_open: fn(*const c_char, *const c_char) -> Native)(to.as_ptr(), from.as_ptr())
    }
}

fn close(native: Native) -> c_int {
    // SAFETY: what `open` gave, once.
    unsafe { crate::real!(iconv_close: fn(Native) -> c_int)(native) }
}

/// Notes that a conversion is open here, and closes what the address meant before.
fn note(address: usize, number: u64, native: Native) {
    let before = uninterrupted(|| lock(&OWN).insert(address, (number, native)));
    if let Some((_, before)) = before {
        close(before);
    }
}

/// # Safety
/// As the C library's `iconv_open`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn iconv_open(to: *const c_char, from: *const c_char) -> usize {
    // SAFETY: the caller passes strings.
    let [to, from] = [to, from].map(|name| unsafe { CStr::from_ptr(name).to_owned() });
    let native = open(&to, &from);
    let names = [to.as_bytes_with_nul(), from.as_bytes_with_nul()].concat();
    let Some(node) = common().filter(|_| native != NONE && names.len() <= NAMES) else { return native };
    let number = OPENED.fetch_add(1, Ordering::Relaxed) << 16 | u64::from(node.number().0);
    let Some(address) =
        node.allocate(size_of::<Conversion>(), align_of::<Conversion>().max(16), Caller::NONE)
    else {
        close(native);
        crate::errno::set(libc::ENOMEM);
        return NONE;
    };
    let mut conversion = Conversion { number, names: [0; NAMES] };
    conversion.names[..names.len()].copy_from_slice(&names);
    // SAFETY: a new block, this long.
    unsafe { (address as *mut Conversion).write(conversion) };
    note(address, number, native);
    address
}

/// True if a descriptor is one of the program's, also in a child of a node.
fn is_programs(address: usize) -> bool {
    common().is_some_and(|node| node.is_shared(address)) || Node::inherited_block(address).is_some()
}

/// This node's conversion for one of the program's.
///
/// # Safety
/// It is open.
unsafe fn native(address: usize) -> Native {
    if !is_programs(address) {
        return address;
    }
    // SAFETY: the caller's promise.
    let conversion = unsafe { &*(address as *const Conversion) };
    let known = uninterrupted(|| lock(&OWN).get(&address).copied());
    if let Some((_, native)) = known.filter(|&(number, _)| number == conversion.number) {
        return native;
    }
    let mut names =
        conversion.names.split(|&byte| byte == 0).map(|name| CString::new(name).unwrap_or_default());
    let (to, from) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    let native = open(&to, &from);
    if native != NONE {
        note(address, conversion.number, native);
    }
    native
}

/// # Safety
/// As the C library's `iconv`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn iconv(
    descriptor: usize,
    input: *mut *mut c_char,
    input_left: *mut size_t,
    output: *mut *mut c_char,
    output_left: *mut size_t,
) -> size_t {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        match native(descriptor) {
            NONE => size_t::MAX,
            native => crate::real!(
                iconv: fn(usize, *mut *mut c_char, *mut size_t, *mut *mut c_char, *mut size_t) -> size_t
            )(native, input, input_left, output, output_left),
        }
    }
}

/// # Safety
/// As the C library's `iconv_close`. Other nodes close theirs when the address gets another meaning.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn iconv_close(descriptor: usize) -> c_int {
    if !is_programs(descriptor) {
        return close(descriptor);
    }
    if let Some((_, native)) = uninterrupted(|| lock(&OWN).remove(&descriptor)) {
        close(native);
    }
    if let Some(node) = common() {
        node.free(descriptor);
    }
    0
}
