//! The locale of the process.

use super::calls::on_others;
use super::{common, in_order, memory};
use gondwana_node::Node;
use libc::{c_char, c_int};
use std::cell::Cell;
use std::ffi::CStr;

/// Bytes of the longest name of a locale: one for each category.
pub(super) const LONGEST: usize = 1024;

/// A category, and a name that ends with a null.
type Named = (c_int, [u8; LONGEST]);

/// Sets the locale of this process; 0, or -1 and `ENOENT`.
fn set_here((category, name): &mut Named) -> c_int {
    // SAFETY: a private string.
    let set = unsafe { real(*category, name.as_ptr().cast()) };
    if set.is_null() {
        crate::errno::set(libc::ENOENT);
        return -1;
    }
    0
}

/// # Safety
/// The name is null or a private string.
unsafe fn real(category: c_int, name: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { crate::real!(setlocale: fn(c_int, *const c_char) -> *mut c_char)(category, name) }
}

/// A copy of the name of the locale in force.
fn present(category: c_int) -> Option<Vec<u8>> {
    // SAFETY: the C library returns null or a string.
    unsafe {
        let name = real(category, std::ptr::null());
        (!name.is_null()).then(|| CStr::from_ptr(name).to_bytes_with_nul().to_vec())
    }
}

fn named(category: c_int, name: &[u8]) -> Option<Named> {
    let mut text = [0; LONGEST];
    text.get_mut(..name.len())?.copy_from_slice(name);
    Some((category, text))
}

/// Sets the locale on all nodes; gives its name, or `None` if there is none of this name.
fn set(node: &'static Node, category: c_int, name: &[u8]) -> Option<Vec<u8>> {
    let before = present(category)?;
    let mut wanted = named(category, name)?;
    if set_here(&mut wanted) != 0 {
        return None;
    }
    // The name that it has: an empty one says that the environment has it.
    let after = present(category)?;
    let Err((at, _)) = on_others(node, named(category, &after)?, set_here) else { return Some(after) };
    let mut back = named(category, &before)?;
    set_here(&mut back);
    let _ = on_others(node, back, set_here);
    node.refuse(&format!(
        "setlocale() to {}: node {at} has no such locale, so no node has it; install it on all computers of the run",
        String::from_utf8_lossy(after.strip_suffix(b"\0").unwrap_or(&after))
    ));
    None
}

thread_local! {
    /// The calling thread follows another node, which has told all others.
    static FOLLOWS: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call that sets the locale of this node or makes objects for that, as others have been told.
pub(super) fn without_others<R>(call: impl FnOnce() -> R) -> R {
    let before = FOLLOWS.replace(true);
    let result = call();
    FOLLOWS.set(before);
    result
}

/// True if the calling thread makes such a call.
pub(super) fn is_without_others() -> bool {
    FOLLOWS.get()
}

/// # Safety
/// As the C library's `setlocale`. What it gives is a text that all nodes can read.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setlocale(category: c_int, name: *const c_char) -> *mut c_char {
    let Some(node) = common().filter(|_| !FOLLOWS.get()) else {
        // SAFETY: forwards the caller's arguments.
        return unsafe { real(category, name) };
    };
    // SAFETY: the caller passes null or a string.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_bytes_with_nul().to_vec());
    in_order(node, || {
        let name = match name {
            Some(name) => set(node, category, &name),
            None => present(category),
        };
        name.and_then(|name| memory::place(node, name, 1))
            .map_or(std::ptr::null_mut(), |text| text as *mut c_char)
    })
}
