//! Functions of the C library that allocate for the program and for themselves in one call, or let the kernel fill
//! the allocated memory. They work in private memory, and the result is copied to shared memory.

use super::{Buffer, is_shared, with_buffers};
use crate::alloc;
use crate::numbers::many;
use libc::{addrinfo, c_char, c_int, c_void, dirent, glob_t, ifaddrs, size_t, sockaddr};

/// Moves a private block to shared memory; a shared block stays. Null if there is no memory.
///
/// # Safety
/// A block from the C library with that many bytes, or null.
unsafe fn share<T>(block: *mut T, bytes: usize) -> *mut T {
    if block.is_null() || is_shared(block.cast(), bytes) {
        return block;
    }
    // SAFETY: both blocks have that many bytes, and the old one is not used any more.
    unsafe {
        let copy = alloc::resize(std::ptr::null_mut(), bytes);
        if !copy.is_null() {
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), copy.cast(), bytes);
        }
        alloc::free(block.cast());
        copy.cast()
    }
}

/// # Safety
/// A string from the C library's allocator, or null.
unsafe fn share_text(text: *mut c_char) -> *mut c_char {
    // SAFETY: as promised.
    if text.is_null() { text } else { unsafe { share(text, 1 + libc::strlen(text)) } }
}

/// Moves a vector of strings to shared memory: `first` places that hold nothing, `count` strings, and a null.
///
/// # Safety
/// A vector from the C library's allocator, or null.
unsafe fn share_texts(vector: *mut *mut c_char, first: usize, count: usize) -> *mut *mut c_char {
    if vector.is_null() {
        return vector;
    }
    for index in first..first + count {
        // SAFETY: as promised.
        unsafe { *vector.add(index) = share_text(*vector.add(index)) };
    }
    // SAFETY: as promised.
    unsafe { share(vector, (first + count + 1) * size_of::<*mut c_char>()) }
}

/// # Safety
/// As the C library's `getcwd`, which allocates if it is given no buffer.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getcwd(buffer: *mut c_char, size: size_t) -> *mut c_char {
    // SAFETY: forwards the caller's arguments.
    let result = with_buffers(&[Buffer::write(buffer, size)], || unsafe {
        crate::real!(getcwd: fn(*mut c_char, size_t) -> *mut c_char)(buffer, size)
    });
    if !buffer.is_null() || result.is_null() {
        return result;
    }
    // SAFETY: the block has the size that was asked for, or as much as the string.
    unsafe { share(result, size.max(1 + libc::strlen(result))) }
}

/// # Safety
/// As the C library's `get_current_dir_name`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn get_current_dir_name() -> *mut c_char {
    // SAFETY: the string is the caller's.
    unsafe { share_text(crate::real!(get_current_dir_name: fn() -> *mut c_char)()) }
}

type Filter = Option<extern "C" fn(*const dirent) -> c_int>;
type Order = Option<extern "C" fn(*mut *const dirent, *mut *const dirent) -> c_int>;

/// Defines `scandir`: one block for each entry, and one for the vector of them.
macro_rules! scanning {
    ($($name:ident($($folder:ident: $type:ty)?);)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            $($folder: $type,)?
            path: *const c_char,
            result: *mut *mut *mut dirent,
            filter: Filter,
            order: Order,
        ) -> c_int {
            $(if !super::descriptors::is_here($folder, stringify!($name)) {
                return -1;
            })?
            let mut entries: *mut *mut dirent = std::ptr::null_mut();
            let count = with_buffers(&[Buffer::string(path)], || {
                // SAFETY: forwards the caller's arguments but the result, which is a private variable.
                unsafe {
                    crate::real!($name: fn(
                        $($type,)? *const c_char, *mut *mut *mut dirent, Filter, Order,
                    ) -> c_int)($($folder,)? path, &raw mut entries, filter, order)
                }
            });
            if count < 0 {
                return count;
            }
            let found = many(count);
            // SAFETY: the C library has filled in that many entries, each as long as it says.
            unsafe {
                for index in 0..found {
                    let entry = entries.add(index);
                    *entry = share(*entry, usize::from((**entry).d_reclen));
                }
                *result = share(entries, found.max(1) * size_of::<*mut dirent>());
            }
            count
        }
    )*};
}

scanning! {
    scandir();
    scandir64();
    scandirat(folder: c_int);
    scandirat64(folder: c_int);
}

