//! Which shared libraries a program loads when it starts.
//!
//! The dynamic loader itself is asked: it alone knows how all its search paths, caches and variables combine. That takes
//! longer than anything else that the launcher does, so it is asked only where the answer is not known beforehand.

use crate::{Dependencies, is_runtime_library};
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The only loader whose programs are accepted.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Names libraries that the loader puts into every process.
const PRELOADED: &str = "/etc/ld.so.preload";

/// Has a program's loader list what it would map, instead of starting the program.
const TRACE: &str = "LD_TRACE_LOADED_OBJECTS";

/// An object that the loader maps with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// The name by which it was looked for.
    pub name: String,
    /// Its file; `None` if the loader has not found one.
    pub path: Option<PathBuf>,
    /// Where the loader maps it; 0 if it does not.
    pub address: u64,
}

/// A loader that lists the libraries of a program.
#[derive(Debug)]
pub struct Listing(Child);

impl Listing {
    /// Asks for the libraries of a program; the answer comes while the caller does something else.
    ///
    /// # Errors
    /// If the program's path does not exist, or the loader cannot be started.
    pub fn ask(program: &Path) -> io::Result<Self> {
        let mut loader = Command::new(LOADER);
        loader.arg("--list").arg(program.canonicalize()?);
        loader.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        loader.spawn().map(Self)
    }

    /// Asks for all that is mapped when a command starts its program, which does not run. The addresses are those of a process
    /// like this one, with the changes that the command makes.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn trace(command: &mut Command) -> io::Result<Self> {
        command.env(TRACE, "1").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// All objects, in the order in which the loader maps them; the kernel's own is left out.
    ///
    /// # Errors
    /// If the loader's output cannot be read.
    pub fn objects(self) -> io::Result<Vec<ListedObject>> {
        Ok(parse_objects(&self.0.wait_with_output()?.stdout))
    }

    /// The libraries, as paths. Those that the loader cannot find are left out; it names them when it starts the program.
    ///
    /// # Errors
    /// If the loader's output cannot be read.
    pub fn paths(self) -> io::Result<Vec<PathBuf>> {
        Ok(self.objects()?.into_iter().filter_map(|object| object.path).collect())
    }
}

/// True if a program with these contents may load libraries that are not of the language runtimes: only the loader knows.
#[must_use]
pub fn may_load_own_libraries(image: &[u8]) -> bool {
    !(loader_is_left_alone() && needs_runtime_only(image))
}

/// True if nothing tells the loader to load other libraries than programs need, or from elsewhere.
fn loader_is_left_alone() -> bool {
    let is_told = env::vars_os().any(|(name, _)| name.as_bytes().starts_with(b"LD_"));
    !is_told && !Path::new(PRELOADED).exists()
}

/// True if a program says that it needs no libraries but those of the language runtimes, from where the system has them:
/// these need only each other.
fn needs_runtime_only(image: &[u8]) -> bool {
    let of_runtime = |name: &String| !name.contains('/') && is_runtime_library(Path::new(name));
    Dependencies::of(image)
        .is_some_and(|Dependencies { needed, redirects, .. }| !redirects && needed.iter().all(of_runtime))
}

/// Reads lines such as `libm.so.6 => /lib/libm.so.6 (0x00007f...)`, `/opt/libx.so (0x00007f...)` and `libx.so => not found`.
fn parse_objects(listing: &[u8]) -> Vec<ListedObject> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let object = |line: &[u8]| {
        let line = line.trim_ascii();
        let arrow = line.windows(4).position(|window| window == b" => ");
        let Some(end) = line.windows(4).rposition(|window| window == b" (0x") else {
            let name = text(&line[..arrow?]);
            return line.ends_with(b" => not found").then_some(ListedObject { name, path: None, address: 0 });
        };
        let path = Path::new(OsStr::from_bytes(&line[arrow.map_or(0, |arrow| arrow + 4)..end]));
        let digits = text(line[end + 4..].strip_suffix(b")")?);
        path.is_absolute().then_some(())?;
        Some(ListedObject {
            name: text(&line[..arrow.unwrap_or(end)]),
            path: Some(path.to_owned()),
            address: u64::from_str_radix(&digits, 16).ok()?,
        })
    };
    listing.split(|&byte| byte == b'\n').filter_map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn objects_are_read_from_the_loaders_listing() {
        let listing = b"\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f01)\n\
            \t./own.so => /home/a b/own.so (0x00007f02)\n\
            \tlibgone.so => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n\
            \tstatically linked\n";
        let found = |name: &str, path: &str, address| ListedObject {
            name: name.to_owned(),
            path: Some(PathBuf::from(path)),
            address,
        };
        let gone = ListedObject { name: "libgone.so".to_owned(), path: None, address: 0 };
        assert_eq!(
            parse_objects(listing),
            [
                found("libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6", 0x7f01),
                found("./own.so", "/home/a b/own.so", 0x7f02),
                gone,
                found("/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2", 0x7f03),
            ]
        );
    }

    #[test]
    fn the_loader_of_a_program_tells_what_it_would_map() {
        let objects = Listing::trace(&mut Command::new("/bin/true")).unwrap().objects().unwrap();
        let c = objects.iter().find(|object| object.name == "libc.so.6").unwrap();
        assert!(c.path.as_ref().unwrap().is_file() && c.address > 0, "{c:?}");
    }

    /// The contents of a program linked with these options, in a folder with a library of its own.
    fn linked(name: &str, options: &[&str]) -> Vec<u8> {
        let folder = env::temp_dir().join(format!("gondwana-libraries-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.c"), "int main(void) { return 0; }\n").unwrap();
        fs::write(folder.join("own.c"), "int own(void) { return 0; }\n").unwrap();
        let gcc = |arguments: &[&str]| {
            assert!(Command::new("gcc").args(arguments).current_dir(&folder).status().unwrap().success());
        };
        gcc(&["-shared", "-fPIC", "own.c", "-o", "libown.so"]);
        gcc(&[&["-Wl,--no-as-needed", "a.c", "-L."], options].concat());
        let image = fs::read(folder.join("a.out")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        image
    }

    #[test]
    fn programs_of_the_language_runtimes_alone_are_known() {
        assert!(needs_runtime_only(&linked("plain", &[])));
        assert!(needs_runtime_only(&linked("usual", &["-pthread", "-lm", "-lstdc++"])));
    }

    #[test]
    fn programs_with_other_libraries_or_places_for_them_are_not() {
        assert!(!needs_runtime_only(&linked("own", &["-lown"])));
        assert!(!needs_runtime_only(&linked("path", &["-Wl,-rpath,$ORIGIN"])));
        assert!(!needs_runtime_only(&linked("filter", &["-Wl,--audit,libx.so"])));
        assert!(!needs_runtime_only(&linked("static", &["-static"])));
        assert!(!needs_runtime_only(b"no program"));
    }
}
