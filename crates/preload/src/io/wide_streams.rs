//! Wide characters of streams of other nodes. The node that has opened the stream converts them, with what it has read ahead.

use super::delegations::Locked;
use super::stream_marks::unmark_elsewhere;
use super::stream_memory;
use super::streams_elsewhere::{Elsewhere, also_elsewhere, piece};
use crate::alloc;
use crate::numbers::many;
use gondwana_node::{MOST_BYTES, StreamAction};
use libc::{FILE, c_int, c_void, wchar_t};
use std::ptr::null_mut;

/// The C library's `wint_t`, and its value for "none".
type Wide = u32;
const NONE: Wide = u32::MAX;

/// Bytes of a wide character.
pub(super) const WIDTH: usize = size_of::<wchar_t>();

/// Characters of a message at most.
const MOST: usize = MOST_BYTES / WIDTH;

fn characters(bytes: &[u8]) -> impl Iterator<Item = wchar_t> {
    bytes.as_chunks().0.iter().map(|&bytes| wchar_t::from_ne_bytes(bytes))
}

impl Elsewhere {
    /// `fgetwc`.
    fn get_wide(&self) -> Wide {
        let read = self.ask(StreamAction::ReadWide(1, NONE), vec![]).bytes;
        characters(&read).next().map_or(NONE, wchar_t::cast_unsigned)
    }

    /// `ungetwc`.
    fn unget_wide(&self, character: Wide) -> Wide {
        self.result(StreamAction::UngetWide(character)).try_into().unwrap_or(NONE)
    }

    /// Writes wide characters; true if all are written.
    fn write_wide(&self, text: &[wchar_t]) -> bool {
        text.chunks(MOST).all(|some| {
            let bytes = some.iter().flat_map(|character| character.to_ne_bytes()).collect();
            usize::try_from(self.ask(StreamAction::WriteWide, bytes).result) == Ok(some.len())
        })
    }

    fn put_wide(&self, character: wchar_t) -> Wide {
        if self.write_wide(&[character]) { character.cast_unsigned() } else { NONE }
    }

    /// `fputws`.
    ///
    /// # Safety
    /// The text ends with a zero.
    unsafe fn put_text(&self, text: *const wchar_t) -> c_int {
        // SAFETY: the caller's promise.
        let text = unsafe { std::slice::from_raw_parts(text, libc::wcslen(text)) };
        if self.write_wide(text) { 1 } else { -1 }
    }

    /// `fgetws`.
    ///
    /// # Safety
    /// The target has room for so many characters.
    unsafe fn wide_string(&self, target: *mut wchar_t, room: c_int) -> *mut wchar_t {
        let Some(most) = many(room).checked_sub(1) else { return null_mut() };
        let mut text: Vec<wchar_t> = vec![];
        while text.len() < most && text.last() != Some(&NEWLINE) {
            let wanted = (most - text.len()).min(MOST);
            let done = self.ask(StreamAction::ReadWide(piece(wanted), NEWLINE.cast_unsigned()), vec![]);
            if done.error == libc::EILSEQ {
                return null_mut();
            }
            let before = text.len();
            text.extend(characters(&done.bytes));
            if text.len() - before < wanted {
                break;
            }
        }
        if text.is_empty() && most > 0 {
            return null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), target, text.len());
            target.add(text.len()).write(0);
        }
        target
    }

    /// `vfwprintf`: formats by `print` into memory, and writes that.
    fn print_wide(&self, print: impl FnOnce(*mut FILE) -> c_int) -> c_int {
        let (mut block, mut length) = (Box::new(null_mut::<wchar_t>()), Box::new(0_usize));
        // SAFETY: places for the results, which stay until the stream is closed. The block is the caller's then.
        unsafe {
            let memory = crate::real!(open_wmemstream: fn(*mut *mut wchar_t, *mut usize) -> *mut FILE)(
                &raw mut *block,
                &raw mut *length,
            );
            if memory.is_null() {
                return -1;
            }
            let printed = print(memory);
            let is_closed = crate::real!(fclose: fn(*mut FILE) -> c_int)(memory) == 0;
            let is_good = printed >= 0 && is_closed;
            let is_written = is_good && self.write_wide(std::slice::from_raw_parts(*block, *length));
            alloc::free((*block).cast());
            if is_written || printed < 0 { printed } else { -1 }
        }
    }
}

