//! A folder for the files of one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that goes away with this value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("gondwana-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Compiles one of the programs in `tests/programs`, in C or C++.
    pub(crate) fn compile(&self, name: &str) {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let cpp = sources.join(format!("{name}.cpp"));
        let (compiler, source) = match cpp.exists() {
            true => ("g++", cpp),
            false => ("gcc", sources.join(format!("{name}.c"))),
        };
        let mut compiler = Command::new(compiler);
        compiler.args(["-O1", "-g", "-pthread", "-o", name]).arg(source).current_dir(&self.0);
        assert!(compiler.status().unwrap().success());
    }
}

impl std::ops::Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
