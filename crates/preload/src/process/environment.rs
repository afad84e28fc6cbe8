//! The environment: one for all nodes.
//!
//! Its texts and the list of them are in [`super::memory`]. A text is never written over: `getenv` has given out pointers
//! to it.

use super::memory::{END, LIST, MOST, TEXTS, bytes_of, place, write};
use super::{common, in_order, memory, result_of, tell};
use crate::private_stack::uninterrupted;
use gondwana_node::{Node, ProcessChange};
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A list of texts that ends with a null.
type List = *mut *mut c_char;

unsafe extern "C" {
    static mut environ: List;
}

/// For another node: the variable `environ` has this value; 0.
pub(crate) fn point_here(node: &Node, list: usize) -> c_int {
    let variable = &raw mut environ;
    // A variable that the program has a copy of is in shared memory, where whoever changed it has written.
    if !node.is_shared(variable as usize) {
        // SAFETY: the C library's variable; it reads a word at a time.
        unsafe { AtomicUsize::from_ptr(variable.cast()) }.store(list, Ordering::Release);
    }
    0
}

/// Gives `environ` a value on all nodes.
fn point(node: &'static Node, list: usize) {
    // SAFETY: the variable exists as long as the process.
    unsafe { AtomicUsize::from_ptr((&raw mut environ).cast()) }.store(list, Ordering::Release);
    if !node.is_shared(&raw mut environ as usize) {
        tell(node, ProcessChange::Environ { list: list as u64 });
    }
}

/// What `environ` is.
pub(crate) fn present() -> List {
    // SAFETY: reads the variable.
    unsafe { environ }
}

/// The entries that `environ` leads to.
fn entries() -> Vec<usize> {
    // SAFETY: the variable and what it points to are as the program or the C library made them.
    unsafe {
        let list = present();
        (0..)
            .map_while(|index| {
                (!list.is_null()).then(|| *list.add(index) as usize).filter(|&entry| entry != 0)
            })
            .collect()
    }
}

/// Node 0 takes the environment that it has got over into the memory, before the program runs.
pub(crate) fn begin(node: &'static Node) {
    in_order(node, || {
        let texts: Vec<Vec<u8>> = entries()
            .into_iter()
            // SAFETY: the environment is a list of strings.
            .map(|entry| unsafe { CStr::from_ptr(entry as *const c_char) }.to_bytes_with_nul().to_vec())
            .collect();
        let total: usize = texts.iter().map(Vec::len).sum();
        if texts.len() >= MOST || TEXTS + total > END {
            crate::report::fatal("the environment is too large for a run on several nodes: make it smaller");
        }
        let mut at = TEXTS;
        let mut list = vec![];
        for text in &texts {
            list.push(at);
            at += text.len();
        }
        list.push(0);
        write(node, TEXTS, &texts.concat());
        write(node, LIST, &bytes_of(&list));
        memory::begin(node, at);
        point(node, LIST);
    });
}

/// True if an entry is about the variable of this name.
fn is_about(entry: usize, name: &[u8]) -> bool {
    // SAFETY: an entry is a string; the comparison ends with its null at the latest.
    let at = |index: usize| unsafe { *((entry + index) as *const u8) };
    name.iter().enumerate().all(|(index, &byte)| at(index) == byte) && at(name.len()) == b'='
}

/// The entries of the list in the memory. A list that the program has made itself is copied there first, as the C library
/// does.
fn own(node: &'static Node) -> Result<Vec<usize>, c_int> {
    let entries = entries();
    if present() as usize != LIST {
        if entries.len() >= MOST {
            return Err(libc::ENOMEM);
        }
        write(node, LIST, &bytes_of(&[&entries[..], &[0]].concat()));
        point(node, LIST);
    }
    Ok(entries)
}

