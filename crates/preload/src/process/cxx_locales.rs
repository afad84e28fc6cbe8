//! C++ locales: the one that new streams get (`std::locale::global`), the numbers of facets, and what a locale remembers of its own.
//!
//! The C++ library keeps their books in data of its own, of which each node has a copy. A global locale with a name each node makes for itself:
//! what it consists of is partly the C library's. One that the program has put together has no name; it is in shared memory, and used as it is.

use super::calls::{on_first, on_others};
use super::locale::LONGEST;
use super::{common, locale, locale_objects, one_at_a_time};
use gondwana_coherence::Consistency;
use gondwana_node::{Node, Thread};
use libc::{LC_ALL_MASK, c_char, c_int};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

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

/// What other nodes follow: a locale without a name is what is at the address.
#[derive(Clone, Copy)]
struct Followed {
    implementation: usize,
    /// A name that ends with a null.
    name: [u8; LONGEST],
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
    let mut followed = Followed { implementation, name: [0; LONGEST] };
    let bytes = name.as_bytes_with_nul();
    let Some(place) = followed.name.get_mut(..bytes.len()) else { return };
    place.copy_from_slice(bytes);
    if let Err((at, _)) = on_others(node, followed, follow) {
        node.refuse(&format!(
            "std::locale::global(): node {at} has no locale {}; install it on all computers of the run",
            name.to_string_lossy()
        ));
    }
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

/// For another node: has the same global locale from now on. 0, or -1 if there is none of this name here.
fn follow(followed: &mut Followed) -> c_int {
    let mut former = Box::new(MaybeUninit::<Locale>::uninit());
    let mut wanted = Box::new(Locale(followed.implementation as *const AtomicI32));
    let name = CStr::from_bytes_until_nul(&followed.name).unwrap_or_default();
    // SAFETY: private memory. What is made here is never destroyed.
    unsafe {
        if name.to_bytes() != UNNAMED {
            if !is_known(name.to_bytes()) {
                return -1;
            }
            let make = crate::real!(_ZNSt6localeC1EPKc: fn(*mut Locale, *const c_char));
            locale::without_others(|| make(&raw mut *wanted, name.as_ptr()));
        }
        locale::without_others(|| real(former.as_mut_ptr(), &raw const *wanted));
    }
    0
}

/// How many locales stay that the program makes under release consistency.
const STAYING: u32 = 10_000;

/// Notes that a locale was made. Its users count themselves by atomic instructions inside the C++ library, which release consistency does not order
/// between nodes: so those that a program makes first stay, among which are those that threads share.
///
/// # Safety
/// The locale is a new one.
unsafe fn keep(implementation: *const AtomicI32) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    if common().is_some_and(|node| node.consistency() == Consistency::Rc)
        && MADE.fetch_add(1, Ordering::Relaxed) < STAYING
    {
        // SAFETY: the caller's promise.
        unsafe { &*implementation }.fetch_add(MANY, Ordering::Relaxed);
    }
}

/// `std::locale::_Impl`: one that is called by a name.
///
/// # Safety
/// As the C++ library's function.
#[unsafe(export_name = "_ZNSt6locale5_ImplC1EPKcm")]
unsafe extern "C-unwind" fn make_named(implementation: *const AtomicI32, name: *const c_char, users: usize) {
    let real = crate::real!(_ZNSt6locale5_ImplC1EPKcm: fn(*const AtomicI32, *const c_char, usize));
    // SAFETY: forwards the caller's arguments. The function throws an exception if there is none of this name.
    unsafe {
        let real: unsafe extern "C-unwind" fn(*const AtomicI32, *const c_char, usize) =
            std::mem::transmute(real);
        real(implementation, name, users);
        keep(implementation);
    }
}

/// `std::locale::_Impl`: one with the facets of another one, at first.
///
/// # Safety
/// As the C++ library's function.
#[unsafe(export_name = "_ZNSt6locale5_ImplC1ERKS0_m")]
unsafe extern "C-unwind" fn make_like(implementation: *const AtomicI32, model: usize, users: usize) {
    let real = crate::real!(_ZNSt6locale5_ImplC1ERKS0_m: fn(*const AtomicI32, usize, usize));
    // SAFETY: forwards the caller's arguments.
    unsafe {
        real(implementation, model, users);
        keep(implementation);
    }
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
            if node.consistency() != Consistency::Sc {
                // Threads look for it without a lock: who finds the pointer must find what is there, too. The others see that before.
                let _ = on_others(node, (), |()| 0);
            }
            one_at_a_time(node, install);
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
        let name = part.and_then(|part| CString::new(part).ok());
        // SAFETY: a private string.
        name.is_some_and(|name| unsafe { locale_objects::is_known(LC_ALL_MASK, name.as_ptr()) })
    })
}
