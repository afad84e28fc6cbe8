//! The current directory and the mask of permissions of new files.

use super::{common, in_order, result_of, tell};
use crate::io::descriptors::{Place, place};
use gondwana_node::{Node, ProcessChange};
use libc::{c_char, c_int, mode_t};
use std::ffi::{CStr, CString};

/// Bytes of the longest path.
const LONGEST: usize = libc::PATH_MAX as usize;

/// The absolute path of the current directory.
///
/// # Errors
/// The error number.
fn present() -> Result<CString, c_int> {
    let mut text = vec![0_u8; LONGEST];
    // SAFETY: the kernel fills in at most that many bytes.
    if unsafe { gondwana_sys::syscall!(libc::SYS_getcwd, text.as_mut_ptr(), LONGEST) } < 0 {
        return Err(crate::errno::get());
    }
    let path = CStr::from_bytes_until_nul(&text).map_err(|_| libc::ENAMETOOLONG)?;
    // The kernel so marks a directory that cannot be reached by a path.
    if path.to_bytes().first() == Some(&b'/') { Ok(path.to_owned()) } else { Err(libc::ENOENT) }
}

/// Goes to a directory in this process.
///
/// # Errors
/// The error number.
fn go(path: &CStr) -> Result<(), c_int> {
    // SAFETY: a private string.
    let result = unsafe { gondwana_sys::syscall!(libc::SYS_chdir, path.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(crate::errno::get()) }
}

/// For another node, whose threads have gone to a directory; 0 or an error number.
pub(crate) fn go_here(path: &[u8]) -> c_int {
    let before = crate::errno::get();
    let went = CString::new(path).map_err(|_| libc::EINVAL).and_then(|path| go(&path));
    crate::errno::set(before);
    went.err().unwrap_or(0)
}

/// Has all nodes follow a call that has changed the current directory of this one. If one cannot, all stay where they were.
fn change(node: &'static Node, name: &str, call: impl FnOnce() -> Result<(), c_int>) -> Result<(), c_int> {
    in_order(node, || {
        let before = present();
        call()?;
        let (followed, at, path) = match present() {
            Err(error) => (Err(error), 0, "a directory that has no path".to_owned()),
            Ok(path) => {
                let change = ProcessChange::Directory { path: path.to_bytes().to_vec() };
                let failed =
                    (0..node.nodes()).filter(|&other| other != node.number().index()).find_map(|other| {
                        node.change_on_node(other, change.clone()).err().map(|error| (other, error))
                    });
                let (at, followed) = failed.map_or((0, Ok(())), |(at, error)| (at, Err(error)));
                (followed, at, path.to_string_lossy().into_owned())
            }
        };
        let Err(error) = followed else { return Ok(()) };
        if let Ok(before) = before {
            let _ = go(&before);
            let _ = node.change_elsewhere(ProcessChange::Directory { path: before.to_bytes().to_vec() });
        }
        node.refuse(&format!(
            "{name}() to {path}: node {at} cannot go there ({}), so no node does; make the directory on all computers of the \
             run",
            std::io::Error::from_raw_os_error(error)
        ));
        Err(error)
    })
}

/// # Safety
/// As the C library's `chdir`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn chdir(path: *const c_char) -> c_int {
    let Some(node) = common().filter(|_| !path.is_null()) else {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(chdir: fn(*const c_char) -> c_int)(path) };
    };
    // SAFETY: the caller passes a string.
    let path = unsafe { CStr::from_ptr(path) }.to_owned();
    result_of(change(node, "chdir", || go(&path)))
}

/// # Safety
/// As the C library's `fchdir`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fchdir(folder: c_int) -> c_int {
    match place(&[folder], "fchdir") {
        Place::Here => {}
        Place::There(there) => return there.call("fchdir", &[folder.into()], &[]),
        Place::Nowhere => return -1,
    }
    let call = || {
        // SAFETY: touches no memory.
        let result = unsafe { gondwana_sys::syscall!(libc::SYS_fchdir, folder) };
        if result == 0 { Ok(()) } else { Err(crate::errno::get()) }
    };
    result_of(common().map_or_else(call, |node| change(node, "fchdir", call)))
}

fn set_mask(mask: mode_t) -> mode_t {
    // SAFETY: touches no memory.
    unsafe { crate::real!(umask: fn(mode_t) -> mode_t)(mask) }
}

/// For another node, whose threads have another mask; 0.
pub(crate) fn set_mask_here(mask: u32) -> c_int {
    set_mask(mask);
    0
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn umask(mask: mode_t) -> mode_t {
    let Some(node) = common() else { return set_mask(mask) };
    in_order(node, || {
        let before = set_mask(mask);
        if before != mask & 0o777 {
            tell(node, ProcessChange::Mask { mask });
        }
        before
    })
}
