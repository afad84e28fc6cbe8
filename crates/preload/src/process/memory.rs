//! Memory that is private to each node, at the same addresses on all, with the same contents: who writes to it, under the
//! mutex of [`super::in_order`], writes to that of every node.
//!
//! The C library and the kernel read it in places where they cannot wait for a page of shared memory.

use super::{in_order, tell};
use gondwana_locks::lock;
use gondwana_memory::SPAN_BASE;
use gondwana_node::{Node, ProcessChange};
use libc::c_int;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Bytes of the memory.
const BYTES: usize = 64 << 20;

/// Where the memory begins: in front of the span, where nothing else is.
const BASE: usize = SPAN_BASE - 2 * BYTES;

/// Where it ends.
pub(super) const END: usize = BASE + BYTES;

/// Behind the memory for texts: places for objects whose addresses are common and whose contents are those of each node.
pub(super) const OBJECTS: Range<usize> = END..END + (16 << 20);

/// The word with the address behind the last text.
const END_OF_TEXTS: usize = BASE;

/// The words with the numbers of the program's process, of its parent, and of the thread that runs `main`, the last one as the kernel
/// knows it.
pub(super) const PROCESS: usize = BASE + 8;
pub(super) const PARENT: usize = BASE + 16;
pub(super) const MAIN: usize = BASE + 24;

/// Where the list of the environment is, and the most entries that it has, with the null at its end.
pub(super) const LIST: usize = BASE + 4096;
pub(super) const MOST: usize = 1 << 17;

/// Where texts begin. They are never written over.
pub(super) const TEXTS: usize = LIST + MOST * size_of::<usize>();

/// Bytes that one message carries.
const PIECE: usize = 32 << 10;

/// Addresses of the texts that this node has written, for programs that write the same ones again and again.
static KNOWN: LazyLock<Mutex<HashMap<Vec<u8>, usize>>> = LazyLock::new(Mutex::default);

/// Maps the memory, at the start of each node.
///
/// # Errors
/// Why it cannot be had, for people.
pub(crate) fn map() -> Result<(), String> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: new memory, where nothing was.
    let mapped = unsafe {
        gondwana_sys::syscall!(libc::SYS_mmap, BASE, OBJECTS.end - BASE, protection, flags, -1, 0_usize)
    };
    if usize::try_from(mapped) == Ok(BASE) {
        return Ok(());
    }
    Err(format!("memory for the environment: {}", std::io::Error::last_os_error()))
}

/// A word of the memory.
pub(super) fn word(address: usize) -> &'static AtomicUsize {
    // SAFETY: the memory is mapped as long as the process lives, and all words are accessed in this way.
    unsafe { AtomicUsize::from_ptr(address as *mut usize) }
}

/// Writes to the memory of this node. Words are written one by one, in order: `getenv` may read the list meanwhile.
fn write_here(mut address: usize, bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks();
    if address.is_multiple_of(size_of::<usize>()) {
        for &bytes in words {
            word(address).store(usize::from_ne_bytes(bytes), Ordering::Release);
            address += size_of::<usize>();
        }
        // SAFETY: inside the memory, where nobody reads yet: the list is of whole words, so this is a new text.
        unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), address as *mut u8, rest.len()) };
    } else {
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }
}

/// For another node: writes these bytes; 0 or an error number.
pub(crate) fn write_for(address: usize, bytes: &[u8]) -> c_int {
    let end = address.checked_add(bytes.len());
    if address < BASE || end.is_none_or(|end| end > END) {
        return libc::EINVAL;
    }
    write_here(address, bytes);
    0
}

/// True for an address in the memory.
pub(super) fn is_inside(address: usize) -> bool {
    (BASE..END).contains(&address)
}

/// The address of a text that this node has written before, if it is a multiple of so many bytes.
fn known(text: &[u8], align: usize) -> Option<usize> {
    lock(&KNOWN).get(text).copied().filter(|address| address.is_multiple_of(align))
}

/// Writes to the memory of all nodes.
pub(super) fn write(node: &'static Node, address: usize, bytes: &[u8]) {
    write_here(address, bytes);
    for (index, piece) in bytes.chunks(PIECE).enumerate() {
        let at = (address + index * PIECE) as u64;
        tell(node, ProcessChange::Common { at, bytes: piece.to_vec() });
    }
}

/// The bytes of words.
pub(super) fn bytes_of(words: &[usize]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Texts up to this address are written. Called by the thread that runs `main`.
pub(super) fn begin(node: &'static Node, end_of_texts: usize) {
    let parent = gondwana_sys::parent().cast_unsigned() as usize;
    let process = gondwana_sys::process().cast_unsigned() as usize;
    let main = gondwana_sys::thread().cast_unsigned() as usize;
    write(node, END_OF_TEXTS, &bytes_of(&[end_of_texts, process, parent, main]));
}

/// The address of a text, which ends with a null, at a multiple of so many bytes: of a new one, or of one that this node has written before. `None`
/// if there is no room.
pub(super) fn copy(node: &'static Node, text: Vec<u8>, align: usize) -> Option<usize> {
    known(&text, align).or_else(|| in_order(node, || place(node, text, align)))
}

/// As [`copy`], for a thread that is the only one of the run that does so.
pub(super) fn place(node: &'static Node, text: Vec<u8>, align: usize) -> Option<usize> {
    if let Some(address) = known(&text, align) {
        return Some(address);
    }
    let address = word(END_OF_TEXTS).load(Ordering::Relaxed).next_multiple_of(align);
    let end = address + text.len();
    if end > END {
        return None;
    }
    write(node, address, &text);
    write(node, END_OF_TEXTS, &bytes_of(&[end]));
    lock(&KNOWN).insert(text, address);
    Some(address)
}
