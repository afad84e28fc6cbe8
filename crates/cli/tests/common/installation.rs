//! An installation of the command with a stand-in for the runtime library, in a folder of its own.

use super::folder::Folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder; it is removed with this value.
pub(crate) struct Installation(Folder);

impl Installation {
    /// Copies the command and compiles the stand-in.
    pub(crate) fn new() -> Self {
        let this = Self(Folder::new());
        fs::copy(env!("CARGO_BIN_EXE_gondwana"), this.path("gondwana")).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/runtime.c");
        this.gcc(&["-shared", "-fPIC", source.to_str().unwrap(), "-o", "libgondwana.so"]);
        this
    }

    /// A file of the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs the compiler in the folder.
    pub(crate) fn gcc(&self, arguments: &[&str]) {
        assert!(Command::new("gcc").args(arguments).current_dir(&*self.0).status().unwrap().success());
    }

    /// Compiles a program that does nothing.
    pub(crate) fn program(&self, name: &str, options: &[&str]) -> PathBuf {
        fs::write(self.path("empty.c"), "int main(void) { return 0; }\n").unwrap();
        self.gcc(&[&["empty.c", "-o", name], options].concat());
        self.path(name)
    }

    /// The command with these arguments, to be started in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("gondwana"));
        command.args(arguments).current_dir(&*self.0);
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

/// Standard error as text.
pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
