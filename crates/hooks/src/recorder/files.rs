//! The loaded files. The kernel puts libraries elsewhere in each run, so that a recording has them, and what points into
//! them, at addresses of its own: one behind the other in the order of their loading.

use gondwana_elf::loaded::{self, LoadedFile};
use gondwana_recording::ImageRecord;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// Where the recording has the first library.
const FIRST: usize = 0x7000_0000_0000;

/// Libraries begin at multiples of this.
const ALIGNMENT: usize = 1 << 20;

/// The files that were found so far.
pub(super) struct Files {
    /// Where they are, and where the recording has their first addresses.
    known: Vec<(Range<usize>, usize)>,
    next: usize,
    own: Range<usize>,
}

impl Files {
    /// None yet, but this library itself.
    pub(super) fn new() -> Self {
        let here = Self::new as *const () as usize;
        let own = loaded::files().into_iter().find(|file| file.addresses.contains(&here));
        Self { known: vec![], next: FIRST, own: own.map_or(0..0, |file| file.addresses) }
    }

    /// The addresses of this library.
    pub(super) fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// The files that were loaded since the last call, the executable first.
    pub(super) fn new_images(&mut self) -> Vec<ImageRecord> {
        // The kernel's own object is in no file.
        let files = loaded::files().into_iter().filter(|file| file.path.is_absolute());
        let fresh: Vec<LoadedFile> =
            files.filter(|file| self.known.iter().all(|(known, _)| *known != file.addresses)).collect();
        fresh.into_iter().map(|file| self.image(file)).collect()
    }

    fn image(&mut self, file: LoadedFile) -> ImageRecord {
        let LoadedFile { path, base, addresses, build_id } = file;
        // The executable is not moved: its data are what the recording is about.
        let start = if self.known.is_empty() { addresses.start } else { self.next };
        if !self.known.is_empty() {
            self.next += addresses.len().next_multiple_of(ALIGNMENT);
        }
        let image = ImageRecord {
            path: String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned(),
            base: base.wrapping_sub(addresses.start).wrapping_add(start) as u64,
            start: start as u64,
            end: (start + addresses.len()) as u64,
            build_id,
        };
        self.known.push((addresses, start));
        image
    }

    /// The address that the recording has for one of code. Of a library that was loaded after the last look it has none: 0.
    pub(super) fn same(&self, address: usize) -> u64 {
        let file = self.known.iter().find(|(addresses, _)| addresses.contains(&address));
        file.map_or(0, |(addresses, start)| (address - addresses.start + start) as u64)
    }
}
