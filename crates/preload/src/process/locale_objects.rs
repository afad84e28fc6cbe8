//! Locale objects: `newlocale`, `duplocale` and `freelocale`.
//!
//! The C library of each node makes an object of its own, with tables of its own. What the program gets is the address of a place that is
//! private to each node and alike on all, with a copy of the node's object: functions that take an object read it there. `uselocale` needs
//! nothing more. The tables of characters are copied with it, since C++ locales, which threads share, have pointers to them.

use super::calls::on_others;
use super::locale::{LONGEST, is_without_others};
use super::{common, in_order, memory};
use gondwana_locks::lock;
use gondwana_node::Node;
use libc::{c_char, c_int, c_void};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Mutex;

/// An object of the C library: for each category its data and its name, and three tables of characters: their classes, and the lower and
/// the upper case of each.
#[repr(C)]
#[derive(Clone, Copy)]
struct Contents {
    data: [usize; 13],
    classes: *const u16,
    cases: [*const i32; 2],
    names: [usize; 13],
}

/// Entries of a table, and those in front of the one of character 0: for characters that are passed as negative numbers.
const ENTRIES: usize = 384;
const NEGATIVE: usize = 128;

/// What is at a place.
#[repr(C)]
struct Placed {
    contents: Contents,
    classes: [u16; ENTRIES],
    cases: [[i32; ENTRIES]; 2],
}

/// Bytes of a place.
const PLACE: usize = size_of::<Placed>().next_power_of_two();

/// The object that stands for the locale of the process, as `LC_GLOBAL_LOCALE` has it.
const GLOBAL: usize = usize::MAX;

type Object = *mut c_void;

/// The C library's objects of this node by their places. All nodes have the same places in use.
static OBJECTS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// What is done on each node.
#[derive(Clone, Copy)]
enum Change {
    /// It is found out whether there is such a locale.
    Try,
    /// The object at the place is a new one, or the one of before with other categories.
    Make,
    /// The object at the place is a copy of another one.
    Copy,
    /// The object at the place is given up.
    Free,
}

/// A change, with all that it may need.
#[derive(Clone, Copy)]
struct Request {
    change: Change,
    place: usize,
    /// The object that it begins with; 0 for none.
    from: usize,
    mask: c_int,
    /// A name that ends with a null.
    name: [u8; LONGEST],
}

impl Request {
    fn new(change: Change, place: usize, from: usize) -> Self {
        Self { change, place, from, mask: 0, name: [0; LONGEST] }
    }
}

/// # Safety
/// As the C library's `newlocale`.
unsafe fn real_new(mask: c_int, name: *const c_char, base: Object) -> Object {
    // SAFETY: the caller's promise.
    unsafe { crate::real!(newlocale: fn(c_int, *const c_char, Object) -> Object)(mask, name, base) }
}

/// # Safety
/// As the C library's `duplocale`.
unsafe fn real_copy(object: Object) -> Object {
    // SAFETY: the caller's promise.
    unsafe { crate::real!(duplocale: fn(Object) -> Object)(object) }
}

/// # Safety
/// As the C library's `freelocale`.
unsafe fn real_free(object: Object) {
    // SAFETY: the caller's promise.
    unsafe { crate::real!(freelocale: fn(Object))(object) }
}

/// True if this computer has a locale of a name.
///
/// # Safety
/// The name is a private string.
pub(super) unsafe fn is_known(mask: c_int, name: *const c_char) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let object = real_new(mask, name, null_mut());
        if !object.is_null() {
            real_free(object);
        }
        !object.is_null()
    }
}

/// The C library's object of this node for the program's.
fn real_of(object: usize) -> Object {
    lock(&OBJECTS).get(&object).copied().unwrap_or(object) as Object
}

/// True for an object that all nodes know.
fn is_everywhere(object: usize) -> bool {
    object == 0 || object == GLOBAL || memory::OBJECTS.contains(&object)
}

/// A place that is not in use on any node.
fn free_place() -> Option<usize> {
    let objects = lock(&OBJECTS);
    memory::OBJECTS.step_by(PLACE).find(|place| !objects.contains_key(place))
}

/// Puts an object at a place of this node; 0.
fn put(place: usize, object: Object) -> c_int {
    // SAFETY: there is an object, whose tables are as long as told, and nobody else writes to the place.
    unsafe {
        let mut contents = *object.cast::<Contents>();
        let placed = place as *mut Placed;
        (&raw mut (*placed).classes).copy_from_nonoverlapping(contents.classes.sub(NEGATIVE).cast(), 1);
        contents.classes = (&raw const (*placed).classes).cast::<u16>().add(NEGATIVE);
        for (case, table) in contents.cases.iter_mut().enumerate() {
            let copy = &raw mut (*placed).cases[case];
            copy.copy_from_nonoverlapping(table.sub(NEGATIVE).cast(), 1);
            *table = copy.cast::<i32>().add(NEGATIVE).cast_const();
        }
        (&raw mut (*placed).contents).write(contents);
    }
    let before = lock(&OBJECTS).insert(place, object as usize);
    if let Some(before) = before {
        // SAFETY: `newlocale` gives up what it changes.
        unsafe { real_free(before as Object) };
    }
    0
}

