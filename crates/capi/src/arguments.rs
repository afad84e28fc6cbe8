//! What C passes: checked, and copied before anything else is done with it.

use crate::error::Error;
use crate::installed::backend;
use gondwana_rset::RSet;
use gondwana_topology::{Id, MAX_NODES, Machine, NodeId};
use libc::{c_char, c_int, c_long, c_uint};

/// The longest text that a program may pass, in bytes: far more than anybody writes.
const LONGEST_TEXT: usize = 1 << 16;

/// A string of C.
///
/// # Safety
/// The pointer is null or points to a string.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Error> {
    if pointer.is_null() {
        return Err(Error::invalid(format!("{what} is NULL")));
    }
    // SAFETY: the caller's promise; not read beyond the NUL.
    let bytes = unsafe {
        let length = libc::strnlen(pointer, LONGEST_TEXT);
        std::slice::from_raw_parts(pointer.cast::<u8>(), length)
    };
    if bytes.len() == LONGEST_TEXT {
        return Err(Error::invalid(format!("{what} is longer than {LONGEST_TEXT} bytes")));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        Error::invalid(format!("{what} is no UTF-8 from byte {} on", error.valid_up_to() + 1))
    })
}

/// Where C wants a number of results, of which it may have room for some only.
///
/// # Safety
/// There is room for `room` values behind the pointer, or it is null.
pub(crate) unsafe fn room<'a, T>(pointer: *mut T, room: usize, what: &str) -> Result<&'a mut [T], Error> {
    match room {
        0 => Ok(&mut []),
        _ if pointer.is_null() => Err(Error::invalid(format!("{what} is NULL, with room for {room}"))),
        _ if !pointer.is_aligned() => Err(Error::invalid(format!("{what} is at an odd address"))),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, room) }),
    }
}

/// A length that C gives as a signed number.
pub(crate) fn length(number: c_int, what: &str) -> Result<usize, Error> {
    usize::try_from(number).map_err(|_| Error::invalid(format!("{what} is {number}, less than nothing")))
}

/// How many there are, as C has it.
pub(crate) fn count(number: usize) -> c_long {
    c_long::try_from(number).expect("less than half of the address space")
}

/// Writes the numbers that there is room for, and says how many there are.
pub(crate) fn numbers<I: Id>(all: impl Iterator<Item = I>, to: &mut [c_int]) -> c_int {
    let mut count = 0;
    for (index, id) in all.enumerate() {
        if let Some(place) = to.get_mut(index) {
            *place = c_int::try_from(id.index()).expect("a number of 16 bits");
        }
        count += 1;
    }
    count
}

/// Writes as much of a text as there is room for, with a NUL, as `snprintf` does, and says how long it is.
pub(crate) fn write_text(text: &str, to: &mut [u8]) -> c_int {
    if let Some(most) = to.len().checked_sub(1) {
        let length = text.len().min(most);
        to[..length].copy_from_slice(&text.as_bytes()[..length]);
        to[length] = 0;
    }
    c_int::try_from(text.len()).unwrap_or(c_int::MAX)
}

/// A node of the machine.
pub(crate) fn node(number: c_int, machine: &Machine) -> Result<NodeId, Error> {
    let known = u16::try_from(number).ok().filter(|number| usize::from(*number) < MAX_NODES).map(NodeId);
    known.filter(|node| machine.node(*node).is_some()).ok_or_else(|| {
        Error::invalid(format!("the machine has no node {number} (it has {})", machine.node_ids()))
    })
}

/// Flags, of which only some mean anything here.
pub(crate) fn flags(given: c_uint, known: c_uint) -> Result<c_uint, Error> {
    match given & !known {
        0 => Ok(given),
        unknown => Err(Error::invalid(format!("the flags {unknown:#x} mean nothing here"))),
    }
}

/// A resource set as a program holds it: plain bytes in its own heap, which mean the same on every node.
#[repr(C)]
pub struct Handle {
    magic: u64,
    rset: RSet,
}

/// What is there at the beginning of a set that is in use.
const MAGIC: u64 = u64::from_le_bytes(*b"gw_rset\x01");

impl Handle {
    /// Gives C a set.
    pub fn give(rset: RSet) -> Result<*mut Self, Error> {
        let pointer = backend().allocate_handle(size_of::<Self>()).cast::<Self>();
        if pointer.is_null() {
            return Err(Error::new(libc::ENOMEM, "there is no memory left for a resource set"));
        }
        // SAFETY: fresh memory of this size, aligned as `malloc` aligns.
        unsafe { pointer.write(Self { magic: MAGIC, rset }) };
        Ok(pointer)
    }

    /// The set that C has.
    ///
    /// # Safety
    /// The pointer is null or points to readable memory.
    pub unsafe fn rset(pointer: *const Self, what: &str) -> Result<RSet, Error> {
        // SAFETY: the caller's promise.
        unsafe { Self::check(pointer, what)? };
        // SAFETY: it has been written by `give`.
        Ok(unsafe { (*pointer).rset })
    }

    /// Takes a set back. Null is none, as for `free`.
    ///
    /// # Safety
    /// The pointer is null or points to readable memory; if it is a set, nobody uses it any more.
    pub unsafe fn take(pointer: *mut Self) -> Result<(), Error> {
        if pointer.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise. The magic word goes, so that whoever uses the set again is told.
        unsafe {
            Self::check(pointer, "the set")?;
            (&raw mut (*pointer).magic).write_volatile(0);
            backend().free_handle(pointer.cast());
        }
        Ok(())
    }

    /// # Safety
    /// The pointer is null or points to readable memory.
    unsafe fn check(pointer: *const Self, what: &str) -> Result<(), Error> {
        if pointer.is_null() {
            return Err(Error::invalid(format!("{what} is NULL")));
        }
        // SAFETY: aligned, and the caller's promise.
        if !pointer.is_aligned() || unsafe { (&raw const (*pointer).magic).read() } != MAGIC {
            return Err(Error::invalid(format!("{what} is no resource set, or one that was freed")));
        }
        Ok(())
    }
}
