//! The objects that the loader has mapped into this process: the executable, libraries, and the kernel's own object.

mod dynamic;
mod lookup;
mod preparation;

pub use dynamic::{Constructor, Dynamic, tag};
pub use lookup::{FoundObject, at};
pub use preparation::{Preparation, Prepared};

use crate::notes;
use gondwana_page::{PAGE_SIZE, to_usize};
use libc::{Elf64_Phdr, c_int, c_void, dl_phdr_info, size_t};
use std::ffi::{CStr, OsStr};
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One object.
#[derive(Clone, Copy)]
pub struct LoadedObject<'a> {
    base: usize,
    path: &'a Path,
    headers: &'a [Elf64_Phdr],
    thread_locals: usize,
    module: usize,
}

/// Calls `visitor` for each object, the executable first, in the order in which the loader came upon them, until it breaks
/// off with a value. No object is unloaded meanwhile.
pub fn visit<T>(visitor: impl FnMut(&LoadedObject<'_>) -> ControlFlow<T>) -> Option<T> {
    struct Walk<F, T> {
        visitor: F,
        value: Option<T>,
    }

    unsafe extern "C" fn step<T, F: FnMut(&LoadedObject<'_>) -> ControlFlow<T>>(
        info: *mut dl_phdr_info,
        _size: size_t,
        walk: *mut c_void,
    ) -> c_int {
        // SAFETY: `visit` passes its own `Walk`, which nothing else uses during the walk; the loader hands out a valid
        // description of an object, which stays loaded during this call.
        let (walk, object) = unsafe { (&mut *walk.cast::<Walk<F, T>>(), LoadedObject::new(&*info)) };
        match (walk.visitor)(&object) {
            ControlFlow::Continue(()) => 0,
            ControlFlow::Break(value) => {
                walk.value = Some(value);
                1
            }
        }
    }

    fn start<T, F: FnMut(&LoadedObject<'_>) -> ControlFlow<T>>(mut walk: Walk<F, T>) -> Option<T> {
        // SAFETY: the callback gets the pointer that is given here, and only during this call.
        unsafe { libc::dl_iterate_phdr(Some(step::<T, F>), (&raw mut walk).cast()) };
        walk.value
    }

    start(Walk { visitor, value: None })
}

/// The objects that are `wanted`, in the order of [`visit`].
///
/// # Safety
/// These objects stay loaded as long as the result is used.
pub unsafe fn select(mut wanted: impl FnMut(&LoadedObject<'_>) -> bool) -> Vec<LoadedObject<'static>> {
    let mut found = vec![];
    visit(|object| {
        if wanted(object) {
            // SAFETY: the loader keeps name and headers as long as the object, which the caller promises to be long enough.
            found.push(unsafe { std::mem::transmute::<LoadedObject<'_>, LoadedObject<'static>>(*object) });
        }
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The addresses of the executable's code.
#[must_use]
pub fn program_text() -> Range<usize> {
    // The executable comes first.
    visit(|object| ControlFlow::Break(object.text())).unwrap_or(0..0)
}

/// The addresses of the code of the objects whose file names begin with one of `names`, in the order of `names`; empty
/// for names that no object has.
#[must_use]
pub fn text_of(names: &[&str]) -> Vec<Range<usize>> {
    let mut found = vec![0..0; names.len()];
    visit(|object| {
        if let Some(index) = names.iter().position(|name| object.file_name().starts_with(name.as_bytes())) {
            found[index] = object.text();
        }
        ControlFlow::<()>::Continue(())
    });
    found
}

/// The address to which addresses in the file are relative, for the executable (`None`) or the library with this file
/// name; `None` if it is not loaded.
#[must_use]
pub fn base_of(library: Option<&str>) -> Option<usize> {
    visit(|object| match object.file_name() == library.unwrap_or_default().as_bytes() {
        true => ControlFlow::Break(object.base()),
        false => ControlFlow::Continue(()),
    })
}

/// True if a file that is loaded has functions on stacks: those that gcc makes for pointers to functions inside functions.
#[must_use]
pub fn want_executable_stacks() -> bool {
    let wants = |header: &Elf64_Phdr| header.p_flags & libc::PF_X != 0;
    visit(|object| match object.segment(libc::PT_GNU_STACK).is_some_and(wants) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .is_some()
}

/// A file that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFile {
    /// Its path; for the executable an absolute one.
    pub path: PathBuf,
    /// What was added to the addresses in the file.
    pub base: usize,
    /// The addresses that it takes.
    pub addresses: Range<usize>,
    /// Its build ID; empty if it has none.
    pub build_id: Vec<u8>,
}

/// The files that are loaded now, the executable first. The kernel's own object is no file.
///
/// # Examples
/// ```
/// let files = gondwana_elf::loaded::files();
/// assert_eq!(files[0].path, std::env::current_exe()?);
/// # std::io::Result::Ok(())
/// ```
#[must_use]
pub fn files() -> Vec<LoadedFile> {
    let mut found: Vec<LoadedFile> = vec![];
    visit(|object| {
        let name = object.path.as_os_str().as_bytes();
        let path = match name {
            [] if found.is_empty() => std::env::current_exe().unwrap_or_default(),
            name if name.contains(&b'/') => object.path.to_owned(),
            _ => return ControlFlow::<()>::Continue(()),
        };
        let (base, addresses, build_id) = (object.base, object.addresses(), object.build_id().to_vec());
        found.push(LoadedFile { path, base, addresses, build_id });
        ControlFlow::Continue(())
    });
    found
}

impl<'a> LoadedObject<'a> {
    /// # Safety
    /// The loader has made the description, of an object that is loaded during `'a`.
    unsafe fn new(info: &dl_phdr_info) -> Self {
        // SAFETY: the headers and the name stay as long as the object.
        unsafe {
            Self {
                base: to_usize(info.dlpi_addr),
                path: Path::new(OsStr::from_bytes(CStr::from_ptr(info.dlpi_name).to_bytes())),
                headers: std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
                thread_locals: info.dlpi_tls_data as usize,
                module: info.dlpi_tls_modid,
            }
        }
    }

    /// What is added to the addresses in the file.
    #[must_use]
    pub fn base(&self) -> usize {
        self.base
    }

    /// Where it was loaded from; empty for the executable.
    #[must_use]
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// The last part of the path; empty for the executable.
    #[must_use]
    pub fn file_name(&self) -> &'a [u8] {
        self.path.file_name().map(OsStr::as_bytes).unwrap_or_default()
    }

    /// True for a library that came with the program: neither of the language runtimes nor the one that this code is in.
    #[must_use]
    pub fn is_library_of_program(&self) -> bool {
        crate::is_of_program(self.path) && !self.holds(program_text as *const () as usize)
    }

    /// True for the executable and the libraries that came with it.
    #[must_use]
    pub fn is_of_program(&self) -> bool {
        self.path.as_os_str().is_empty() || self.is_library_of_program()
    }

    /// The program headers of the segments that the loader has mapped.
    pub fn loads(&self) -> impl Iterator<Item = &'a Elf64_Phdr> + use<'a> {
        self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD)
    }

    /// The segment of a kind of which there is at most one.
    #[must_use]
    pub fn segment(&self, kind: u32) -> Option<&'a Elf64_Phdr> {
        self.headers.iter().find(|header| header.p_type == kind)
    }

    /// The addresses of a segment.
    #[must_use]
    pub fn range(&self, header: &Elf64_Phdr) -> Range<usize> {
        let start = self.base.wrapping_add(to_usize(header.p_vaddr));
        start..start + to_usize(header.p_memsz)
    }

    /// The addresses from its first to its last.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        self.hull(self.loads())
    }

    /// The addresses of its code.
    #[must_use]
    pub fn text(&self) -> Range<usize> {
        self.hull(self.loads().filter(|header| header.p_flags & libc::PF_X != 0))
    }

    fn hull<'h>(&self, headers: impl Iterator<Item = &'h Elf64_Phdr>) -> Range<usize> {
        let hull =
            headers.map(|header| self.range(header)).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        hull.unwrap_or(0..0)
    }

    /// True if an address is in one of its segments.
    #[must_use]
    pub fn holds(&self, address: usize) -> bool {
        self.loads().any(|header| self.range(header).contains(&address))
    }

    /// True if all of it is among these addresses.
    #[must_use]
    pub fn is_in(&self, addresses: &Range<usize>) -> bool {
        self.loads().all(|header| {
            let range = self.range(header);
            addresses.start <= range.start && range.end <= addresses.end
        })
    }

    /// The addresses that the loader only writes while it relocates the object (RELRO); empty if there are none.
    #[must_use]
    pub fn relocated_once(&self) -> Range<usize> {
        self.segment(libc::PT_GNU_RELRO).map_or(0..0, |header| self.range(header))
    }

    /// The pages of these that the loader has made read-only.
    #[must_use]
    pub fn read_only_pages(&self) -> Range<usize> {
        let Range { start, end } = self.relocated_once();
        start / PAGE_SIZE * PAGE_SIZE..end / PAGE_SIZE * PAGE_SIZE
    }

    /// Where the calling thread has its own thread-local variables of this object; empty if there are none.
    #[must_use]
    pub fn thread_locals(&self) -> Range<usize> {
        let length = self.segment(libc::PT_TLS).map_or(0, |header| to_usize(header.p_memsz));
        let length = if self.thread_locals == 0 { 0 } else { length };
        self.thread_locals..self.thread_locals + length
    }

    /// The loader's number for its thread-local variables; 0 if it has none.
    #[must_use]
    pub fn thread_module(&self) -> usize {
        self.module
    }

    /// Its build ID; empty if it has none.
    #[must_use]
    pub fn build_id(&self) -> &'a [u8] {
        // Notes that are not loaded are not there to be read.
        let is_loaded = |note: &Range<usize>| {
            self.loads()
                .map(|header| self.range(header))
                .any(|load| load.start <= note.start && note.end <= load.end)
        };
        let notes = self.headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
        let notes = notes.map(|header| self.range(header)).filter(is_loaded);
        // SAFETY: the loader has mapped the notes.
        let bytes =
            notes.map(|note| unsafe { std::slice::from_raw_parts(note.start as *const u8, note.len()) });
        bytes.filter_map(notes::build_id).next().unwrap_or_default()
    }

    /// Writes a word to a place that the loader may have made read-only. The system is called directly: the C library may not
    /// have been initialised yet.
    ///
    /// # Safety
    /// The place is aligned and in a segment of this object that was writable when it was loaded, and no other thread uses it.
    pub unsafe fn overwrite(&self, place: *mut u64, word: u64) {
        let page = place as usize & !(PAGE_SIZE - 1);
        let protect = |protection: c_int| {
            // SAFETY: changes a page of a segment that was writable when the object was loaded.
            unsafe { gondwana_sys::syscall!(libc::SYS_mprotect, page as *mut c_void, PAGE_SIZE, protection) };
        };
        let read_only = self.read_only_pages().contains(&page);
        if read_only {
            protect(libc::PROT_READ | libc::PROT_WRITE);
        }
        // SAFETY: the caller's promise; the page is writable now.
        unsafe { place.write(word) };
        if read_only {
            protect(libc::PROT_READ);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_the_executable_is_found() {
        let here = the_code_of_the_executable_is_found as fn() as usize;
        assert!(program_text().contains(&here));
        assert!(text_of(&["libc.so"])[0].contains(&(libc::getpid as *const () as usize)));
        assert!(text_of(&["libnone.so"])[0].is_empty());
    }

    #[test]
    fn bases_are_found_by_file_names() {
        let files = files();
        assert_eq!(base_of(None), Some(files[0].base));
        let library = files.iter().find(|file| file.path.ends_with("libc.so.6")).unwrap();
        assert_eq!(base_of(Some("libc.so.6")), Some(library.base));
        assert_eq!(base_of(Some("libnone.so")), None);
    }

    #[test]
    fn the_executable_comes_first_and_holds_this_code() {
        let files = files();
        let own = files_hold as *const () as usize;
        assert_eq!(files[0].path, std::env::current_exe().unwrap());
        assert!(files[0].addresses.contains(&own));
        let library = files.iter().find(|file| file.path.to_string_lossy().contains("libc.so")).unwrap();
        assert!(library.addresses.contains(&(libc::getpid as *const () as usize)));
        assert!(!library.build_id.is_empty());
        assert!(files.iter().all(|file| !file.path.to_string_lossy().contains("vdso")));
    }

    fn files_hold() {}
}
