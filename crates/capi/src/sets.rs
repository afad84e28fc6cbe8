//! `gw_rset_*`: resource sets.

use crate::arguments::{Handle, flags, length, node, numbers, room, text, write_text};
use crate::error::{Error, call};
use crate::installed::backend;
use gondwana_rset::{Entry, RSet, RegistryError, TextError};
use gondwana_topology::NodeSet;
use libc::{c_char, c_int, c_uint};
use std::ptr::null_mut;

/// `GW_EXCLUSIVE`: the set shares nothing with other exclusive parts of its parent.
const EXCLUSIVE: c_uint = 1;

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        let written = error.picture().lines().next().unwrap_or_default().to_owned();
        Self::invalid(format!("{}, at character {} of \"{written}\"", error.message(), error.column()))
    }
}

impl From<RegistryError> for Error {
    fn from(error: RegistryError) -> Self {
        let number = match &error {
            RegistryError::Exists(_) => libc::EEXIST,
            RegistryError::Unknown(_) => libc::ENOENT,
            RegistryError::HasParts { .. } => libc::EBUSY,
            _ => libc::EINVAL,
        };
        Self::new(number, error.to_string())
    }
}

/// Makes a new set.
fn make(body: impl FnOnce() -> Result<RSet, Error>) -> *mut Handle {
    call(null_mut(), || Handle::give(body()?))
}

/// Everything in the machine.
#[unsafe(no_mangle)]
pub extern "C" fn gw_rset_all() -> *mut Handle {
    make(|| Ok(RSet::global(backend().machine()?)))
}

/// Everything in the machine that this process may use.
#[unsafe(no_mangle)]
pub extern "C" fn gw_rset_allowed() -> *mut Handle {
    make(|| Ok(RSet::allowed(backend().machine()?)))
}

/// The processors and the memory of a node.
#[unsafe(no_mangle)]
pub extern "C" fn gw_rset_of_node(number: c_int) -> *mut Handle {
    make(|| {
        let machine = backend().machine()?;
        Ok(RSet::of_nodes(machine, &NodeSet::only(node(number, machine)?)))
    })
}

/// Reads a set as people write it.
///
/// # Safety
/// `written` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_parse(written: *const c_char) -> *mut Handle {
    make(|| {
        // SAFETY: the caller's promise.
        let written = unsafe { text(written, "the text of the set")? };
        Ok(RSet::parse(written, backend().machine()?, &backend().registry()?)?)
    })
}

/// Writes the set as a text that `gw_rset_parse` reads.
///
/// # Safety
/// `set` is null or a set; there is room for `size` bytes behind `written`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_text(set: *const Handle, written: *mut c_char, size: usize) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promises.
        let (rset, to) = unsafe { (Handle::rset(set, "the set")?, room(written.cast(), size, "the text")?) };
        Ok(write_text(&rset.to_string(), to))
    })
}

/// # Safety
/// Both are null or sets.
unsafe fn both(a: *const Handle, b: *const Handle) -> Result<(RSet, RSet), Error> {
    // SAFETY: the caller's promise.
    unsafe { Ok((Handle::rset(a, "the first set")?, Handle::rset(b, "the second set")?)) }
}

/// What is in either.
///
/// # Safety
/// Both are null or sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_union(a: *const Handle, b: *const Handle) -> *mut Handle {
    // SAFETY: the caller's promise.
    make(|| unsafe { both(a, b) }.map(|(a, b)| a.union(&b)))
}

/// What is in both.
///
/// # Safety
/// Both are null or sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_intersection(a: *const Handle, b: *const Handle) -> *mut Handle {
    // SAFETY: the caller's promise.
    make(|| unsafe { both(a, b) }.map(|(a, b)| a.intersection(&b)))
}

/// What is in the first and not in the second.
///
/// # Safety
/// Both are null or sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_difference(a: *const Handle, b: *const Handle) -> *mut Handle {
    // SAFETY: the caller's promise.
    make(|| unsafe { both(a, b) }.map(|(a, b)| a.difference(&b)))
}

/// 1 if everything in the second is in the first, 0 if not.
///
/// # Safety
/// Both are null or sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_contains(a: *const Handle, b: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { both(a, b) }.map(|(a, b)| a.contains(&b).into()))
}

/// 1 if both hold the same, 0 if not.
///
/// # Safety
/// Both are null or sets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_equal(a: *const Handle, b: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { both(a, b) }.map(|(a, b)| (a == b).into()))
}

/// 1 if there is nothing in the set, 0 if there is.
///
/// # Safety
/// `set` is null or a set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_is_empty(set: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { Handle::rset(set, "the set") }.map(|set| set.is_empty().into()))
}

/// The processors of the set.
///
/// # Safety
/// `set` is null or a set; there is room for `most` numbers behind `processors`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_processors(
    set: *const Handle,
    processors: *mut c_int,
    most: c_int,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promises.
        let (set, to) = unsafe {
            (Handle::rset(set, "the set")?, room(processors, length(most, "the room")?, "the array")?)
        };
        Ok(numbers(set.processors().iter(), to))
    })
}

/// The nodes whose memory is in the set.
///
/// # Safety
/// `set` is null or a set; there is room for `most` numbers behind `nodes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_memory(set: *const Handle, nodes: *mut c_int, most: c_int) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promises.
        let (set, to) =
            unsafe { (Handle::rset(set, "the set")?, room(nodes, length(most, "the room")?, "the array")?) };
        Ok(numbers(set.memory().iter(), to))
    })
}

/// Gives a set back.
///
/// # Safety
/// `set` is null or a set that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_free(set: *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    call(-1, || unsafe { Handle::take(set) }.map(|()| 0))
}

/// Gives a set a name.
///
/// # Safety
/// `name` is null or a string, `set` null or a set, `parent` null (the machine) or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_name(
    name: *const c_char,
    set: *const Handle,
    parent: *const c_char,
    given: c_uint,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promises.
        let (name, rset, parent) = unsafe {
            let parent = if parent.is_null() { None } else { Some(text(parent, "the parent's name")?) };
            (text(name, "the name")?, Handle::rset(set, "the set")?, parent)
        };
        let exclusive = flags(given, EXCLUSIVE)? & EXCLUSIVE != 0;
        let entry = Entry { rset, parent: parent.map(str::to_owned), exclusive, written: None };
        backend().change_registry(&mut |names| Ok(names.add(name, entry.clone())?))?;
        Ok(0)
    })
}

/// Forgets a name.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_forget(name: *const c_char) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the name")? };
        backend().change_registry(&mut |names| Ok(names.remove(name).map(drop)?))?;
        Ok(0)
    })
}

/// The names of the parts of a set, or of the machine, one in a line.
///
/// # Safety
/// `parent` is null (the machine) or a string; there is room for `size` bytes behind `names`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gw_rset_names(parent: *const c_char, names: *mut c_char, size: usize) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promises.
        let (parent, to) = unsafe {
            let parent = if parent.is_null() { None } else { Some(text(parent, "the parent's name")?) };
            (parent, room(names.cast(), size, "the text")?)
        };
        let registry = backend().registry()?;
        if let Some(parent) = parent.filter(|parent| registry.get(parent).is_none()) {
            return Err(RegistryError::Unknown(parent.to_owned()).into());
        }
        let lines: String = registry.parts(parent).flat_map(|(name, _)| [name, "\n"]).collect();
        Ok(write_text(&lines, to))
    })
}