/// # Safety
/// As the C library's `getaddrinfo`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getaddrinfo(
    name: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    let mut first = std::ptr::null_mut();
    // SAFETY: forwards the caller's arguments but the result, which is a private variable.
    let error = unsafe {
        crate::real!(getaddrinfo: fn(*const c_char, *const c_char, *const addrinfo, *mut *mut addrinfo) -> c_int)(
            name,
            service,
            hints,
            &raw mut first,
        )
    };
    if error != 0 {
        return error;
    }
    let mut link = &raw mut first;
    // SAFETY: each element is a block that holds the address behind the structure; the name is a block of its own.
    unsafe {
        while !(*link).is_null() {
            let bytes = size_of::<addrinfo>() + (**link).ai_addrlen as usize;
            *link = share(*link, bytes);
            let Some(element) = (*link).as_mut() else { return libc::EAI_MEMORY };
            element.ai_addr = (*link).add(1).cast::<sockaddr>();
            element.ai_canonname = share_text(element.ai_canonname);
            link = &raw mut element.ai_next;
        }
        *result = first;
    }
    0
}

/// # Safety
/// As the C library's `getifaddrs`: the whole list is one block.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn getifaddrs(result: *mut *mut ifaddrs) -> c_int {
    let mut first: *mut ifaddrs = std::ptr::null_mut();
    // SAFETY: the result is a private variable.
    let failed = unsafe { crate::real!(getifaddrs: fn(*mut *mut ifaddrs) -> c_int)(&raw mut first) };
    if failed != 0 {
        return failed;
    }
    // SAFETY: every pointer in the block is null or points into it, and goes with it.
    unsafe {
        let (old, bytes) = (first as usize, alloc::malloc_usable_size(first.cast()));
        let new = share(first, bytes);
        let distance = (new as usize).wrapping_sub(old);
        let inside = |pointer: usize| pointer.wrapping_sub(old) < bytes;
        let moved = |pointer: usize| if inside(pointer) { pointer.wrapping_add(distance) } else { pointer };
        let mut each = new;
        while let Some(interface) = each.as_mut() {
            interface.ifa_next = moved(interface.ifa_next as usize) as *mut ifaddrs;
            interface.ifa_name = moved(interface.ifa_name as usize) as *mut c_char;
            interface.ifa_addr = moved(interface.ifa_addr as usize) as *mut sockaddr;
            interface.ifa_netmask = moved(interface.ifa_netmask as usize) as *mut sockaddr;
            interface.ifa_ifu = moved(interface.ifa_ifu as usize) as *mut sockaddr;
            interface.ifa_data = moved(interface.ifa_data as usize) as *mut c_void;
            each = interface.ifa_next;
        }
        *result = new;
    }
    0
}

/// # Safety
/// As the C library's `if_nameindex`: the list ends with number 0, and its names are blocks of their own.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn if_nameindex() -> *mut libc::if_nameindex {
    // SAFETY: has no preconditions; the list is as told.
    unsafe {
        let list = crate::real!(if_nameindex: fn() -> *mut libc::if_nameindex)();
        if list.is_null() {
            return list;
        }
        let mut count = 0;
        while (*list.add(count)).if_index != 0 {
            (*list.add(count)).if_name = share_text((*list.add(count)).if_name);
            count += 1;
        }
        share(list, (count + 1) * size_of::<libc::if_nameindex>())
    }
}

type OnError = Option<extern "C" fn(*const c_char, c_int) -> c_int>;

macro_rules! matching {
    ($($name:ident)*) => {$(
        /// # Safety
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            pattern: *const c_char,
            flags: c_int,
            on_error: OnError,
            result: *mut glob_t,
        ) -> c_int {
            // SAFETY: forwards the caller's arguments; without the flag, the C library ignores the offset.
            unsafe {
                let error = crate::real!($name: fn(*const c_char, c_int, OnError, *mut glob_t) -> c_int)(
                    pattern, flags, on_error, result,
                );
                // After this failure it has not read the structure.
                if error != -1 {
                    let first = if flags & libc::GLOB_DOOFFS == 0 { 0 } else { (*result).gl_offs };
                    (*result).gl_pathv = share_texts((*result).gl_pathv, first, (*result).gl_pathc);
                }
                error
            }
        }
    )*};
}

matching! { glob glob64 }

/// `wordexp_t`.
#[repr(C)]
pub(super) struct Words {
    count: size_t,
    words: *mut *mut c_char,
    offset: size_t,
}

/// `WRDE_DOOFFS`.
const RESERVE: c_int = 1;

/// # Safety
/// As the C library's `wordexp`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn wordexp(text: *const c_char, result: *mut Words, flags: c_int) -> c_int {
    // SAFETY: forwards the caller's arguments; without the flag, the C library ignores the offset.
    unsafe {
        let error = crate::real!(wordexp: fn(*const c_char, *mut Words, c_int) -> c_int)(text, result, flags);
        if error == 0 {
            let first = if flags & RESERVE == 0 { 0 } else { (*result).offset };
            (*result).words = share_texts((*result).words, first, (*result).count);
        }
        error
    }
}
