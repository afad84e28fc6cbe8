//! Results that the C library keeps in memory of its own, where threads of other nodes could not read them: the program gets copies.
//!
//! As natively, the next call of a function, on the same node, writes over what it gave before. Texts that never change have a
//! copy each.

use super::zone::copy_of;
use super::{common, next_token};
use crate::private_stack::uninterrupted;
use gondwana_locks::lock;
use gondwana_node::{Caller, Node};
use libc::{c_char, c_int, gid_t, group, lconv, passwd, time_t, tm, uid_t};
use std::ffi::CStr;
use std::sync::Mutex;

/// A block of shared memory in which the results of some functions are: its address, and its length in bytes.
pub(super) struct Place(Mutex<(usize, usize)>);

impl Place {
    const fn new() -> Self {
        Self(Mutex::new((0, 0)))
    }

    /// The address, with room for that many bytes at least. `None` if there is no memory.
    fn with(&self, node: &'static Node, bytes: usize) -> Option<usize> {
        let before = uninterrupted(|| *lock(&self.0));
        if before.1 >= bytes {
            return Some(before.0);
        }
        // Whoever has the address of the old block may still read it.
        let address = node.allocate(bytes, 16, Caller::NONE)?;
        uninterrupted(|| *lock(&self.0) = (address, bytes));
        Some(address)
    }
}

/// Where `localtime` and `gmtime` have their result.
pub(super) static TIME: Place = Place::new();

/// Where `asctime` and `ctime` have theirs.
pub(super) static DATE: Place = Place::new();

static USER: Place = Place::new();
static GROUP: Place = Place::new();
static CONVENTIONS: Place = Place::new();

/// Copies a result to its place.
///
/// # Safety
/// It is null or valid.
pub(super) unsafe fn value<T: Copy>(node: &'static Node, place: &Place, result: *mut T) -> *mut T {
    if result.is_null() {
        return result;
    }
    let Some(address) = place.with(node, size_of::<T>()) else { return result };
    // SAFETY: the caller's promise; the place is this long, and aligned for all that results consist of.
    unsafe { (address as *mut T).write(*result) };
    address as *mut T
}

/// The same for a text.
///
/// # Safety
/// It is null or a string.
pub(super) unsafe fn text(node: &'static Node, place: &Place, result: *mut c_char) -> *mut c_char {
    if result.is_null() {
        return result;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(result) }.to_bytes_with_nul();
    let Some(address) = place.with(node, bytes.len().max(LONGEST_DATE)) else { return result };
    // SAFETY: the place is this long.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    address as *mut c_char
}

/// No date is longer.
const LONGEST_DATE: usize = 128;

/// Copies a result to its place, and behind it the texts to which it points.
///
/// # Safety
/// The result is valid; `texts` gives the places of its texts, which are null or strings.
unsafe fn with_texts<T: Copy>(
    node: &'static Node,
    place: &Place,
    result: *mut T,
    texts: impl FnOnce(&mut T) -> Vec<*mut *mut c_char>,
) -> *mut T {
    // SAFETY: the caller's promise.
    let mut copy = Box::new(unsafe { *result });
    let texts = texts(&mut copy);
    // SAFETY: as above.
    let bytes: Vec<_> = texts
        .iter()
        .map(|&text| unsafe {
            if (*text).is_null() { &[] } else { CStr::from_ptr(*text).to_bytes_with_nul() }
        })
        .collect();
    let room = size_of::<T>() + bytes.iter().map(|bytes| bytes.len()).sum::<usize>();
    let Some(address) = place.with(node, room.next_power_of_two()) else { return result };
    let mut at = address + size_of::<T>();
    for (text, bytes) in texts.into_iter().zip(bytes) {
        // SAFETY: there is room for the text, and the pointer is one of the copy's.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len());
            if !bytes.is_empty() {
                *text = at as *mut c_char;
            }
        }
        at += bytes.len();
    }
    // SAFETY: the place is this long.
    unsafe { (address as *mut T).write(*copy) };
    address as *mut T
}

/// # Safety
/// Null or a valid entry.
unsafe fn user(node: &'static Node, result: *mut passwd) -> *mut passwd {
    if result.is_null() {
        return result;
    }
    // SAFETY: the caller's promise.
    unsafe {
        with_texts(node, &USER, result, |user| {
            vec![
                &raw mut user.pw_name,
                &raw mut user.pw_passwd,
                &raw mut user.pw_gecos,
                &raw mut user.pw_dir,
                &raw mut user.pw_shell,
            ]
        })
    }
}

