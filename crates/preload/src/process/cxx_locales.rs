//! C++ locales: the one that new streams get (`std::locale::global`), the numbers of facets, and what a locale remembers of its own.
//!
//! The C++ library keeps their books in data of its own, of which each node has a copy. A global locale with a name each node makes for itself:
//! what it consists of is partly the C library's. One that the program has put together has no name; it is in shared memory, and used as it is.

use super::calls::on_first;
use super::{MUTEX_BYTES, common, holding, locale};
use crate::io::Buffer;
use crate::io::descriptors::There;
use gondwana_node::{MutexKind, Node, Thread};
use gondwana_page::PAGE_SIZE;
use libc::{LC_ALL_MASK, c_char, c_int};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

/// A `std::locale`: a pointer to what it is, which begins with the number of its users.
#[repr(C)]
struct Locale(*const AtomicI32);

/// A `std::string`.
#[repr(C)]
struct Text {
    start: *const u8,
    length: usize,
    _room: [usize; 2],
}

/// Users that a locale of all nodes has besides the counted ones: nodes may count without knowing of each other, and it must stay.
const MANY: i32 = 1 << 29;

/// What a locale without a name is called.
const UNNAMED: &[u8] = b"*";

/// `std::locale::global`: gives the former locale.
///
/// # Safety
/// As the C++ library's function, called by its convention.
#[unsafe(export_name = "_ZNSt6locale6globalERKS_")]
unsafe extern "C-unwind" fn set_global(former: *mut Locale, wanted: *const Locale) -> *mut Locale {
    // SAFETY: forwards the caller's arguments.
    unsafe {
        let result = real(former, wanted);
        if let Some(node) = common().filter(|_| !Thread::inside_runtime()) {
            tell(node, &*wanted);
        }
        result
    }
}

/// # Safety
/// As for [`set_global`].
unsafe fn real(former: *mut Locale, wanted: *const Locale) -> *mut Locale {
    let real = crate::real!(_ZNSt6locale6globalERKS_: fn(*mut Locale, *const Locale) -> *mut Locale);
    // SAFETY: the caller's promise.
    unsafe { real(former, wanted) }
}

/// Has all other nodes follow.
///
/// # Safety
/// The locale is the global one of this node.
unsafe fn tell(node: &'static Node, wanted: &Locale) {
    // SAFETY: the caller's promise.
    let name = unsafe { name_of(wanted) };
    let implementation = wanted.0 as usize;
    if name.as_bytes() == UNNAMED {
        if !node.is_shared(implementation) {
            node.refuse(
                "std::locale::global() is for the threads of this node only: the locale is in private memory",
            );
            return;
        }
        // SAFETY: as long as the locale is global, it is there.
        unsafe { &*wanted.0 }.fetch_add(MANY, Ordering::Relaxed);
    }
    // Other nodes count themselves among its users.
    node.release_and_wait();
    let bytes = name.as_bytes_with_nul();
    let words = [wanted.0 as i64, bytes.as_ptr() as i64];
    for owner in (0..node.nodes()).filter(|&owner| owner != node.id().index()) {
        let failed: c_int = There { node, owner }.call(
            "gondwana_follow_locale",
            &words,
            &[Buffer::read(bytes.as_ptr(), bytes.len())],
        );
        if failed != 0 {
            node.refuse(&format!(
                "std::locale::global(): node {owner} has no locale {}; install it on all computers of the run",
                name.to_string_lossy()
            ));
        }
    }
    node.acquire(None);
}

/// # Safety
/// There is such a locale.
unsafe fn name_of(locale: &Locale) -> CString {
    let mut text = Box::new(MaybeUninit::<Text>::uninit());
    // SAFETY: the C++ library makes a string in the place, which has its bytes until it is destroyed; this one never is.
    unsafe {
        let name = crate::real!(_ZNKSt6locale4nameB5cxx11Ev: fn(*mut Text, *const Locale) -> *mut Text);
        name(text.as_mut_ptr(), locale);
        let text = text.assume_init_ref();
        CString::new(std::slice::from_raw_parts(text.start, text.length)).unwrap_or_default()
    }
}

