//! The libraries that come with one.

use super::{opened, search};
use gondwana_elf::{LibraryFile, is_runtime_library, loader_folders};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// What the loader will load.
#[derive(Default)]
pub(super) struct Companions {
    /// Libraries whose variables are shared.
    pub shared: Vec<(PathBuf, LibraryFile)>,
    /// Libraries of the language runtimes, of which each node has its own. Each comes after those that it needs, so that the loader loads
    /// one at a time, whose place nothing else can take.
    pub runtime: Vec<PathBuf>,
}

/// What comes with the library in a file, itself included.
///
/// # Errors
/// A sentence for `dlerror`.
pub(super) fn of(path: &Path) -> Result<Companions, String> {
    let mut found = Companions::default();
    found.add(path.to_owned(), &loader_folders(0), &mut vec![])?;
    Ok(found)
}

impl Companions {
    /// Adds a library behind those that it needs. `folders` are searched for these, and `visited` are known already.
    fn add(&mut self, path: PathBuf, folders: &[PathBuf], visited: &mut Vec<PathBuf>) -> Result<(), String> {
        // What was opened before came with all that it needs.
        if visited.contains(&path) || opened::in_file(&path).is_some_and(|known| known.handle != 0) {
            return Ok(());
        }
        visited.push(path.clone());
        let file = LibraryFile::read(&path).ok_or_else(|| format!("{}: no ELF library", path.display()))?;
        // Folders of a library count for what its libraries need, too.
        let folders = [&file.folders, folders].concat();
        for name in &file.needed {
            let name = CString::new(name.as_str()).unwrap_or_default();
            // Of what is not found here, the loader will tell.
            if !search::is_everywhere(&name)
                && let Some(needed) = search::find(&folders, &name)
            {
                self.add(needed, &folders, visited)?;
            }
        }
        if is_runtime_library(&path) {
            self.runtime.push(path);
        } else {
            self.shared.push((path, file));
        }
        Ok(())
    }
}