/// Puts an entry in the place of the one of the same name, or at the end.
fn put(node: &'static Node, entry: usize, name: &[u8]) -> Result<(), c_int> {
    let entries = own(node)?;
    let slot = |index: usize| LIST + index * size_of::<usize>();
    if let Some(index) = entries.iter().position(|&entry| is_about(entry, name)) {
        write(node, slot(index), &bytes_of(&[entry]));
        return Ok(());
    }
    if entries.len() + 1 >= MOST {
        return Err(libc::ENOMEM);
    }
    // The new end before the entry in front of it.
    write(node, slot(entries.len() + 1), &bytes_of(&[0]));
    write(node, slot(entries.len()), &bytes_of(&[entry]));
    Ok(())
}

/// Removes all entries of a name.
fn remove(node: &'static Node, name: &[u8]) -> Result<(), c_int> {
    if !entries().iter().any(|&entry| is_about(entry, name)) {
        return Ok(());
    }
    let mut entries = own(node)?;
    let first = entries.iter().position(|&entry| is_about(entry, name)).unwrap_or(0);
    entries.retain(|&entry| !is_about(entry, name));
    entries.push(0);
    // Whoever reads meanwhile finds an entry twice at worst.
    write(node, LIST + first * size_of::<usize>(), &bytes_of(&entries[first..]));
    Ok(())
}

/// A private copy of the name of a variable.
///
/// # Errors
/// `EINVAL` for null and for a text that cannot be a name.
///
/// # Safety
/// The name is null or a string.
unsafe fn name_of(name: *const c_char) -> Result<Vec<u8>, c_int> {
    if name.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if name.is_empty() || name.contains(&b'=') { Err(libc::EINVAL) } else { Ok(name.to_vec()) }
}

/// # Safety
/// As the C library's `setenv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn setenv(name: *const c_char, value: *const c_char, overwrite: c_int) -> c_int {
    let Some(node) = common() else {
        // SAFETY: forwards the caller's arguments.
        return unsafe {
            crate::real!(setenv: fn(*const c_char, *const c_char, c_int) -> c_int)(name, value, overwrite)
        };
    };
    // SAFETY: the caller passes strings.
    let set = unsafe { name_of(name) }.and_then(|name| {
        // SAFETY: as above.
        let value = uninterrupted(|| unsafe { CStr::from_ptr(value) }.to_bytes_with_nul().to_vec());
        in_order(node, || {
            if overwrite == 0 && entries().iter().any(|&entry| is_about(entry, &name)) {
                return Ok(());
            }
            let text = [&name[..], b"=", &value].concat();
            let entry = place(node, text, 1).ok_or(libc::ENOMEM)?;
            put(node, entry, &name)
        })
    });
    result_of(set)
}

/// # Safety
/// As the C library's `putenv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn putenv(text: *mut c_char) -> c_int {
    let Some(node) = common() else {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(putenv: fn(*mut c_char) -> c_int)(text) };
    };
    // SAFETY: the caller passes a string.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes().to_vec();
    result_of(in_order(node, || match bytes.iter().position(|&byte| byte == b'=') {
        Some(end) => put(node, text as usize, &bytes[..end]),
        // As the C library does.
        None => remove(node, &bytes),
    }))
}

/// # Safety
/// As the C library's `unsetenv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn unsetenv(name: *const c_char) -> c_int {
    let Some(node) = common() else {
        // SAFETY: forwards the caller's argument.
        return unsafe { crate::real!(unsetenv: fn(*const c_char) -> c_int)(name) };
    };
    // SAFETY: the caller passes a string.
    let removed = unsafe { name_of(name) }.and_then(|name| in_order(node, || remove(node, &name)));
    result_of(removed)
}

/// # Safety
/// As the C library's `clearenv`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clearenv() -> c_int {
    match common() {
        Some(node) => in_order(node, || point(node, 0)),
        // SAFETY: forwards the call.
        None => return unsafe { crate::real!(clearenv: fn() -> c_int)() },
    }
    0
}
