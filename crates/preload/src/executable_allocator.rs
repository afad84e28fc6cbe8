//! Allocators in executables. A library's `malloc` comes behind this one's in the loader's order, but an executable's own comes first.
//! If an executable defines all of the functions of an allocator, as mimalloc does that is linked into it, they are replaced: what such an
//! allocator has taken from the system before the process is a node is memory of that process, and it may know threads by addresses that
//! change as `main` moves to a thread of the run.
//!
//! One that defines only some of them may stand in front of another one, and keeps them if it asks for that one's.

use gondwana_elf::loaded::{self, FoundObject, LoadedObject};
use std::ffi::CStr;
use std::ops::Range;

/// What the executable must define to bring an allocator: that is enough for the C library.
const NEEDED: [&CStr; 4] = [c"malloc", c"calloc", c"realloc", c"free"];

/// What one does not leave out that stands in front of no other.
const WHOLE: [&CStr; 2] = [c"posix_memalign", c"malloc_usable_size"];

/// By these, one finds the allocator behind it.
const BEHIND: [&str; 6] =
    ["dlsym", "dlvsym", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign"];

/// The functions that are replaced by this library's of the same names.
const SAME: [&CStr; 19] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"reallocarray",
    c"free",
    c"memalign",
    c"aligned_alloc",
    c"posix_memalign",
    c"valloc",
    c"pvalloc",
    c"malloc_usable_size",
    c"_Znwm",
    c"_Znam",
    c"_ZnwmRKSt9nothrow_t",
    c"_ZnamRKSt9nothrow_t",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZnwmSt11align_val_tRKSt9nothrow_t",
    c"_ZnamSt11align_val_tRKSt9nothrow_t",
];

/// The C library's own names for some of them, and the C++ library's operators that free.
const OTHERS: [(&CStr, &CStr); 19] = [
    (c"__libc_malloc", c"malloc"),
    (c"__libc_calloc", c"calloc"),
    (c"__libc_realloc", c"realloc"),
    (c"__libc_free", c"free"),
    (c"__libc_memalign", c"memalign"),
    (c"__libc_valloc", c"valloc"),
    (c"__libc_pvalloc", c"pvalloc"),
    (c"_ZdlPv", c"free"),
    (c"_ZdaPv", c"free"),
    (c"_ZdlPvm", c"free"),
    (c"_ZdaPvm", c"free"),
    (c"_ZdlPvRKSt9nothrow_t", c"free"),
    (c"_ZdaPvRKSt9nothrow_t", c"free"),
    (c"_ZdlPvSt11align_val_t", c"free"),
    (c"_ZdaPvSt11align_val_t", c"free"),
    (c"_ZdlPvmSt11align_val_t", c"free"),
    (c"_ZdaPvmSt11align_val_t", c"free"),
    (c"_ZdlPvSt11align_val_tRKSt9nothrow_t", c"free"),
    (c"_ZdaPvSt11align_val_tRKSt9nothrow_t", c"free"),
];

/// `jmp [rip]`, in front of the address of its target.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

/// Bytes of the jump, and a power of two that is not less: where the compiler optimises, functions begin at its multiples.
const LENGTH: usize = JUMP.len() + size_of::<usize>();
const ALIGNED: usize = LENGTH.next_power_of_two();

/// Replaces the executable's allocator, if it brings one.
///
/// # Safety
/// No other thread runs, and nothing is unloaded.
pub(crate) unsafe fn replace(executable: &LoadedObject<'_>) {
    let text = executable.text();
    // SAFETY: the caller's promise.
    let [Some(program), Some(own)] =
        [text.start, replace as *const () as usize].map(|address| unsafe { loaded::at(address) })
    else {
        return;
    };
    let has = |names: &[&CStr]| names.iter().all(|name| defined(&program, name, &text).is_some());
    if !has(&NEEDED) || !has(&WHOLE) && executable.needs_symbol(|name| BEHIND.contains(&name)) {
        return;
    }
    let names = SAME.iter().map(|name| (*name, *name)).chain(OTHERS);
    let jumps: Vec<(Range<usize>, usize)> = names
        .filter_map(|(name, instead)| Some((defined(&program, name, &text)?, own.function(instead)?)))
        .collect();
    // A short function has room behind it if all begin at such multiples.
    let has_room = |code: &Range<usize>| code.len() >= LENGTH || code.start.is_multiple_of(ALIGNED);
    if !jumps.iter().all(|(code, _)| has_room(code)) {
        return;
    }
    // The code that runs now is elsewhere.
    if !protect(&text, libc::PROT_READ | libc::PROT_WRITE) {
        return;
    }
    for (code, target) in jumps {
        let jump = [&JUMP[..], &target.to_ne_bytes()].concat();
        // SAFETY: the beginning of a function that is not called any more, and there is room for the jump.
        unsafe { std::ptr::copy_nonoverlapping(jump.as_ptr(), code.start as *mut u8, LENGTH) };
    }
    protect(&text, libc::PROT_READ | libc::PROT_EXEC);
}

/// A function in the program's code.
fn defined(program: &FoundObject, name: &CStr, text: &Range<usize>) -> Option<Range<usize>> {
    program.code_of(name).filter(|code| text.contains(&code.start))
}

fn protect(text: &Range<usize>, protection: libc::c_int) -> bool {
    let start = text.start / gondwana_page::PAGE_SIZE * gondwana_page::PAGE_SIZE;
    // SAFETY: the program's code, which does not run yet.
    unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, start, text.end - start, protection) == 0 }
}
