//! The file from which other nodes load a library: as the loader of node 0 has relocated it, and without anything to be done.

use gondwana_elf::loaded::LoadedObject;
use gondwana_elf::strip;
use gondwana_page::to_usize;
use std::fs;
use std::path::Path;

/// Makes the file; `None` if it cannot be read, or is not what the loader has loaded.
pub(super) fn of(object: &LoadedObject<'_>, path: &Path) -> Option<Vec<u8>> {
    let mut image = fs::read(path).ok()?;
    let section = object.segment(libc::PT_DYNAMIC)?;
    let section = to_usize(section.p_offset)..to_usize(section.p_offset + section.p_filesz);
    let original = image.get(section.clone())?.to_vec();
    let mut length = 0;
    for segment in object.loads() {
        let bytes = to_usize(segment.p_offset)..to_usize(segment.p_offset + segment.p_filesz);
        length = length.max(bytes.end);
        let place = image.get_mut(bytes)?;
        if segment.p_flags & libc::PF_R != 0 {
            let start = object.range(segment).start as *const u8;
            // SAFETY: the loader has mapped the segment, which has so many bytes of the file; nobody uses the library yet.
            unsafe { std::ptr::copy_nonoverlapping(start, place.as_mut_ptr(), place.len()) };
        }
    }
    // The loader has made its addresses absolute, as that of another node will.
    image[section].copy_from_slice(&original);
    image.truncate(length);
    strip(&mut image)?;
    Some(image)
}
