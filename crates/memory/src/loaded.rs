//! The files that the loader has put into this process.

use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A file that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    /// Its path; for the executable an absolute one.
    pub path: PathBuf,
    /// What was added to the addresses in the file.
    pub base: usize,
    /// The addresses that it takes.
    pub addresses: Range<usize>,
    /// Its build ID; empty if it has none.
    pub build_id: Vec<u8>,
}

/// The files that are loaded now, the executable first. What the kernel itself puts into each process is none.
#[must_use]
pub fn loaded_images() -> Vec<LoadedImage> {
    let mut found: Vec<LoadedImage> = vec![];
    // SAFETY: the callback gets the pointer to `found` that is given here, and only during this call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `loaded_images` passes its list, which nobody else uses during the walk. The loader hands out a valid
    // description of an object, which stays loaded during the call.
    unsafe {
        let info = &*info;
        let found = &mut *found.cast::<Vec<LoadedImage>>();
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        let name = CStr::from_ptr(info.dlpi_name).to_bytes();
        let path = match name {
            [] if found.is_empty() => std::env::current_exe().unwrap_or_default(),
            name if name.contains(&b'/') => PathBuf::from(OsStr::from_bytes(name)),
            _ => return 0,
        };
        let base = info.dlpi_addr as usize;
        let range = |header: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            start..start + header.p_memsz as usize
        };
        let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(range);
        let addresses = loads().map(|load| load.start).min().unwrap_or(0)
            ..loads().map(|load| load.end).max().unwrap_or(0);
        // Notes that are not loaded are not there to be read.
        let is_loaded =
            |note: &Range<usize>| loads().any(|load| load.start <= note.start && note.end <= load.end);
        let notes =
            headers.iter().filter(|header| header.p_type == libc::PT_NOTE).map(range).filter(is_loaded);
        let build_id = notes
            .map(|note| std::slice::from_raw_parts(note.start as *const u8, note.len()))
            .find_map(build_id)
            .unwrap_or_default();
        found.push(LoadedImage { path, base, addresses, build_id: build_id.to_vec() });
    }
    0
}

/// The build ID among some notes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    loop {
        let (header, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (name, contents, kind) = (word(0) as usize, word(4) as usize, word(8));
        let (text, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        if kind == BUILD_ID && text.get(..name) == Some(b"GNU\0") {
            return rest.get(..contents);
        }
        notes = rest.get(contents.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_comes_first_and_holds_this_code() {
        let images = loaded_images();
        let own = build_id as *const () as usize;
        assert_eq!(images[0].path, std::env::current_exe().unwrap());
        assert!(images[0].addresses.contains(&own));
        let library = images.iter().find(|image| image.path.to_string_lossy().contains("libc.so")).unwrap();
        assert!(library.addresses.contains(&(libc::getpid as *const () as usize)));
        assert!(images.iter().all(|image| !image.path.to_string_lossy().contains("vdso")));
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let note = |kind: u32, name: &[u8], contents: &[u8]| {
            let mut bytes =
                [(name.len() as u32), (contents.len() as u32), kind].map(u32::to_ne_bytes).concat();
            for part in [name, contents] {
                bytes.extend_from_slice(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let other = note(1, b"GNU\0", &[1; 16]);
        let notes = [other.clone(), note(3, b"Go\0", b"x"), note(3, b"GNU\0", &[7, 8, 9, 10])].concat();
        assert_eq!(build_id(&notes), Some(&[7, 8, 9, 10][..]));
        assert_eq!(build_id(&other), None);
        assert_eq!(build_id(&notes[..notes.len() - 1]), None, "cut short");
        assert_eq!(build_id(&note(3, b"GNU\0", &[])), Some(&[][..]));
    }
}
