//! Files of the kernel that cannot be read.

use std::io;
use std::path::{Path, PathBuf};

/// A file of the kernel that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {source}", path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The whole of a file.
pub(crate) fn read(path: &Path) -> Result<String, Unreadable> {
    std::fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|source| Unreadable { path: path.to_owned(), source })
}
