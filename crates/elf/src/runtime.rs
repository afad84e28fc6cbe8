//! Which libraries belong to the runtimes of C, C++ and OpenMP.

use std::path::Path;

/// The libraries of the C, C++ and OpenMP runtimes, as far as their names do not change between versions, and Gondwana's
/// own: each node has its own copy of their data.
const RUNTIME: [&str; 20] = [
    "ld-linux-x86-64.so.",
    "libanl.so.",
    "libBrokenLocale.so.",
    "libc.so.",
    "libdl.so.",
    "libgcc_s.so.",
    "libgomp.so.",
    "libgondwana.so",
    "libgondwana_api.so",
    "libiomp5.so",
    "libm.so.",
    "libmvec.so.",
    "libnss_",
    "libomp.so.",
    "libomp5.so",
    "libpthread.so.",
    "libresolv.so.",
    "librt.so.",
    "libstdc++.so.",
    "libthread_db.so.",
];

/// True for a library of the language runtimes. Every other library counts as the program's own, wherever it is: its
/// variables must be common to all threads, as the blocks are that they point to.
///
/// # Examples
/// ```
/// use gondwana_elf::is_runtime_library;
/// use std::path::Path;
///
/// assert!(is_runtime_library(Path::new("/lib/x86_64-linux-gnu/libc.so.6")));
/// assert!(!is_runtime_library(Path::new("/lib/x86_64-linux-gnu/libcrypto.so.3")));
/// ```
#[must_use]
pub fn is_runtime_library(path: &Path) -> bool {
    let name = path.file_name().map_or(&[][..], |name| name.as_encoded_bytes());
    RUNTIME.iter().any(|runtime| name.starts_with(runtime.as_bytes()))
}

/// True for the file of a library whose variables all threads share. The executable, and what the kernel maps into each
/// process, have no path.
///
/// # Examples
/// ```
/// use gondwana_elf::is_of_program;
/// use std::path::Path;
///
/// assert!(is_of_program(Path::new("/home/me/libmine.so")));
/// assert!(!is_of_program(Path::new("linux-vdso.so.1")));
/// ```
#[must_use]
pub fn is_of_program(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&b'/') && !is_runtime_library(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_languages_runtimes_are_private() {
        let of_program = |path: &str| is_of_program(Path::new(path));
        assert!(
            !of_program("/lib/x86_64-linux-gnu/libc.so.6")
                && !of_program("/opt/gcc/lib64/libstdc++.so.6.0.30")
        );
        assert!(!of_program("/usr/lib/x86_64-linux-gnu/libgomp.so.1") && !of_program(""));
        assert!(of_program("/lib/x86_64-linux-gnu/libcrypto.so.3") && of_program("./libcrypt.so"));
        assert!(of_program("/home/me/libmine.so") && of_program("/home/me/libm_fast.so"));
        assert!(!of_program("/opt/gondwana/lib/libgondwana_api.so.0"));
        assert!(of_program("/home/me/libgondwana_api.so.d/libmine.so"));
    }
}
