//! What shows where threads run: a format, such as `thread %n of %N on %A`, in which fields stand for what is true of the calling thread.
//! `%A` are the processors of its node, with numbers that are unique in the run.

use super::context::{self, Context};
use super::places;
use super::query;
use super::settings;
use super::task_messages::FORMAT;
use crate::numbers::int;
use crate::report;
use gondwana_locks::lock;
use gondwana_node::{Node, Thread};
use gondwana_page::to_usize;
use libc::{c_char, c_int};
use std::cell::Cell;
use std::ffi::CStr;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Mutex;

/// What libgomp shows, and what clang's library does.
pub(super) fn usual(by_clang: bool) -> &'static str {
    if by_clang {
        "OMP: pid %P tid %i thread %n bound to OS proc set {%A}"
    } else {
        "level %L thread %i affinity %A"
    }
}

/// The format of the whole run; `None` for that of the environment.
static FORMAT_SET: Mutex<Option<String>> = Mutex::new(None);

/// Long names of fields.
const NAMES: [(&str, char); 10] = [
    ("team_num", 't'),
    ("num_teams", 'T'),
    ("nesting_level", 'L'),
    ("thread_num", 'n'),
    ("num_threads", 'N'),
    ("ancestor_tnum", 'a'),
    ("host", 'H'),
    ("process_id", 'P'),
    ("native_thread_id", 'i'),
    ("thread_affinity", 'A'),
];

/// A field in a format.
struct Field {
    kind: char,
    width: usize,
    /// It ends at its width rather than beginning there, and zeros stand in front of numbers.
    right: bool,
    zeros: bool,
}

/// Reads a field behind its percent sign; `None` for what is no field. Returns what follows.
fn field(text: &str) -> Option<(Field, &str)> {
    let zeros = text.starts_with("0.");
    let rest = text.strip_prefix('0').filter(|_| zeros).unwrap_or(text);
    let right = rest.starts_with('.');
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (width, rest) = rest.split_at(digits);
    let (kind, rest) = match rest.strip_prefix('{') {
        Some(rest) => {
            let (name, rest) = rest.split_once('}')?;
            (NAMES.iter().find(|(other, _)| *other == name)?.1, rest)
        }
        None => {
            let kind = rest.chars().next()?;
            NAMES.iter().find(|(_, other)| *other == kind)?;
            (kind, &rest[kind.len_utf8()..])
        }
    };
    Some((Field { kind, width: width.parse().unwrap_or(0), right, zeros }, rest))
}

/// What follows a field that is none, behind its percent sign.
fn behind_unknown(text: &str) -> &str {
    let rest = text.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    match rest.strip_prefix('{') {
        Some(name) => name.split_once('}').map_or("", |(_, rest)| rest),
        None => rest.char_indices().nth(1).map_or("", |(next, _)| &rest[next..]),
    }
}

/// Replaces the fields of a format by what `value` says of them. What is no field ends the run, but for clang's library.
fn expand(format: &str, by_clang: bool, value: &dyn Fn(char) -> String) -> String {
    let (mut text, mut rest) = (String::new(), format);
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
        } else if let Some((Field { kind, width, right, zeros }, after)) = field(after) {
            let value = value(kind);
            // Zeros stand between the digits and what is in front of them.
            let sign = ["-", "0x"].into_iter().find(|sign| value.starts_with(sign)).unwrap_or("");
            let digits = &value[sign.len()..];
            let numeric = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && !"HA".contains(kind);
            let left = width.saturating_sub(sign.len());
            // Writing to a string does not fail.
            let _ = match (right, zeros && numeric) {
                (true, true) => write!(text, "{sign}{digits:0>left$}"),
                (true, false) => write!(text, "{value:>width$}"),
                _ => write!(text, "{value:<width$}"),
            };
            rest = after;
        } else if let Some(after) = by_clang.then(|| behind_unknown(after)) {
            text.push_str("undefined");
            rest = after;
        } else {
            report::fatal(&format!("OpenMP: the affinity format has an unknown field at %{after}"));
        }
    }
    text + rest
}

/// Numbers as a list of one range.
pub(super) fn list(numbers: &Range<u32>) -> String {
    match numbers.len() {
        0 | 1 => numbers.start.to_string(),
        _ => format!("{}-{}", numbers.start, numbers.end - 1),
    }
}

/// What is true of the calling thread.
fn value(kind: char) -> String {
    let Context { league, number, shape, .. } = context::get();
    match kind {
        't' => league.team.to_string(),
        'T' => league.teams.to_string(),
        'L' => shape.level.to_string(),
        'n' => number.to_string(),
        'N' => shape.threads.to_string(),
        'a' => query::ancestor(int(shape.level) - 1).to_string(),
        'H' => host(),
        'P' => std::process::id().to_string(),
        'i' => format!("{:#x}", Node::current().map_or(0, |node| Thread::current(node).id)),
        _ => list(&places::here()),
    }
}

fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the name goes to a private array, which is larger.
    unsafe {
        crate::real!(gethostname: fn(*mut c_char, usize) -> c_int)(name.as_mut_ptr().cast(), name.len() - 1)
    };
    CStr::from_bytes_until_nul(&name).map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

/// The format that is in force.
pub(super) fn present() -> String {
    lock(&FORMAT_SET).clone().unwrap_or_else(|| settings::get().affinity_format.clone())
}

fn described(format: &str) -> String {
    let present = if format.is_empty() { present() } else { format.to_owned() };
    expand(&present, settings::get().by_clang, &value)
}

