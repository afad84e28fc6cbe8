//! `gondwana cc` and `gondwana c++`: gcc and g++ with the hooks of the thread sanitizer, but our library for them.

use super::program::memory_file;
use super::{LIBRARY, PACKAGE};
use gondwana_console::failure::Failure;
use gondwana_launcher::capabilities;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// What comes after `gondwana cc`: all of it is the compiler's.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct CompileOptions {
    /// Arguments of the compiler
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Functions of the C library whose calls by the program the library sees.
const WRAPPED: [&str; 7] = ["memcpy", "memmove", "memset", "memcmp", "strlen", "strcpy", "strcmp"];

/// Becomes the compiler.
pub(crate) fn compile(compiler: &str, options: &CompileOptions) -> Result<ExitCode, Failure> {
    refuse(&options.arguments)?;
    let library = capabilities::library(LIBRARY, PACKAGE)?;
    let folder = library.parent().unwrap_or(Path::new("/"));
    let specs = memory_file("gondwana-specs", &specs(folder)?)?;
    let mut command = Command::new(compiler);
    // The compiler's own processes inherit the file.
    command.arg(format!("-specs=/proc/self/fd/{}", specs.as_raw_fd()));
    if !options.arguments.iter().any(|argument| argument == "-shared" || argument == "-r") {
        // The program's data has to be at the same addresses in each run.
        command.arg("-no-pie");
    }
    let error = command.args(&options.arguments).exec();
    Err(Failure::cannot(format!("{compiler} cannot be run: {error}; the simulator needs gcc")))
}

/// Refuses what would give a program that cannot be simulated.
fn refuse(arguments: &[OsString]) -> Result<(), Failure> {
    for argument in arguments.iter().filter_map(|argument| argument.to_str()) {
        let why = match argument {
            "-static" | "-static-pie" => "the library for the simulator cannot be linked statically",
            "-pie" => "a program for the simulator has its data at fixed addresses",
            "-fopenacc" => "programs for accelerators cannot be simulated",
            sanitizer if sanitizer.starts_with("-fsanitize=") => {
                "the simulator takes the place of a sanitizer"
            }
            _ => continue,
        };
        return Err(Failure::usage(format!("{argument}: {why}: leave the option away")));
    }
    Ok(())
}

/// What is different from the usual compiler, in the language of its driver: the hooks, and what is linked.
fn specs(folder: &Path) -> Result<String, Failure> {
    let folder = folder.to_str().filter(|name| !name.contains(|c: char| c.is_whitespace() || c == '%'));
    let Some(folder) = folder else {
        return Err(Failure::cannot(format!(
            "the folder of {LIBRARY} has a space or a % in its name, which the compiler takes for something else: \
             install Gondwana elsewhere"
        )));
    };
    let name = LIBRARY.trim_start_matches("lib").trim_end_matches(".so");
    let wraps: String = WRAPPED.iter().map(|function| format!(" --wrap={function}")).collect();
    // Before the program's own files: the library has to come before C++'s.
    Ok(format!(
        "*cc1_options:\n+ -fsanitize=thread\n\n\
         *startfile:\n+ --push-state --no-as-needed -L{folder} -rpath {folder} -l{name} --pop-state\n\n\
         *link:\n+{wraps} -z now\n\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_simulated_is_refused() {
        let refused = |text: &str| refuse(&[OsString::from(text)]).map_err(|failure| failure.message);
        assert_eq!(refused("-O2"), Ok(()));
        for option in ["-static", "-pie", "-fopenacc", "-fsanitize=address"] {
            assert!(refused(option).unwrap_err().starts_with(option));
        }
    }

    #[test]
    fn a_folder_that_the_compiler_would_misread_is_refused() {
        assert!(
            specs(Path::new("/usr/lib")).unwrap().contains("-L/usr/lib -rpath /usr/lib -lgondwana_hooks ")
        );
        assert!(specs(Path::new("/my files")).is_err() && specs(Path::new("/50%")).is_err());
    }
}
