//! The file system of a guest.

use crate::cpio::Archive;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// Files for a guest. Folders come into being with what is in them.
#[derive(Debug, Default)]
pub struct Image {
    /// The mode, with the type, and the content by absolute path. Sorted, so that folders come before their content.
    entries: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl Image {
    /// An image without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an empty folder.
    pub fn folder(&mut self, at: impl AsRef<Path>) {
        self.add(at.as_ref(), FOLDER | 0o755, vec![]);
    }

    /// Adds a file with these permissions.
    pub fn file(&mut self, at: impl AsRef<Path>, permissions: u32, content: impl Into<Vec<u8>>) {
        self.add(at.as_ref(), FILE | permissions, content.into());
    }

    /// Adds a copy of a file.
    pub fn copy(&mut self, file: &Path, at: impl AsRef<Path>) -> io::Result<()> {
        let permissions = fs::metadata(file)?.permissions().mode() & 0o777;
        self.file(at, permissions, fs::read(file)?);
        Ok(())
    }

    /// Adds a dynamically linked program or a shared library and the libraries that it needs, which come to where they
    /// are on this computer, all without what only debuggers read.
    pub fn program(&mut self, file: &Path, at: impl AsRef<Path>) -> io::Result<()> {
        for library in libraries(file)? {
            if !self.entries.contains_key(&library) {
                self.stripped(&library, &library)?;
            }
        }
        self.stripped(file, at)
    }

    /// Adds a copy of a program or a shared library without what only debuggers read.
    fn stripped(&mut self, file: &Path, at: impl AsRef<Path>) -> io::Result<()> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let stripped = std::env::temp_dir().join(format!("gondwana-guest-{}-{number}", std::process::id()));
        let copied = output(Command::new("strip").arg("--strip-debug").arg("-o").arg(&stripped).arg(file))
            .and_then(|_| self.copy(&stripped, at));
        let _ = fs::remove_file(stripped);
        copied
    }

    /// The archive from which a kernel makes it.
    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut archive = Archive::new();
        for (path, (mode, content)) in &self.entries {
            let name = path.strip_prefix("/").expect("paths are absolute");
            archive.append(name.to_str().expect("names are UTF-8"), *mode, content);
        }
        archive.finish()
    }

    fn add(&mut self, at: &Path, mode: u32, content: Vec<u8>) {
        let above = at.ancestors().skip(1).filter(|folder| folder.parent().is_some());
        for folder in above {
            self.entries.entry(folder.to_owned()).or_insert((FOLDER | 0o755, vec![]));
        }
        self.entries.insert(at.to_owned(), (mode, content));
    }
}

/// The shared libraries that a file needs, with the loader.
fn libraries(file: &Path) -> io::Result<Vec<PathBuf>> {
    let printed = output(Command::new("ldd").arg(file))?;
    let printed = String::from_utf8_lossy(&printed.stdout);
    // "libc.so.6 => /lib/libc.so.6 (0x7f..)", for the loader "/lib64/ld-linux-x86-64.so.2 (0x7f..)".
    let paths = printed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(paths.map(PathBuf::from).collect())
}

/// What a command prints, if it succeeds.
fn output(command: &mut Command) -> io::Result<Output> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::{Image, libraries};
    use std::path::Path;

    #[test]
    fn folders_come_before_what_is_in_them() {
        let mut image = Image::new();
        image.file("/a/b/c", 0o644, "text");
        image.folder("/a/b.d");
        let names: Vec<_> = image.entries.keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names, ["/a", "/a/b", "/a/b/c", "/a/b.d"]);
    }

    #[test]
    fn a_program_needs_the_c_library_and_the_loader() {
        let found = libraries(&std::env::current_exe().unwrap()).unwrap();
        let has = |part: &str| found.iter().any(|path| path.to_str().unwrap().contains(part));
        assert!(has("/libc.so.6") && has("/ld-linux"), "{found:?}");
    }

    #[test]
    fn a_file_that_is_no_program_is_an_error() {
        assert!(libraries(Path::new("/etc/passwd")).is_err());
    }
}
