//! What must be installed for a guest.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What a guest is made of.
#[derive(Clone, Debug)]
pub struct Tools {
    pub(crate) qemu: PathBuf,
    pub(crate) kernel: PathBuf,
    pub(crate) busybox: PathBuf,
}

/// Something is not installed, or this computer is no x86-64.
#[derive(Debug, thiserror::Error)]
#[error("no {what} ({mend})")]
pub struct Missing {
    what: &'static str,
    mend: &'static str,
}

impl Tools {
    /// Looks for all that is needed.
    pub fn find() -> Result<Self, Missing> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Missing {
                what: "x86-64 processor",
                mend: "guests are emulated for the programs of this one",
            });
        }
        let qemu = in_path("qemu-system-x86_64")
            .ok_or(Missing { what: "qemu-system-x86_64", mend: "package qemu-system-x86" })?;
        let busybox = in_path("busybox")
            .filter(|path| is_static(path))
            .ok_or(Missing { what: "statically linked busybox", mend: "package busybox-static" })?;
        let kernel = newest_kernel(Path::new("/boot")).ok_or(Missing {
            what: "/boot/vmlinuz-* that can be read",
            mend: "package linux-image-cloud-amd64, or chmod a+r where the distribution keeps it from users",
        })?;
        Ok(Self { qemu, kernel, busybox })
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether a program needs no loader, whose name it would hold near its beginning.
fn is_static(program: &Path) -> bool {
    /// Bytes at the beginning of a file that hold the name of its loader.
    const HEAD: usize = 4096;
    let loader = b"/ld-linux";
    fs::read(program).is_ok_and(|bytes| {
        let head = &bytes[..bytes.len().min(HEAD)];
        !head.windows(loader.len()).any(|window| window == loader)
    })
}

/// The kernel with the highest version among those that can be read.
fn newest_kernel(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let kernels = files.filter_map(|file| {
        let version = file.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        File::open(&file).is_ok().then(|| (numbers(&version), file))
    });
    kernels.max().map(|(_, file)| file)
}

/// The numbers in a version, most significant first.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert!(numbers("6.12.9-amd64") > numbers("6.1.0-56-cloud-amd64"));
        assert!(numbers("6.1.0-9-amd64") < numbers("6.1.0-56-cloud-amd64"));
    }
}
