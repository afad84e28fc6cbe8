//! Programs for the simulator, and the command that runs them.

use super::c_api::root;
use super::whole::{LIMIT, Ran, run, whole};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command, in a folder.
pub(crate) fn gondwana(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(&whole().gondwana);
    command.args(arguments).current_dir(folder);
    command
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Ran {
    let ran = run(command, LIMIT);
    assert!(ran.status.is_some_and(|status| status.success()), "{command:?}: {}{}", ran.output, ran.errors);
    ran
}

/// Compiles one of the programs in `tests/simulated`; the executable.
pub(crate) fn compile(folder: &Path, file: &str) -> PathBuf {
    let source = root().join("tests/simulated").join(file);
    let compiler = if file.ends_with(".cpp") { "c++" } else { "cc" };
    let mut command =
        gondwana(folder, &[compiler, "-O1", "-g", "-Wall", "-Wextra", "-pthread", "-o", "program"]);
    let ran = succeed(command.arg(source));
    assert_eq!(ran.errors, "", "no warnings");
    folder.join("program")
}
