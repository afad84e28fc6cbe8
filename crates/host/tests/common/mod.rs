//! Computers that are not here, as the files that their kernels show.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder with the files of a computer, which goes away with this value.
pub(crate) struct Computer(PathBuf);

impl Computer {
    /// The computer with these files: a path, a tab and a line of the file in each line.
    pub(crate) fn of(files: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("gondwana-computer-{}-{number}", std::process::id()));
        for (path, line) in files.lines().map(|line| line.split_once('\t').unwrap()) {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{line}").unwrap();
        }
        Self(root)
    }
}

impl std::ops::Deref for Computer {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
