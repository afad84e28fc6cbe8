//! The time zone, and the texts that name it.
//!
//! The C library keeps the names of zones in memory of its own, which no other node can read: they are replaced by copies
//! that all can read wherever the program may pass a pointer to one on. If the program has copies of the C library's
//! variables (`tzname`, `timezone`, `daylight`), which are shared memory, the C library of each node uses its own, and what
//! they say is copied: two nodes must not write to one.

use super::calls::on_others;
use super::{common, in_order, memory, static_results};
use gondwana_elf::loaded::{self, tag};
use gondwana_locks::lock;
use gondwana_node::Node;
use gondwana_page::to_usize;
use libc::{Elf64_Sym, c_char, c_int, c_long, size_t, time_t, tm, wchar_t};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" {
    static mut tzname: [*mut c_char; 2];
    static mut timezone: c_long;
    static mut daylight: c_int;
}

/// The addresses of the C library's own variables, 0 where the program has no copy of one.
static OWN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Their names.
const NAMES: [&[u8]; 3] = [b"__tzname", b"__timezone", b"__daylight"];

/// A relocation that stores the address of a variable.
const GLOBAL: u64 = 6;

/// Has the C library use variables of its own where the program has copies. No other thread runs yet.
pub(crate) fn use_own_variables() {
    // SAFETY: nothing is unloaded during the start.
    let objects = unsafe { loaded::select(|object| object.file_name().starts_with(b"libc.so")) };
    let Some(library) = objects.first() else { return };
    let (Some(symbols), Some(texts)) = (library.value(tag::SYMTAB), library.value(tag::STRTAB)) else {
        return;
    };
    for entry in
        library.relocations(tag::RELA, tag::RELASZ).filter(|entry| entry.r_info & 0xffff_ffff == GLOBAL)
    {
        // SAFETY: the loader has mapped both tables, and the entry names a symbol in them.
        let (symbol, name) = unsafe {
            let symbol = &*(symbols as *const Elf64_Sym).add((entry.r_info >> 32) as usize);
            (symbol, CStr::from_ptr((texts + symbol.st_name as usize) as *const c_char).to_bytes())
        };
        let Some(index) = NAMES.iter().position(|&wanted| wanted == name) else { continue };
        let place = library.base().wrapping_add(to_usize(entry.r_offset)) as *mut u64;
        let own = library.base().wrapping_add(to_usize(symbol.st_value));
        // SAFETY: the loader has mapped the place and written to it; no other thread runs.
        unsafe {
            if to_usize(place.read()) != own {
                library.overwrite(place, own as u64);
                OWN[index].store(own, Ordering::Relaxed);
            }
        }
    }
}

/// The value of `TZ` by which this process has set its zone last, once it has.
static LAST: Mutex<Option<Option<Vec<u8>>>> = Mutex::new(None);

fn wanted() -> Option<Vec<u8>> {
    // SAFETY: the C library returns null or a string.
    unsafe {
        let zone = libc::getenv(c"TZ".as_ptr());
        (!zone.is_null()).then(|| CStr::from_ptr(zone).to_bytes().to_vec())
    }
}

/// Sets the zone of this process; 0.
fn set_here(_: &mut ()) -> c_int {
    *lock(&LAST) = Some(wanted());
    // SAFETY: reads the environment, which the C library may do at any time.
    unsafe { crate::real!(tzset: fn())() };
    0
}

/// # Safety
/// As the C library's `tzset`, which sets the zone of all threads.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tzset() {
    let news = *lock(&LAST) != Some(wanted());
    set_here(&mut ());
    let Some(node) = common() else { return };
    if news {
        // The change itself cannot fail, and a node without room for a thread looks at the environment by itself.
        let _ = in_order(node, || on_others(node, (), set_here));
    }
    pass_on(node);
}

/// A text that all nodes can read: itself, or a copy. Where there is no room for that, itself.
pub(super) fn copy_of(node: &'static Node, text: *const c_char) -> *mut c_char {
    if text.is_null() || memory::is_inside(text as usize) || node.is_shared(text as usize) {
        return text.cast_mut();
    }
    // SAFETY: the C library's string.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes_with_nul().to_vec();
    memory::copy(node, bytes, 1).map_or(text.cast_mut(), |address| address as *mut c_char)
}

/// Copies what the C library's own variables say to those of the program.
fn pass_on(node: &'static Node) {
    let [names, west, summer] = OWN.each_ref().map(|own| own.load(Ordering::Relaxed));
    // SAFETY: the C library's variables, and the program's of the same names and types.
    unsafe {
        if names != 0 {
            let names = *(names as *const [*mut c_char; 2]);
            update(&raw mut tzname, names.map(|name| copy_of(node, name)));
        }
        if west != 0 {
            update(&raw mut timezone, *(west as *const c_long));
        }
        if summer != 0 {
            update(&raw mut daylight, *(summer as *const c_int));
        }
    }
}

/// Writes a value that is not there already: a page that is only read stays on all nodes.
unsafe fn update<T: PartialEq>(variable: *mut T, value: T) {
    // SAFETY: the caller passes a valid variable.
    unsafe {
        if *variable != value {
            variable.write(value);
        }
    }
}

/// # Safety
/// As the C library's `localtime`. What it gives is in memory that all nodes can read.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn localtime(time: *const time_t) -> *mut tm {
    // SAFETY: forwards the caller's argument; the result is null or the C library's, which this function may change.
    unsafe {
        let result = crate::real!(localtime: fn(*const time_t) -> *mut tm)(time);
        let Some(node) = common().filter(|_| !result.is_null()) else { return result };
        (*result).tm_zone = copy_of(node, (*result).tm_zone);
        pass_on(node);
        static_results::value(node, &static_results::TIME, result)
    }
}

/// # Safety
/// As the C library's `ctime`. What it gives is in memory that all nodes can read.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ctime(time: *const time_t) -> *mut c_char {
    // SAFETY: forwards the caller's argument.
    unsafe {
        let result = crate::real!(ctime: fn(*const time_t) -> *mut c_char)(time);
        let Some(node) = common() else { return result };
        pass_on(node);
        static_results::text(node, &static_results::DATE, result)
    }
}

/// Defines conversions of times. All set the zone of this process as `tzset` does, and with it the names; some fill in the name
/// of a zone, at the result or at an argument.
macro_rules! naming_a_zone {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, of $broken_down:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: forwards the caller's arguments; what is filled in is there if the call has not failed.
            unsafe {
                let result = crate::real!($name: fn($($type),*) -> $result)($($argument),*);
                if let Some(node) = common() {
                    let before = crate::errno::get();
                    let broken_down: *mut tm = $broken_down(result);
                    if !broken_down.is_null() {
                        (*broken_down).tm_zone = copy_of(node, (*broken_down).tm_zone);
                    }
                    pass_on(node);
                    crate::errno::set(before);
                }
                result
            }
        }
    )*};
}

naming_a_zone! {
    fn localtime_r(time: *const time_t, result: *mut tm) -> *mut tm, of |result| result;
    fn mktime(broken_down: *mut tm) -> time_t, of |_| broken_down;
    fn timelocal(broken_down: *mut tm) -> time_t, of |_| broken_down;
    fn strftime(text: *mut c_char, most: size_t, format: *const c_char, broken_down: *const tm) -> size_t, of |_| null_mut();
    fn wcsftime(text: *mut wchar_t, most: size_t, format: *const wchar_t, broken_down: *const tm) -> size_t, of |_| null_mut();
    fn ctime_r(time: *const time_t, text: *mut c_char) -> *mut c_char, of |_| null_mut();
}
