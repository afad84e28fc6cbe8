//! Which files are mapped when a program starts as a node, and whether they are the same on all hosts.
//!
//! A pointer to a function or a constant means the same on every node only if the same file is mapped at the same address
//! there. The loader of each host is asked, so that the comparison is over before any node has a process.

use crate::hosts::protocol::{digest, hexadecimal};
use crate::process::preload::preloaded;
use crate::process::spawn::fix_addresses;
use gondwana_console::failure::Failure;
use gondwana_elf::{ElfFile, ListedObject, Listing};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that is mapped when a program starts, on one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedObject {
    /// The name by which the loader has looked for it.
    pub name: String,
    /// The file, with all links followed; empty if the loader has found none.
    pub path: PathBuf,
    /// Its build ID, or else the digest of its contents.
    pub identity: String,
    /// Its first address; 0 for the program itself.
    pub address: u64,
}

/// A file that is not the same on two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference<'a> {
    /// The files differ.
    Contents(&'a MappedObject, &'a MappedObject),
    /// The second host has none.
    Missing(&'a MappedObject),
    /// The second host maps one that the first does not.
    Added(&'a MappedObject),
    /// It is mapped at another address.
    Address(&'a MappedObject, &'a MappedObject),
}

/// What the loader maps for a program that is started with this environment and the runtime library: the program first.
///
/// # Errors
/// If the program cannot be started, or a file of it cannot be read.
pub fn of_program(
    program: &Path,
    library: &Path,
    environment: &[(OsString, OsString)],
) -> Result<Vec<MappedObject>, Failure> {
    let failed = |error: &io::Error| Failure::system("listing the libraries of the program", error);
    let mut command = Command::new(program);
    let before = environment.iter().find(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value);
    command.env_clear().envs(environment.iter().cloned()).env("LD_PRELOAD", preloaded(library, before)?);
    // SAFETY: the function is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            // As in a node: addresses are compared too.
            fix_addresses();
            Ok(())
        });
    }
    let listed = Listing::trace(&mut command).and_then(Listing::objects).map_err(|error| failed(&error))?;
    let own =
        ListedObject { name: program.display().to_string(), path: Some(program.to_owned()), address: 0 };
    // Hosts may have the runtime library in different folders.
    let of_runtime = |object: &ListedObject| object.path.as_deref() == Some(library);
    let named = listed.into_iter().map(|object| match library.file_name() {
        Some(name) if of_runtime(&object) => {
            ListedObject { name: name.to_string_lossy().into_owned(), ..object }
        }
        _ => object,
    });
    std::iter::once(own).chain(named).map(identified).collect()
}

fn identified(ListedObject { name, path, address }: ListedObject) -> Result<MappedObject, Failure> {
    let Some(path) = path else {
        return Ok(MappedObject { name, path: PathBuf::new(), identity: String::new(), address });
    };
    let path = path.canonicalize().unwrap_or(path);
    let identity =
        identity(&path).map_err(|error| Failure::cannot(format!("{}: {error}", path.display())))?;
    Ok(MappedObject { name, path, identity, address })
}

/// The build ID of a file, or the digest of all of it if it has none.
fn identity(path: &Path) -> io::Result<String> {
    let build_id = ElfFile::open(path).map(|elf| elf.build_id).unwrap_or_default();
    if build_id.is_empty() {
        return Ok(digest(&fs::read(path)?));
    }
    Ok(hexadecimal(&build_id))
}

/// The first difference between what two hosts map; the program itself, which comes first, is compared by its contents
/// elsewhere. Different files explain different addresses, so they come first.
pub fn difference<'a>(one: &'a [MappedObject], other: &'a [MappedObject]) -> Option<Difference<'a>> {
    let (one, other) = (one.get(1..).unwrap_or_default(), other.get(1..).unwrap_or_default());
    let in_other = |object: &MappedObject| other.iter().find(|known| known.name == object.name);
    let contents = one.iter().find_map(|object| match in_other(object) {
        None => Some(Difference::Missing(object)),
        Some(there) if there.identity == object.identity => None,
        Some(there) if there.identity.is_empty() => Some(Difference::Missing(object)),
        Some(there) if object.identity.is_empty() => Some(Difference::Added(there)),
        Some(there) => Some(Difference::Contents(object, there)),
    });
    let added = || other.iter().find(|object| one.iter().all(|known| known.name != object.name));
    let moved = || {
        let mut pairs = one.iter().filter_map(|object| Some((object, in_other(object)?)));
        pairs.find(|(object, there)| object.address != there.address)
    };
    contents
        .or_else(|| added().map(Difference::Added))
        .or_else(|| moved().map(|(object, there)| Difference::Address(object, there)))
}

