//! What a locale says (`nl_langinfo`): the C library has it in files that each node maps for itself, so the program gets copies.

use super::zone::copy_of;
use super::{common, memory};
use gondwana_node::Node;
use libc::{CODESET, c_char, c_void, nl_item, wchar_t};
use std::ops::RangeInclusive;

/// What the C library gives for an item.
enum Kind {
    /// Text, or a few small numbers, with a null behind.
    Text,
    /// Text of wide characters.
    WideText,
    /// A number in place of an address, or a table that only the C library understands.
    Other,
}

/// Items of days, months and formats in wide characters.
const WIDE: [RangeInclusive<nl_item>; 4] =
    [0x20034..=0x20064, 0x2006d..=0x2006d, 0x2007b..=0x20086, 0x20093..=0x2009e];

/// Separators as wide characters, years of currencies, eras, the first day of weeks, sizes of paper, the number of the country.
const OTHER: [RangeInclusive<nl_item>; 6] = [
    0x10003..=0x10004,
    0x20032..=0x20033,
    0x20066..=0x20066,
    0x40026..=0x4002c,
    0x70000..=0x70001,
    0x90006..=0x90006,
];

fn kind(item: nl_item) -> Kind {
    let is_among = |kind: &[RangeInclusive<nl_item>]| kind.iter().any(|items| items.contains(&item));
    match item >> 16 {
        libc::LC_CTYPE | libc::LC_COLLATE if item != CODESET => Kind::Other,
        _ if is_among(&OTHER) => Kind::Other,
        _ if is_among(&WIDE) => Kind::WideText,
        _ => Kind::Text,
    }
}

/// What all nodes can read in place of what the C library has given.
///
/// # Safety
/// It is that for the item.
unsafe fn shared(node: &'static Node, item: nl_item, given: *mut c_char) -> *mut c_char {
    match kind(item) {
        Kind::Other => given,
        Kind::Text => copy_of(node, given),
        Kind::WideText => {
            let text = given.cast::<wchar_t>().cast_const();
            // SAFETY: the caller's promise.
            let bytes = unsafe {
                let length = (0..).take_while(|&at| text.add(at).read() != 0).count() + 1;
                std::slice::from_raw_parts(text.cast::<u8>(), length * size_of::<wchar_t>())
            };
            let copy = memory::copy(node, bytes.to_vec(), size_of::<wchar_t>());
            copy.map_or(given, |address| address as *mut c_char)
        }
    }
}

/// Defines functions that ask a locale.
macro_rules! asking {
    ($(fn $name:ident($item:ident: nl_item $(, $locale:ident: $type:ty)?);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(super) unsafe extern "C" fn $name($item: nl_item $(, $locale: $type)?) -> *mut c_char {
            // SAFETY: forwards the caller's arguments.
            unsafe {
                let given = crate::real!($name: fn(nl_item $(, $type)?) -> *mut c_char)($item $(, $locale)?);
                common().map_or(given, |node| shared(node, $item, given))
            }
        }
    )*};
}

asking! {
    fn nl_langinfo(item: nl_item);
    fn nl_langinfo_l(item: nl_item, locale: *mut c_void);
    fn __nl_langinfo_l(item: nl_item, locale: *mut c_void);
}