/// For another node, by a thread that makes calls: has the same global locale from now on. 0, or -1 if there is none of this name here.
///
/// # Safety
/// The name is a private string.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn gondwana_follow_locale(implementation: usize, name: *const c_char) -> c_int {
    let node = Node::current().expect("makes calls for other nodes");
    node.acquire(None);
    let mut former = Box::new(MaybeUninit::<Locale>::uninit());
    // SAFETY: the caller's promise. What is made here is never destroyed.
    unsafe {
        let bytes = std::ffi::CStr::from_ptr(name).to_bytes();
        let mut wanted = Box::new(Locale(implementation as *const AtomicI32));
        if bytes != UNNAMED {
            if !is_known(bytes) {
                return -1;
            }
            let make = crate::real!(_ZNSt6localeC1EPKc: fn(*mut Locale, *const c_char));
            make(&raw mut *wanted, name);
        }
        locale::without_others(|| real(former.as_mut_ptr(), &raw const *wanted));
    }
    node.release_and_wait();
    0
}

/// `std::locale::_Impl::_M_install_cache`: a locale remembers what was found out about its facets, unless it does so by now. The C++ library has
/// a mutex for that, which is each node's own, while locales are shared.
///
/// # Safety
/// As the C++ library's function.
#[unsafe(export_name = "_ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm")]
unsafe extern "C-unwind" fn install_cache(implementation: usize, cache: usize, index: usize) {
    let install = || {
        let real = crate::real!(_ZNSt6locale5_Impl16_M_install_cacheEPKNS_5facetEm: fn(usize, usize, usize));
        // SAFETY: forwards the caller's arguments.
        unsafe { real(implementation, cache, index) }
    };
    let shares = |node: &&Node| node.is_shared(implementation) && !Thread::inside_runtime();
    match common().filter(shares) {
        Some(node) => {
            holding(node, node.library_page() + PAGE_SIZE - MUTEX_BYTES, MutexKind::Normal, install)
        }
        None => install(),
    }
}

/// `std::locale::id::_M_id`: the number of a kind of facets. Those of the program get theirs of node 0's counter, when they are first used.
///
/// # Safety
/// As the C++ library's function.
#[unsafe(export_name = "_ZNKSt6locale2id5_M_idEv")]
unsafe extern "C-unwind" fn number_of(id: *const usize) -> usize {
    /// # Safety
    /// As the C++ library's function.
    unsafe fn real(id: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { crate::real!(_ZNKSt6locale2id5_M_idEv: fn(*const usize) -> usize)(id as *const usize) }
    }
    let is_programs = common().is_some_and(|node| node.is_shared(id as usize));
    // SAFETY: the object is a word, which is 0 until it has a number.
    if is_programs && unsafe { id.read() } == 0 {
        on_first(id as usize, |&mut id| {
            // SAFETY: the program's data is at the same address on all nodes.
            unsafe { real(id) };
            0
        });
    }
    // SAFETY: the caller's promise.
    unsafe { real(id as usize) }
}

/// True if this computer has a locale of a name, or those that it names for each category. The C++ library would throw an exception.
fn is_known(name: &[u8]) -> bool {
    let mut parts = name.split(|&byte| byte == b';').map(|part| part.rsplit(|&byte| byte == b'=').next());
    parts.all(|part| {
        let Some(name) = part.and_then(|part| CString::new(part).ok()) else { return false };
        // SAFETY: a private string.
        unsafe {
            let made = crate::real!(newlocale: fn(c_int, *const c_char, libc::locale_t) -> libc::locale_t)(
                LC_ALL_MASK,
                name.as_ptr(),
                std::ptr::null_mut(),
            );
            if made.is_null() {
                return false;
            }
            crate::real!(freelocale: fn(libc::locale_t))(made);
        }
        true
    })
}