/// Makes a change in this process; 0, or -1 and an error number.
fn change_here(request: &mut Request) -> c_int {
    let Request { change, place, from, mask, name } = request;
    let name = name.as_ptr().cast();
    // SAFETY: the name is a private string, and the objects are this node's own.
    unsafe {
        match change {
            Change::Try => {
                if is_known(*mask, name) {
                    0
                } else {
                    -1
                }
            }
            Change::Make => {
                // A copy: if there is no memory, the one of before is as it was.
                let base = if *from == 0 { null_mut() } else { real_copy(real_of(*from)) };
                let object = real_new(*mask, name, base);
                if object.is_null() {
                    if !base.is_null() {
                        real_free(base);
                    }
                    return -1;
                }
                put(*place, object)
            }
            Change::Copy => {
                let object = real_copy(real_of(*from));
                if object.is_null() { -1 } else { put(*place, object) }
            }
            Change::Free => {
                let object = lock(&OBJECTS).remove(place);
                if let Some(object) = object {
                    real_free(object as Object);
                }
                0
            }
        }
    }
}

/// Makes a change on all nodes. The place, or null with an error number.
fn change(node: &'static Node, mut request: Request) -> Object {
    if change_here(&mut request) != 0 {
        return null_mut();
    }
    if let Err((at, error)) = on_others(node, request, change_here) {
        crate::report::fatal(&format!(
            "a locale object: node {at}: {}",
            std::io::Error::from_raw_os_error(error)
        ));
    }
    request.place as Object
}

fn make(node: &'static Node, mask: c_int, name: &[u8], base: usize) -> Object {
    let place = if base == 0 { free_place() } else { Some(base) };
    let Some(place) = place else {
        node.refuse("newlocale(): the program has too many locale objects");
        crate::errno::set(libc::ENOMEM);
        return null_mut();
    };
    let mut request = Request { mask, ..Request::new(Change::Try, place, base) };
    let Some(room) = request.name.get_mut(..name.len()) else {
        crate::errno::set(libc::ENOENT);
        return null_mut();
    };
    room.copy_from_slice(name);
    if change_here(&mut request) != 0 {
        return null_mut();
    }
    if let Err((at, error)) = on_others(node, request, change_here) {
        node.refuse(&format!(
            "newlocale() of {}: node {at} has no such locale, so no node has it; install it on all computers of the run",
            String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name))
        ));
        crate::errno::set(error);
        return null_mut();
    }
    change(node, Request { change: Change::Make, ..request })
}

/// # Safety
/// As the C library's `newlocale`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn newlocale(mask: c_int, name: *const c_char, base: Object) -> Object {
    let is_told = !name.is_null() && base as usize != GLOBAL && is_everywhere(base as usize);
    let node = common().filter(|_| is_told && !is_without_others());
    // SAFETY: the caller passes null or a string.
    let text = node.map(|node| (node, unsafe { CStr::from_ptr(name) }.to_bytes_with_nul().to_vec()));
    match text {
        // The one that all nodes have anyway is in the C library itself.
        Some((node, text)) if !(base.is_null() && text == b"C\0") => {
            in_order(node, || make(node, mask, &text, base as usize))
        }
        // SAFETY: forwards the caller's arguments.
        _ => unsafe { real_new(mask, name, base) },
    }
}

/// # Safety
/// As the C library's `duplocale`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn duplocale(object: Object) -> Object {
    let from = object as usize;
    let Some(node) = common().filter(|_| from != 0 && is_everywhere(from) && !is_without_others()) else {
        // SAFETY: forwards the caller's argument.
        return unsafe { real_copy(real_of(from)) };
    };
    in_order(node, || match free_place() {
        Some(place) => change(node, Request::new(Change::Copy, place, from)),
        None => {
            node.refuse("duplocale(): the program has too many locale objects");
            crate::errno::set(libc::ENOMEM);
            null_mut()
        }
    })
}

/// # Safety
/// As the C library's `freelocale`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn freelocale(object: Object) {
    let place = object as usize;
    match common().filter(|_| memory::OBJECTS.contains(&place)) {
        Some(node) => {
            in_order(node, || change(node, Request::new(Change::Free, place, 0)));
        }
        // SAFETY: forwards the caller's argument.
        None => unsafe { real_free(object) },
    }
}