/// A group with its list of members, which ends with a null.
#[repr(C)]
#[derive(Clone, Copy)]
struct Group {
    group: group,
    members: [*mut c_char; MOST_MEMBERS + 1],
}

/// Groups with more members are given as the C library does.
const MOST_MEMBERS: usize = 255;

/// # Safety
/// Null or a valid entry.
unsafe fn group_of(node: &'static Node, result: *mut group) -> *mut group {
    if result.is_null() {
        return result;
    }
    let mut whole = Box::new(Group {
        // SAFETY: the caller's promise.
        group: unsafe { *result },
        members: [std::ptr::null_mut(); MOST_MEMBERS + 1],
    });
    let mut count = 0;
    // SAFETY: the list ends with a null.
    while let member = unsafe { *whole.group.gr_mem.add(count) }
        && !member.is_null()
    {
        if count == MOST_MEMBERS {
            return result;
        }
        whole.members[count] = member;
        count += 1;
    }
    // SAFETY: the members are those of the list, and the group is valid.
    let copy = unsafe {
        with_texts(node, &GROUP, &raw mut *whole, |whole| {
            let members = whole.members[..count].iter_mut().map(|member| &raw mut *member);
            [&raw mut whole.group.gr_name, &raw mut whole.group.gr_passwd]
                .into_iter()
                .chain(members)
                .collect()
        })
    };
    if copy == &raw mut *whole {
        return result;
    }
    // SAFETY: the copy is in the place of groups, and so is its list.
    unsafe {
        (*copy).group.gr_mem = (&raw mut (*copy).members).cast();
        &raw mut (*copy).group
    }
}

/// # Safety
/// Null or what `localeconv` gives.
unsafe fn conventions(node: &'static Node, result: *mut lconv) -> *mut lconv {
    // SAFETY: the caller's promise; the structure begins with its texts.
    unsafe {
        let copy = value(node, &CONVENTIONS, result);
        if copy != result {
            for index in 0..TEXTS_OF_CONVENTIONS {
                let text = copy.cast::<*mut c_char>().add(index);
                *text = copy_of(node, *text);
            }
        }
        copy
    }
}

/// How many texts the conventions begin with, from `decimal_point` to `negative_sign`.
const TEXTS_OF_CONVENTIONS: usize = 10;

/// Defines functions whose result becomes one that all nodes can read.
macro_rules! readable_everywhere {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $copy:expr;)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: forwards the caller's arguments; the result is null or valid.
            unsafe {
                let result = crate::real!($name: fn($($type),*) -> $result)($($argument),*);
                let Some(node) = common() else { return result };
                let before = crate::errno::get();
                let copy = $copy(node, result);
                crate::errno::set(before);
                copy
            }
        }
    )*};
}

readable_everywhere! {
    fn gmtime(time: *const time_t) -> *mut tm, |node, result| value(node, &TIME, result);
    fn asctime(broken_down: *const tm) -> *mut c_char, |node, result| text(node, &DATE, result);
    fn strerror(number: c_int) -> *mut c_char, copy_of;
    fn strsignal(number: c_int) -> *mut c_char, copy_of;
    fn localeconv() -> *mut lconv, conventions;
    fn getpwnam(name: *const c_char) -> *mut passwd, user;
    fn getpwuid(number: uid_t) -> *mut passwd, user;
    fn getpwent() -> *mut passwd, user;
    fn getgrnam(name: *const c_char) -> *mut group, group_of;
    fn getgrgid(number: gid_t) -> *mut group, group_of;
    fn getgrent() -> *mut group, group_of;
}

/// # Safety
/// As the C library's `strtok`: what one thread has begun, one of another node may go on with.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn strtok(string: *mut c_char, ends: *const c_char) -> *mut c_char {
    // SAFETY: forwards the caller's arguments, with a word that threads of a right program use one after the other.
    unsafe {
        match common() {
            Some(node) => libc::strtok_r(string, ends, next_token(node)),
            None => crate::real!(strtok: fn(*mut c_char, *const c_char) -> *mut c_char)(string, ends),
        }
    }
}