impl Difference<'_> {
    /// A sentence that names the file and both hosts, and says what to do.
    pub fn sentence(&self, one: &str, other: &str) -> String {
        match self {
            Self::Contents(object, there) => {
                let elsewhere = if there.path == object.path {
                    String::new()
                } else {
                    format!(", where it is {}", there.path.display())
                };
                format!(
                    "{} on host {one} is not the same file as on host {other}{elsewhere}: install the same version on all hosts",
                    object.path.display()
                )
            }
            Self::Missing(object) => format!(
                "{} is loaded on host {one}, but host {other} has no {}: install the same version on all hosts",
                object.path.display(),
                object.name
            ),
            Self::Added(object) => format!(
                "{} is loaded on host {other}, but host {one} has no {}: install the same version on all hosts",
                object.path.display(),
                object.name
            ),
            Self::Address(object, there) => format!(
                "{} is loaded at {:#x} on host {one} and at {:#x} on host {other}, so that pointers would differ: give both \
                 the same stack limit (ulimit -s) and kernel",
                object.path.display(),
                object.address,
                there.address
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, identity: &str, address: u64) -> MappedObject {
        let path = PathBuf::from(format!("/lib/{name}"));
        MappedObject { name: name.to_owned(), path, identity: identity.to_owned(), address }
    }

    #[test]
    fn a_programs_objects_are_the_same_twice() {
        let library = Path::new("/lib/x86_64-linux-gnu/libm.so.6");
        let list = || of_program(Path::new("/bin/true"), library, &[]).unwrap();
        let first = list();
        assert!(first.iter().any(|object| object.name == "libc.so.6"), "{first:?}");
        assert!(first.iter().any(|object| object.name.contains("libm.so")), "{first:?}");
        assert!(first.iter().all(|object| !object.identity.is_empty()));
        assert_eq!(difference(&first, &list()), None, "addresses are fixed");
    }

    #[test]
    fn differences_are_found_and_said() {
        let (program, a, b) = (object("p", "1", 0), object("a.so", "2", 10), object("b.so", "3", 20));
        let one = [program.clone(), a.clone(), b.clone()];
        let say = |other: &[MappedObject]| difference(&one, other).map(|found| found.sentence("x", "y"));
        assert_eq!(say(&one), None);
        let changed = object("b.so", "4", 99);
        assert_eq!(
            say(&[program.clone(), a.clone(), changed]).unwrap(),
            "/lib/b.so on host x is not the same file as on host y: install the same version on all hosts"
        );
        let gone = MappedObject { path: PathBuf::new(), ..object("b.so", "", 0) };
        let no =
            "/lib/b.so is loaded on host x, but host y has no b.so: install the same version on all hosts";
        assert_eq!(say(&[program.clone(), a.clone(), gone]).unwrap(), no);
        assert_eq!(say(&[program.clone(), a.clone()]).unwrap(), no);
        let more = object("c.so", "5", 30);
        let said = say(&[program.clone(), a.clone(), b.clone(), more]).unwrap();
        assert!(said.starts_with("/lib/c.so is loaded on host y, but host x has no c.so"), "{said}");
        let said = say(&[program, a, object("b.so", "3", 21)]).unwrap();
        assert!(said.contains("at 0x14 on host x and at 0x15 on host y"), "{said}");
    }

    #[test]
    fn a_file_without_a_build_id_is_known_by_its_contents() {
        let own = std::env::temp_dir().join(format!("gondwana-identity-{}", std::process::id()));
        fs::write(&own, "no ELF file").unwrap();
        assert_eq!(identity(&own).unwrap(), digest(b"no ELF file"));
        fs::remove_file(&own).unwrap();
    }
}
