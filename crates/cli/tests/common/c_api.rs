//! Gondwana as installed by `make install`, and programs in C that use it.

use super::whole::whole;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the sources.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The installation folder; the first call of a process installs into it.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let built = whole().gondwana.parent().unwrap();
        // Test binaries that run side by side would write the same files.
        let prefix =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("installed-", env!("CARGO_CRATE_NAME")));
        let mut make = Command::new("make");
        make.args(["--silent", "install"]).current_dir(root());
        make.arg(format!("BUILT={}", built.display())).arg(format!("PREFIX={}", prefix.display()));
        succeed(&mut make);
        prefix
    })
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {:?}\n{said}", output.status);
    output
}

/// Compiler options of all programs: every warning is an error.
const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-g"];

/// Compiles a program with these options into a file, as C (`gcc`) or as C++ (`g++`).
pub(crate) fn compile(compiler: &str, source: &Path, options: &[&str], to: &Path) {
    let library = prefix().join("lib");
    let mut command = Command::new(compiler);
    command.args(STRICT).args(options);
    command.args(if compiler == "g++" { ["-std=c++17", "-xc++"] } else { ["-std=c11", "-xc"] });
    command.arg(source).arg("-I").arg(prefix().join("include")).arg("-o").arg(to);
    command.arg("-L").arg(&library).arg("-lgondwana_api").arg("-pthread");
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    let said = succeed(&mut command);
    assert!(said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
}

/// The names of the programs in a folder of the sources.
pub(crate) fn sources(folder: &str) -> Vec<String> {
    let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> =
        files.filter_map(|name| Some(name.to_str()?.strip_suffix(".c")?.to_owned())).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}
