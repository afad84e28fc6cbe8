//! The writable data of the program: which addresses hold `.data` and `.bss` of the executable and of the
//! libraries that it uses.

use crate::geometry::PAGE_SIZE;
use std::ffi::CStr;
use std::ops::Range;
use std::path::Path;

/// A page-aligned range of writable program data, past what the loader has made read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// First address.
    pub base: usize,
    /// Length in pages.
    pub pages: u32,
    /// How many of them, the first ones, hold bytes that come from the file. The others are zero until they are written.
    pub initialised: u32,
}

/// The libraries of the C, C++ and OpenMP runtimes, as far as their names do not change between versions, and our own:
/// their data stays private to each node.
const RUNTIME: [&str; 17] = [
    "ld-linux-x86-64.so.",
    "libBrokenLocale.so.",
    "libanl.so.",
    "libc.so.",
    "libdl.so.",
    "libgcc_s.so.",
    "libgomp.so.",
    "libgondwana.so",
    "libgondwana_api.so",
    "libm.so.",
    "libmvec.so.",
    "libnss_",
    "libpthread.so.",
    "libresolv.so.",
    "librt.so.",
    "libstdc++.so.",
    "libthread_db.so.",
];

/// True for a library of the language runtimes. Every other library counts as the program's own, wherever it is: its
/// variables must be common to all threads, as the blocks are that they point to.
#[must_use]
pub fn is_runtime_library(path: &Path) -> bool {
    let name = path.file_name().map_or(&[][..], |name| name.as_encoded_bytes());
    RUNTIME.iter().any(|runtime| name.starts_with(runtime.as_bytes()))
}

/// True for the file of a library whose variables all threads share. The executable, and what the kernel puts into
/// each process, have no path.
#[must_use]
pub fn is_of_program(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&b'/') && !is_runtime_library(path)
}

/// The data segments of the running program, in ascending order of address. `own` is an address inside the
/// library that must not count as the program's: the caller itself.
#[must_use]
pub fn data_segments(own: usize) -> Vec<DataSegment> {
    let mut search = Search { own, first: true, found: vec![] };
    // SAFETY: the callback gets the pointer to `search` that is given here, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found.sort_by_key(|segment| segment.base);
    search.found
}

/// The address ranges of the executable code of the loaded objects whose file names begin with one of `names`,
/// in the order of `names`.
#[must_use]
pub fn text_of(names: &[&str]) -> Vec<Range<usize>> {
    let mut search = TextSearch { names, found: vec![0..0; names.len()] };
    // SAFETY: the callback gets the pointer to `search` that is given here, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit_text), (&raw mut search).cast()) };
    search.found
}

/// The addresses of the executable's code.
#[must_use]
pub fn program_text() -> Range<usize> {
    let mut found = 0..0;
    // SAFETY: the callback gets the pointer to `found` that is given here, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit_program), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit_program(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `program_text` passes a pointer to its range, which nobody else uses during the walk.
    let found = unsafe { &mut *data.cast::<Range<usize>>() };
    // SAFETY: the loader hands out a valid description of one object.
    let object = unsafe { Object::new(info) };
    let code = object
        .headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
    let start = |header: &libc::Elf64_Phdr| object.base + header.p_vaddr as usize;
    let end = |header: &libc::Elf64_Phdr| start(header) + header.p_memsz as usize;
    *found = code.clone().map(start).min().unwrap_or(0)..code.map(end).max().unwrap_or(0);
    // The executable comes first: that was all.
    1
}

/// What was added to the addresses in the file when the executable (`None`) or the library with this file name was
/// loaded; `None` if it is not loaded.
#[must_use]
pub fn base_of(library: Option<&str>) -> Option<usize> {
    let mut search = BaseSearch { library, found: None };
    // SAFETY: the callback gets the pointer to `search` that is given here, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit_base), (&raw mut search).cast()) };
    search.found
}

struct BaseSearch<'a> {
    library: Option<&'a str>,
    found: Option<usize>,
}

