//! What tells a version of a file of this computer from all others.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A version of a file: its place in the file system, its size and the times of its last changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    /// How long the file is.
    pub bytes: u64,
    /// When it was written to, and when it or what is known of it was changed, which no program can set.
    times: [(i64, i64); 2],
}

impl FileVersion {
    /// That of the file with these data.
    #[must_use]
    pub fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.size(),
            times: [(file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_version_is_of_one_file() {
        let version = |path: &Path| FileVersion::of(&path.metadata().unwrap());
        let own = std::env::current_exe().unwrap();
        assert_eq!(version(&own), version(&own));
        assert_ne!(version(&own), version(Path::new("/bin/sh")));
    }
}
