//! Creates the files that a command writes: under an unpredictable temporary name in the same folder, then by an
//! atomic rename. So no planted link is followed, no other process has the new file open already, and readers see the
//! old contents or the new ones.
//!
//! Devices, pipes and inherited descriptors (`/dev/stdout`, `>(...)` of the shell) are not replaced but written to.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The user only: the file contains command lines, paths and names.
    User,
    /// As the umask permits.
    Usual,
}

/// The target of a name.
#[derive(Debug)]
pub enum Destination {
    /// An open stream.
    Stream(File),
    /// A file that is created, and replaces an existing one.
    File,
}

/// Finds the target of a name.
///
/// # Errors
/// If it cannot be written.
pub fn destination(name: &Path) -> io::Result<Destination> {
    if let Some(descriptor) = inherited(name) {
        return duplicate(descriptor).map(Destination::Stream);
    }
    let Ok(there) = fs::symlink_metadata(name) else { return Ok(Destination::File) };
    let kind = there.file_type();
    if kind.is_symlink() {
        // A link of another user, or to a file, is replaced like a file.
        let stream = fs::metadata(name).ok().filter(|target| is_ours(&there) && takes_bytes(target));
        return stream.map_or(Ok(Destination::File), |target| open(name, &target));
    }
    match kind {
        kind if kind.is_file() => Ok(Destination::File),
        kind if kind.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        // Any user can make a pipe and read from it; only root makes devices.
        kind if kind.is_fifo() && !is_ours(&there) => {
            Err(io::Error::new(ErrorKind::PermissionDenied, "it is a pipe of another user"))
        }
        _ if takes_bytes(&there) => open(name, &there),
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "it is no file, no pipe and no character device")),
    }
}

fn takes_bytes(there: &Metadata) -> bool {
    there.file_type().is_fifo() || there.file_type().is_char_device()
}

/// True if this user or root owns it.
fn is_ours(there: &Metadata) -> bool {
    // SAFETY: the call cannot fail and touches no memory.
    let user = unsafe { libc::geteuid() };
    there.uid() == user || there.uid() == 0
}

/// Opens a pipe or a device that was checked.
fn open(name: &Path, seen: &Metadata) -> io::Result<Destination> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(name)?;
    let opened = file.metadata()?;
    if (opened.dev(), opened.ino()) != (seen.dev(), seen.ino()) {
        return Err(io::Error::other("something else has taken its name meanwhile"));
    }
    Ok(Destination::Stream(file))
}

/// The descriptor of this process that a name refers to.
fn inherited(name: &Path) -> Option<RawFd> {
    /// The most links to follow: `/dev/stdout` is one.
    const LINKS: usize = 8;
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    let mut name = name.to_owned();
    for _ in 0..LINKS {
        let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        if folder == own {
            return name.file_name()?.to_str()?.parse().ok();
        }
        let there = fs::symlink_metadata(&name).ok().filter(|there| there.is_symlink() && is_ours(there));
        name = folder.join(there.and_then(|_| fs::read_link(&name).ok())?);
    }
    None
}

/// Duplicates the descriptor, so that the file offset is shared with other writers.
fn duplicate(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: the call reads the flags of a descriptor, if there is one of that number.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the call makes a descriptor, which is nobody's yet.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// A new file without its final name. It is removed if it never gets that.
#[derive(Debug)]
pub struct Fresh {
    file: File,
    /// Its temporary path; `None` once it has its final name.
    at: Option<PathBuf>,
    name: PathBuf,
}

impl Fresh {
    /// Makes a temporary file in the folder of its final name.
    ///
    /// # Errors
    /// Of the system.
    pub fn beside(name: &Path, readers: Readers) -> io::Result<Self> {
        let is_folder = name.as_os_str().as_bytes().ends_with(b"/") || name.file_name().is_none();
        if is_folder || fs::symlink_metadata(name).is_ok_and(|there| there.is_dir()) {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let mode = match readers {
            Readers::User => 0o600,
            Readers::Usual => 0o666,
        };
        loop {
            let at = name.with_file_name(format!(".gondwana-{:016x}", getrandom::u64()?));
            // create_new opens no existing file and follows no link.
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&at) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return Ok(Self { file: file?, at: Some(at), name: name.to_owned() }),
            }
        }
    }

    /// Writes more.
    ///
    /// # Errors
    /// Of the system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its final name, replacing an existing file.
    ///
    /// # Errors
    /// Of the system. The file is removed then.
    pub fn settle(mut self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        let Some(at) = &self.at else { return Ok(file) };
        fs::rename(at, &self.name)?;
        self.at = None;
        Ok(file)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(at) = &self.at {
            // A hidden file is left at the worst.
            let _ = fs::remove_file(at);
        }
    }
}

/// Replaces the file of a name, or writes to a stream.
///
/// # Errors
/// Of the system.
pub fn replace(name: &Path, contents: &[u8], readers: Readers) -> io::Result<()> {
    match destination(name)? {
        Destination::Stream(mut stream) => stream.write_all(contents),
        Destination::File => {
            let mut fresh = Fresh::beside(name, readers)?;
            fresh.write(contents)?;
            fresh.settle().map(drop)
        }
    }
}

/// The name with a suffix.
pub fn with_suffix(name: &Path, suffix: &str) -> PathBuf {
    let mut whole = name.as_os_str().to_owned();
    whole.push(OsStr::new(suffix));
    whole.into()
}

#[cfg(test)]
mod tests;