const NEWLINE: wchar_t = '\n' as wchar_t;

/// For another node: reads wide characters up to and including `end`, or `most`.
///
/// # Safety
/// The stream is open, and this node's.
pub(super) unsafe fn read_here(stream: *mut FILE, most: u32, end: Wide) -> Vec<u8> {
    let _locked = Locked::new(stream);
    let mut bytes = vec![];
    for _ in 0..most {
        // SAFETY: the stream is locked.
        let character = unsafe { crate::real!(fgetwc_unlocked: fn(*mut FILE) -> Wide)(stream) };
        if character == NONE {
            break;
        }
        bytes.extend(character.to_ne_bytes());
        if character == end {
            break;
        }
    }
    bytes
}

/// For another node: writes wide characters, and says how many.
///
/// # Safety
/// As for [`read_here`].
pub(super) unsafe fn write_here(stream: *mut FILE, bytes: &[u8]) -> i64 {
    let _locked = Locked::new(stream);
    let put = crate::real!(fputwc_unlocked: fn(wchar_t, *mut FILE) -> Wide);
    // SAFETY: the stream is locked.
    let written = characters(bytes).take_while(|&character| unsafe { put(character, stream) } != NONE);
    written.count().cast_signed() as i64
}

also_elsewhere! {
    [fgetwc getwc fgetwc_unlocked getwc_unlocked] {
        (stream: *mut FILE) -> Wide, plain stream => |there| there.get_wide()
    }
    [getwchar getwchar_unlocked] {
        () -> Wide, plain stream_memory::standard_input() => |there| there.get_wide()
    }
    [ungetwc] {
        (character: Wide, stream: *mut FILE) -> Wide, plain stream => |there| there.unget_wide(character);
        unmark_elsewhere
    }
    [fputwc putwc fputwc_unlocked putwc_unlocked] {
        (character: wchar_t, stream: *mut FILE) -> Wide, plain stream => |there| there.put_wide(character)
    }
    [fputws fputws_unlocked] {
        (text: *const wchar_t, stream: *mut FILE) -> c_int,
        // SAFETY: the caller's promise.
        plain stream => |there| unsafe { there.put_text(text) }
    }
    [fgetws fgetws_unlocked] {
        (target: *mut wchar_t, room: c_int, stream: *mut FILE) -> *mut wchar_t,
        // SAFETY: the caller's promise.
        plain stream => |there| unsafe { there.wide_string(target, room) }
    }
    [__fgetws_chk __fgetws_unlocked_chk] {
        (target: *mut wchar_t, size: usize, room: c_int, stream: *mut FILE) -> *mut wchar_t,
        plain stream => |there| {
            if many(room) > size {
                // SAFETY: ends the program, as the C library does.
                unsafe { crate::real!(__chk_fail: fn())() };
            }
            // SAFETY: the caller's promise.
            unsafe { there.wide_string(target, room) }
        }
    }
    [fwide] {
        (stream: *mut FILE, mode: c_int) -> c_int, plain stream => |there| there.int(StreamAction::Orient(mode))
    }
    [vfwprintf] {
        (stream: *mut FILE, format: *const wchar_t, arguments: *mut c_void) -> c_int,
        plain stream => |there| there.print_wide(|memory| {
            // SAFETY: the caller's promise.
            unsafe {
                crate::real!(vfwprintf: fn(*mut FILE, *const wchar_t, *mut c_void) -> c_int)(memory, format, arguments)
            }
        })
    }
    [__vfwprintf_chk] {
        (stream: *mut FILE, flag: c_int, format: *const wchar_t, arguments: *mut c_void) -> c_int,
        plain stream => |there| there.print_wide(|memory| {
            // SAFETY: the caller's promise.
            unsafe {
                crate::real!(__vfwprintf_chk: fn(*mut FILE, c_int, *const wchar_t, *mut c_void) -> c_int)(
                    memory, flag, format, arguments,
                )
            }
        })
    }
}
