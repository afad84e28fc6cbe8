//! Debug information in separate files, as distributions ship it.

use gondwana_elf::ElfFile;
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The system's folder of such files.
pub(crate) const SYSTEM: &str = "/usr/lib/debug";

/// The file with the debug information of `path`, searched for as debuggers do.
pub(crate) fn find(path: &Path, elf: &ElfFile, system: &Path) -> Option<ElfFile> {
    candidates(path, elf, system).into_iter().find_map(|path| {
        let found = ElfFile::open(&path).ok()?;
        belongs(elf, &found).then_some(found)
    })
}

fn candidates(path: &Path, elf: &ElfFile, system: &Path) -> Vec<PathBuf> {
    let mut candidates = vec![];
    if let Some((first, rest)) = elf.build_id.split_first().filter(|(_, rest)| !rest.is_empty()) {
        let mut name = String::new();
        for byte in rest {
            let _ = write!(name, "{byte:02x}");
        }
        candidates.push(system.join(format!(".build-id/{first:02x}/{name}.debug")));
    }
    let link = elf.debug_link.as_ref().map(|(name, _)| Path::new(OsStr::from_bytes(name)));
    // A name with folders could refer to any file.
    let link = link.filter(|name| name.file_name() == Some(name.as_os_str()));
    if let (Some(link), Some(folder)) = (link, path.parent()) {
        candidates.extend([folder.join(link), folder.join(".debug").join(link)]);
        if let Ok(below_root) = folder.strip_prefix("/") {
            candidates.push(system.join(below_root).join(link));
        }
    }
    candidates
}

/// True if the file belongs to this one.
fn belongs(elf: &ElfFile, found: &ElfFile) -> bool {
    if !elf.build_id.is_empty() && !found.build_id.is_empty() {
        return elf.build_id == found.build_id;
    }
    let expected = elf.debug_link.as_ref().map(|(_, sum)| *sum);
    expected.is_some() && expected == checksum(found).ok()
}

fn checksum(elf: &ElfFile) -> io::Result<u32> {
    let mut file = elf.file();
    file.rewind()?;
    let mut sum = crc32fast::Hasher::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(sum.finalize()),
            count => sum.update(&block[..count]),
        }
    }
}