thread_local! {
    /// Where the calling thread was when its affinity was shown last: number, threads and level.
    static SHOWN: Cell<Option<(u32, u32, u32)>> = const { Cell::new(None) };
}

/// The calling thread has entered a region: it shows its affinity if it is to do so and its place has changed.
pub(super) fn show() {
    if !settings::get().display_affinity {
        return;
    }
    let Context { number, shape, .. } = context::get();
    let now = Some((number, shape.threads, shape.level));
    if SHOWN.replace(now) != now {
        report::plain(&described(""));
    }
}

/// Sets the format for all nodes.
fn set(format: &str) {
    *lock(&FORMAT_SET) = Some(format.to_owned());
    if let Some(node) = Node::current() {
        let words = [FORMAT].into_iter().chain(format.bytes().map(u64::from));
        for other in node.others() {
            node.tell_and_wait(other, words.clone().collect());
        }
    }
}

/// A thread of another node has set the format.
pub(super) fn heard(words: &[u64]) {
    let bytes = words.iter().map(|word| to_usize(*word).to_le_bytes()[0]).collect();
    *lock(&FORMAT_SET) = String::from_utf8(bytes).ok();
}

/// Copies a text, of which the end is lost where it is too long. Returns its length.
///
/// # Safety
/// There is room for `size` bytes.
unsafe fn give(text: &str, to: *mut c_char, size: usize) -> usize {
    let length = text.len().min(size.saturating_sub(1));
    if size > 0 && !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
            to.add(length).write(0);
        }
    }
    text.len()
}

/// # Safety
/// It is null or a string of C.
unsafe fn text(format: *const c_char) -> String {
    match format.is_null() {
        true => String::new(),
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(format) }.to_string_lossy().into_owned(),
    }
}

/// A string of Fortran, with blanks at its end.
///
/// # Safety
/// It has so many bytes.
unsafe fn fortran_text(format: *const c_char, length: usize) -> String {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(format.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).trim_end_matches(' ').to_owned()
}

/// Copies a text for Fortran, with blanks behind it. Returns its length.
///
/// # Safety
/// There is room for `size` bytes.
unsafe fn give_fortran(text: &str, to: *mut c_char, size: usize) -> c_int {
    let length = text.len().min(size);
    // SAFETY: the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
        to.add(length).write_bytes(b' ', size - length);
    }
    int(text.len())
}

/// Defines functions that OpenMP describes.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        /// # Safety
        /// As OpenMP says.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: the caller passes strings and places as OpenMP says.
            unsafe { $body }
        }
    )*};
}

exported! {
    omp_set_affinity_format(format: *const c_char) = set(&text(format));
    omp_set_affinity_format_(format: *const c_char, length: usize) = set(&fortran_text(format, length));
    omp_get_affinity_format(to: *mut c_char, size: usize) -> usize = give(&present(), to, size);
    omp_get_affinity_format_(to: *mut c_char, size: usize) -> c_int = give_fortran(&present(), to, size);
    omp_display_affinity(format: *const c_char) = report::plain(&described(&text(format)));
    omp_display_affinity_(format: *const c_char, length: usize) =
        report::plain(&described(&fortran_text(format, length)));
    omp_capture_affinity(to: *mut c_char, size: usize, format: *const c_char) -> usize =
        give(&described(&text(format)), to, size);
    omp_capture_affinity_(to: *mut c_char, format: *const c_char, size: usize, length: usize) -> c_int =
        give_fortran(&described(&fortran_text(format, length)), to, size);

    // What clang's header has the names for C mean.
    ompc_set_affinity_format(format: *const c_char) = omp_set_affinity_format(format);
    ompc_get_affinity_format(to: *mut c_char, size: usize) -> usize = omp_get_affinity_format(to, size);
    ompc_display_affinity(format: *const c_char) = omp_display_affinity(format);
    ompc_capture_affinity(to: *mut c_char, size: usize, format: *const c_char) -> usize =
        omp_capture_affinity(to, size, format);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_and_padded() {
        let value = |kind: char| if kind == 'A' { "2-3".to_owned() } else { "7".to_owned() };
        let shown = |format| expand(format, false, &value);
        assert_eq!(shown("thread %n of %N: %{thread_affinity}%%"), "thread 7 of 7: 2-3%");
        assert_eq!(shown("[%4n|%.4n|%0.4n|%0.5A|%5A]"), "[7   |   7|0007|  2-3|2-3  ]");
        let negative = |kind: char| if kind == 'a' { "-1".to_owned() } else { "0x1f".to_owned() };
        assert_eq!(expand("%0.4a|%.4a|%0.8i", false, &negative), "-001|  -1|0x00001f");
        assert!(field("x").is_none() && field("{nothing}").is_none() && field("12").is_none());
        assert_eq!(expand("%{nothing}, %7x.", true, &value), "undefined, undefined.");
    }

    #[test]
    fn texts_are_cut_to_their_room() {
        let mut room = [b'x'.cast_signed(); 6];
        // SAFETY: the sizes are not larger than the room.
        unsafe {
            assert_eq!(give("affinity", room.as_mut_ptr(), 4), 8);
            assert_eq!(room.map(|byte| byte.cast_unsigned()), *b"aff\0xx");
            assert_eq!(give_fortran("ab", room.as_mut_ptr(), 5), 2);
            assert_eq!(room.map(|byte| byte.cast_unsigned()), *b"ab   x");
        }
    }
}
