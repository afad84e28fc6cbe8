//! The texts of messages (`gettext`) and where those for the system's log go (`syslog`): what the program sets holds on all nodes.

use super::calls::on_all;
use super::common;
use super::zone::copy_of;
use libc::{c_char, c_int, c_ulong};
use std::ffi::CStr;
use std::ptr::null;

/// Bytes of the longest name of a domain, and of a folder or an encoding; longer ones hold on the node only.
const NAME: usize = 256;
const PLACE: usize = 4096;

/// A text that ends with a null, unless there is none.
type Text<const N: usize> = Option<[u8; N]>;

/// # Safety
/// Null or a string. `None` if it is too long.
unsafe fn text<const N: usize>(string: *const c_char) -> Option<Text<N>> {
    if string.is_null() {
        return Some(None);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes_with_nul();
    let mut text = [0; N];
    text.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(Some(text))
}

fn pointer<const N: usize>(text: &Text<N>) -> *const c_char {
    text.as_ref().map_or(null(), |text| text.as_ptr().cast())
}

/// A text that a function gives, the C library's own or the program's, for all nodes to read.
fn shared(result: *mut c_char) -> *mut c_char {
    common().map_or(result, |node| copy_of(node, result))
}

/// # Safety
/// As the C library's `textdomain`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn textdomain(domain: *const c_char) -> *mut c_char {
    fn set(domain: *const c_char) -> *mut c_char {
        // SAFETY: null or a string.
        unsafe { crate::real!(textdomain: fn(*const c_char) -> *mut c_char)(domain) }
    }
    // SAFETY: the caller passes null or a string.
    if let (false, Some(domain)) = (domain.is_null(), unsafe { text::<NAME>(domain) }) {
        on_all(domain, |domain| if set(pointer(domain)).is_null() { -1 } else { 0 });
        return shared(set(null()));
    }
    shared(set(domain))
}

/// Defines functions that say where the messages of a domain are, or in which encoding they are wanted.
macro_rules! binding {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name(domain: *const c_char, place: *const c_char) -> *mut c_char {
            fn set(domain: *const c_char, place: *const c_char) -> *mut c_char {
                // SAFETY: nulls or strings.
                unsafe {
                    crate::real!($name: fn(*const c_char, *const c_char) -> *mut c_char)(domain, place)
                }
            }
            if place.is_null() {
                return shared(set(domain, place));
            }
            // SAFETY: the caller passes nulls or strings.
            let texts = unsafe { text::<NAME>(domain).zip(text::<PLACE>(place)) };
            if let Some(texts) = texts {
                on_all(texts, |(domain, place)| {
                    if set(pointer(domain), pointer(place)).is_null() { -1 } else { 0 }
                });
                return shared(set(domain, null()));
            }
            shared(set(domain, place))
        }
    )*};
}

binding! { bindtextdomain bind_textdomain_codeset }

/// Defines functions that translate: what they give is the program's own text, or one of the C library's.
macro_rules! translating {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_char {
            // SAFETY: forwards the caller's arguments.
            shared(unsafe { crate::real!($name: fn($($type),*) -> *mut c_char)($($argument),*) })
        }
    )*};
}

translating! {
    fn gettext(text: *const c_char);
    fn dgettext(domain: *const c_char, text: *const c_char);
    fn dcgettext(domain: *const c_char, text: *const c_char, category: c_int);
    fn ngettext(one: *const c_char, several: *const c_char, count: c_ulong);
    fn dngettext(domain: *const c_char, one: *const c_char, several: *const c_char, count: c_ulong);
    fn dcngettext(domain: *const c_char, one: *const c_char, several: *const c_char, count: c_ulong, category: c_int);
}

/// # Safety
/// As the C library's `openlog`, which keeps the pointer.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn openlog(name: *const c_char, options: c_int, facility: c_int) {
    on_all((name as usize, options, facility), |&mut (name, options, facility)| {
        // SAFETY: null or a string that stays, in memory of all nodes.
        unsafe {
            crate::real!(openlog: fn(*const c_char, c_int, c_int))(name as *const c_char, options, facility);
        };
        0
    });
}

/// # Safety
/// Has no preconditions.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn setlogmask(mask: c_int) -> c_int {
    // SAFETY: touches no memory; 0 only asks.
    let set = |mask| unsafe { crate::real!(setlogmask: fn(c_int) -> c_int)(mask) };
    let before = set(0);
    if mask != 0 {
        on_all(mask, |&mut mask| {
            // SAFETY: touches no memory.
            unsafe { crate::real!(setlogmask: fn(c_int) -> c_int)(mask) };
            0
        });
    }
    before
}
