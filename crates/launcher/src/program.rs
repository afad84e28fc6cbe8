//! Whether a program can be run on several nodes, found out before anything is started.

use crate::script;
use gondwana_console::failure::Failure;
use gondwana_elf::{Listing, Unsuitable, check_program, is_library_in_go};
use std::cell::OnceCell;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A program that exists and may be executed.
#[derive(Debug)]
pub struct Program {
    /// Its path, found as `execvp` would.
    pub path: PathBuf,
    /// Its contents.
    pub image: Vec<u8>,
    /// The libraries that the loader will load with it, once somebody has asked.
    libraries: OnceCell<Vec<PathBuf>>,
}

impl Program {
    /// The libraries that the loader will load with the program; none if all are of the language runtimes.
    ///
    /// # Errors
    /// If the loader cannot be asked.
    pub fn libraries(&self) -> io::Result<&[PathBuf]> {
        if let Some(libraries) = self.libraries.get() {
            return Ok(libraries);
        }
        let is_worth_it = gondwana_elf::may_load_own_libraries(&self.image);
        let libraries = if is_worth_it { self.all_libraries()? } else { vec![] };
        Ok(self.libraries.get_or_init(|| libraries))
    }

    /// All libraries that the loader would load with it.
    ///
    /// # Errors
    /// If the loader cannot be asked.
    pub fn all_libraries(&self) -> io::Result<Vec<PathBuf>> {
        Listing::ask(&self.path).and_then(Listing::paths)
    }
}

/// The path that `execvp` would execute for `name`, if there is one.
pub fn locate(name: &OsStr) -> Result<PathBuf, Failure> {
    let shown = name.to_string_lossy().into_owned();
    let missing = || Failure::not_found(format!("{shown}: no such program"));
    let path = if name.as_bytes().contains(&b'/') {
        PathBuf::from(name)
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
        let candidates: Vec<_> = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .filter(|file| file.is_file())
            .collect();
        let first = candidates.iter().find(|file| executable(file)).or(candidates.first());
        first.cloned().ok_or_else(|| {
            Failure::not_found(format!(
                "{shown}: no such program in PATH; for one in this folder say ./{shown}"
            ))
        })?
    };
    let metadata = fs::metadata(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => Failure::not_runnable(format!("{shown}: {error}")),
    })?;
    if metadata.is_dir() {
        return Err(Failure::not_runnable(format!("{shown} is a folder, not a program")));
    }
    if !metadata.is_file() {
        return Err(Failure::not_runnable(format!("{shown} is not a regular file")));
    }
    if !executable(&path) {
        return Err(Failure::not_runnable(format!("{shown} may not be executed: try chmod +x {shown}")));
    }
    Ok(path)
}

/// Finds `name` as `execvp` would.
pub fn find(name: &OsStr) -> Result<Program, Failure> {
    let shown = name.to_string_lossy().into_owned();
    let path = locate(name)?;
    let metadata = fs::metadata(&path).map_err(|error| Failure::not_runnable(format!("{shown}: {error}")))?;
    if metadata.mode() & (libc::S_ISUID | libc::S_ISGID) != 0 {
        return Err(Failure::not_runnable(format!(
            "{shown} is a set-user-id or set-group-id program: the system loads no library into it; \
             run a copy without that bit"
        )));
    }
    let image = fs::read(&path).map_err(|error| {
        Failure::not_runnable(format!("{shown} cannot be read, and so not be checked: {error}"))
    })?;
    Ok(Program { path, image, libraries: OnceCell::new() })
}

fn executable(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path is a C string.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Refuses programs into which the runtime library cannot be loaded.
pub fn loadable(shown: &str, image: &[u8]) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::not_runnable(format!("{shown} {why}")));
    if let Some(line) = script::first_line(image) {
        let interpreter = String::from_utf8_lossy(line);
        return refuse(format!("is a script for {interpreter}: name the program that it starts"));
    }
    refuse(match check_program(image) {
        Ok(()) => return Ok(()),
        Err(Unsuitable::Elf32) => "is a 32-bit program: only 64-bit x86 programs can run".to_owned(),
        Err(Unsuitable::NotElf) => "is not a program that Linux can run (no ELF file)".to_owned(),
        Err(Unsuitable::Damaged(error)) => format!("is a damaged ELF file: {error}"),
        Err(Unsuitable::Architecture(machine)) => {
            format!("is a program for another architecture ({machine}): this computer is x86-64")
        }
        Err(Unsuitable::NoProgram) => "is an object file or a core dump, not a program".to_owned(),
        Err(Unsuitable::Static) => {
            "is statically linked: no library can be loaded into it; link it dynamically (without -static)"
                .to_owned()
        }
        Err(Unsuitable::OtherLoader(interpreter)) => {
            format!("is linked against another C library ({interpreter}): only glibc programs can run")
        }
        Err(Unsuitable::Bare) => {
            "is linked with no library, not even with the C library, whose functions a run on nodes needs".to_owned()
        }
        Err(Unsuitable::Sanitized(option)) => {
            format!(
                "is built with -fsanitize={option}, which maps memory of its own where nodes share theirs: build it without"
            )
        }
        Err(Unsuitable::Go) => {
            "is a program in Go, whose runtime maps memory and wakes threads without the C library: nodes cannot share it; \
             run it without gondwana"
                .to_owned()
        }
    })
}

/// Refuses programs that are linked with a library that nodes cannot share.
pub fn linked(shown: &str, program: &Program) -> Result<(), Failure> {
    let libraries = program
        .libraries()
        .map_err(|error| Failure::system("listing the libraries of the program", &error))?;
    libraries.iter().find(|library| is_library_in_go(library)).map_or(Ok(()), |library| {
        Err(Failure::not_runnable(format!(
            "{shown} is linked with a library in Go ({}), whose runtime maps memory and wakes threads without the C library: \
             nodes cannot share it; run it without gondwana",
            library.display()
        )))
    })
}