unsafe extern "C" fn visit_base(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `base_of` passes a pointer to its `BaseSearch`, which nobody else uses during the walk.
    let search = unsafe { &mut *data.cast::<BaseSearch<'_>>() };
    // SAFETY: the loader hands out a valid description of one object.
    let object = unsafe { Object::new(info) };
    // The executable comes first, and has no name.
    let file = object.path.file_name().and_then(|name| name.to_str());
    if search.found.is_none() && file == search.library {
        search.found = Some(object.base);
    }
    0
}

struct TextSearch<'a> {
    names: &'a [&'a str],
    found: Vec<Range<usize>>,
}

unsafe extern "C" fn visit_text(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `text_of` passes a pointer to its `TextSearch`, which nobody else uses during the walk.
    let search = unsafe { &mut *data.cast::<TextSearch<'_>>() };
    // SAFETY: the loader hands out a valid description of one object.
    let object = unsafe { Object::new(info) };
    let file = object.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let Some(index) = search.names.iter().position(|name| file.starts_with(name)) else { return 0 };
    let code = object
        .headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0);
    for header in code {
        let start = object.base + header.p_vaddr as usize;
        search.found[index] = start..start + header.p_memsz as usize;
    }
    0
}

/// One loaded object as the loader describes it.
struct Object<'a> {
    base: usize,
    headers: &'a [libc::Elf64_Phdr],
    path: &'a Path,
}

impl Object<'_> {
    /// # Safety
    /// `info` is what the loader gave to a callback that is still running.
    unsafe fn new(info: *const libc::dl_phdr_info) -> Self {
        // SAFETY: as above: the headers and the name are valid during the callback.
        unsafe {
            let info = &*info;
            let name = CStr::from_ptr(info.dlpi_name).to_str().unwrap_or("");
            Self {
                base: info.dlpi_addr as usize,
                headers: std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize),
                path: Path::new(name),
            }
        }
    }
}

struct Search {
    own: usize,
    first: bool,
    found: Vec<DataSegment>,
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `data_segments` passes a pointer to its `Search`, which nobody else uses during the walk.
    let search = unsafe { &mut *data.cast::<Search>() };
    // SAFETY: the loader hands out a valid description of one object.
    let Object { base: object, headers, path } = unsafe { Object::new(info) };
    let executable = std::mem::take(&mut search.first);
    let system = !executable && !is_of_program(path);
    let holds_us = headers.iter().any(|header| {
        header.p_type == libc::PT_LOAD
            && (object + header.p_vaddr as usize..object + (header.p_vaddr + header.p_memsz) as usize)
                .contains(&search.own)
    });
    if system || holds_us {
        return 0;
    }
    let read_only_end = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_GNU_RELRO)
        .map(|header| page_down(object + (header.p_vaddr + header.p_memsz) as usize))
        .max()
        .unwrap_or(0);
    for header in headers {
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W == 0 {
            continue;
        }
        let start = object + header.p_vaddr as usize;
        let end = page_up(start + header.p_memsz as usize);
        let base = page_down(start).max(if read_only_end > start { read_only_end } else { 0 });
        if base < end {
            let zero = page_up(start + header.p_filesz as usize).clamp(base, end);
            let pages = |to: usize| ((to - base) / PAGE_SIZE) as u32;
            search.found.push(DataSegment { base, pages: pages(end), initialised: pages(zero) });
        }
    }
    0
}

fn page_down(address: usize) -> usize {
    address & !(PAGE_SIZE - 1)
}

fn page_up(address: usize) -> usize {
    page_down(address + PAGE_SIZE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_the_executable_is_found() {
        let here = the_code_of_the_executable_is_found as fn() as usize;
        assert!(program_text().contains(&here));
    }

    #[test]
    fn only_the_languages_runtimes_are_private() {
        let of_program = |path: &str| is_of_program(Path::new(path));
        assert!(
            !of_program("/lib/x86_64-linux-gnu/libc.so.6")
                && !of_program("/opt/gcc/lib64/libstdc++.so.6.0.30")
        );
        assert!(!of_program("/usr/lib/x86_64-linux-gnu/libgomp.so.1") && !of_program(""));
        assert!(of_program("/lib/x86_64-linux-gnu/libcrypto.so.3") && of_program("./libcrypt.so"));
        assert!(of_program("/home/me/libmine.so") && of_program("/home/me/libm_fast.so"));
        assert!(!of_program("/opt/gondwana/lib/libgondwana_api.so.0"));
        assert!(of_program("/home/me/libgondwana_api.so.d/libmine.so"));
    }
}
