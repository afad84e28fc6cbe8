//! The file from which other nodes load a library: as the loader of node 0 has relocated it, and without anything to be done.
//!
//! A node that has the library's own file is told only where this one differs.

use crate::map::FileCopy;
use crate::ranges::joined;
use gondwana_elf::loaded::LoadedObject;
use gondwana_elf::{FileVersion, strip};
use gondwana_memory::PAGE_SIZE;
use gondwana_page::to_usize;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// The file, and the library's own one.
pub(super) struct Image {
    bytes: FileCopy,
    /// How long the file is.
    length: usize,
    original: FileCopy,
    /// The library's own file.
    pub version: FileVersion,
}

impl Image {
    /// Makes the file; `None` if the library's own one cannot be read, or is not what the loader has loaded.
    pub(super) fn of(object: &LoadedObject<'_>, path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let version = FileVersion::of(&file.metadata().ok()?);
        let length = to_usize(version.bytes);
        let (original, mut bytes) = (FileCopy::of(&file, length)?, FileCopy::of(&file, length)?);
        let section = object.segment(libc::PT_DYNAMIC)?;
        let section = to_usize(section.p_offset)..to_usize(section.p_offset + section.p_filesz);
        let mut length = 0;
        for segment in object.loads() {
            let part = to_usize(segment.p_offset)..to_usize(segment.p_offset + segment.p_filesz);
            length = length.max(part.end);
            let place = bytes.get_mut(part)?;
            if segment.p_flags & libc::PF_R != 0 {
                let start = object.range(segment).start as *const u8;
                // SAFETY: the loader has mapped the segment, which has so many bytes of the file; nobody uses the library yet.
                let loaded = unsafe { std::slice::from_raw_parts(start, place.len()) };
                // Most pages are as in the file, and stay the file's.
                let pages = place.chunks_mut(PAGE_SIZE).zip(loaded.chunks(PAGE_SIZE));
                pages
                    .filter(|(page, loaded)| page != loaded)
                    .for_each(|(page, loaded)| page.copy_from_slice(loaded));
            }
        }
        // The loader has made its addresses absolute, as that of another node will.
        bytes.get_mut(section.clone())?.copy_from_slice(original.get(section)?);
        strip(bytes.get_mut(..length)?)?;
        Some(Self { bytes, length, original, version })
    }

    /// All of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Where the file differs from the library's own one, page by page.
    pub(super) fn changes(&self) -> Vec<Range<usize>> {
        changes(self.bytes(), &self.original)
    }
}

/// Where the pages are that differ.
fn changes(bytes: &[u8], original: &[u8]) -> Vec<Range<usize>> {
    let pages = bytes.chunks(PAGE_SIZE).zip(original.chunks(PAGE_SIZE)).enumerate();
    let changed = pages.filter(|(_, (new, old))| !old.starts_with(new));
    joined(changed.map(|(page, _)| page * PAGE_SIZE..((page + 1) * PAGE_SIZE).min(bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_pages_are_found() {
        let original = vec![0; 10 * PAGE_SIZE + 30];
        let mut bytes = original[..8 * PAGE_SIZE + 7].to_vec();
        assert_eq!(changes(&bytes, &original), []);
        for place in [PAGE_SIZE, 2 * PAGE_SIZE - 1, 2 * PAGE_SIZE + 5, 8 * PAGE_SIZE + 6] {
            bytes[place] = 1;
        }
        assert_eq!(changes(&bytes, &original), [PAGE_SIZE..3 * PAGE_SIZE, 8 * PAGE_SIZE..8 * PAGE_SIZE + 7]);
    }
}
