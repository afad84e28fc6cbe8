//! The libraries that come with one.

use super::search;
use gondwana_elf::{LibraryFile, is_runtime_library, loader_folders};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// What the loader will load.
#[derive(Default)]
pub(super) struct Companions {
    /// Libraries whose variables are shared, the wanted one first.
    pub shared: Vec<(PathBuf, LibraryFile)>,
    /// Libraries of the language runtimes, of which each node has its own; mostly each comes after those that it needs, so that the loader
    /// loads one at a time.
    pub runtime: Vec<PathBuf>,
}

/// What comes with the library in a file, itself included.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn of(path: &Path) -> Result<Companions, String> {
    let mut found = Companions::default();
    let mut folders = vec![];
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        if found.shared.iter().any(|(other, _)| *other == path) || found.runtime.contains(&path) {
            continue;
        }
        let file = LibraryFile::read(&path).ok_or_else(|| format!("{}: no ELF library", path.display()))?;
        // Folders of a library count for what its libraries need, too.
        folders.extend(file.folders.iter().cloned());
        for name in &file.needed {
            let name = CString::new(name.as_str()).unwrap_or_default();
            if !search::is_everywhere(&name) {
                let folders = [&folders[..], &loader_folders(0)].concat();
                // Of what is not found here, the loader will tell.
                waiting.extend(search::find(&folders, &name));
            }
        }
        if is_runtime_library(&path) {
            found.runtime.push(path);
        } else {
            found.shared.push((path, file));
        }
    }
    found.runtime.reverse();
    Ok(found)
}
