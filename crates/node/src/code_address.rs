//! Code addresses for messages.

use std::ffi::CStr;
use std::fmt::Write;

/// Says which function holds a code address, as far as the loader knows.
pub(crate) fn describe(address: usize, out: &mut impl Write) {
    // SAFETY: all zero is valid; dladdr fills it in with pointers to strings that live as long as their objects.
    let (file, base, symbol) = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            ("", 0, None)
        } else {
            let text = |string| CStr::from_ptr(string).to_str().unwrap_or("?");
            let symbol = (!info.dli_sname.is_null()).then(|| (text(info.dli_sname), info.dli_saddr as usize));
            (text(info.dli_fname), info.dli_fbase as usize, symbol)
        }
    };
    // A description that is cut short is better than none.
    let _ = match symbol {
        Some((name, start)) => write!(out, "at {name}+{:#x} in {file}", address - start),
        None if file.is_empty() => write!(out, "at {address:#x}"),
        None => write!(out, "at {:#x} in {file}", address - base),
    };
}
