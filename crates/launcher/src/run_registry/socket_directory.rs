//! The directories of launchers' sockets, which only their user and root can access.
//!
//! A predictable name could be taken by another user, so that the run could not be queried. Only the user can write
//! to `XDG_RUNTIME_DIR` or `/run/user`; in `/tmp` the owner of a directory is checked, and a new one has a random
//! name.

use super::credentials;
use crate::random::random;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::iter;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the system has a directory for each user.
const USERS: &str = "/run/user";

/// The folder in which all users may make directories.
const SHARED: &str = "/tmp";

/// The name of the directory in a private folder of the user.
const NAME: &str = "gondwana";

/// The prefix of the names of directories in [`SHARED`].
const BEGIN: &str = "gondwana-";

/// The most names in [`SHARED`] that a launcher checks for an existing directory: other users may fill the folder.
const LOOKS: usize = 10_000;

/// A directory for sockets, which was private when it was opened.
#[derive(Debug)]
pub(super) struct SocketDirectory {
    directory: File,
    /// Its owner.
    user: u32,
    path: PathBuf,
}

impl SocketDirectory {
    /// Directories for this process, the best one first; each is made when the iterator reaches it.
    pub(super) fn own() -> impl Iterator<Item = Self> {
        let user = credentials::this_user();
        let runtime = runtime_directories(user).into_iter().map(move |parent| Self::made_in(&parent, user));
        runtime.chain(iter::once_with(move || Self::made_in_shared(user))).filter_map(Result::ok)
    }

    /// All directories that this user may access: the user's own, for root those of all users.
    pub(super) fn all() -> Vec<Self> {
        let user = credentials::this_user();
        let own = runtime_directories(user).into_iter().map(|parent| (parent, user));
        let everybody = numbered(USERS, "").filter(|_| user == 0);
        let runtime = own.chain(everybody).map(|(parent, owner)| (parent.join(NAME), owner));
        let shared = numbered(SHARED, BEGIN).filter(|(_, owner)| user == 0 || *owner == user);
        let found: BTreeSet<_> = runtime.chain(shared).collect();
        found.into_iter().filter_map(|(path, owner)| Self::open(path, owner).ok()).collect()
    }

    /// The directory of a process below the folder that its environment names, if its environment is readable.
    pub(super) fn of_process(process: u32) -> Option<Self> {
        let owner = fs::metadata(format!("/proc/{process}")).ok()?.uid();
        let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
        let value = |entry: &[u8]| Some(entry.strip_prefix(b"XDG_RUNTIME_DIR=")?.to_vec());
        let parent = environment.split(|&byte| byte == 0).find_map(value)?;
        Self::open(absolute(OsString::from_vec(parent).into())?.join(NAME), owner).ok()
    }

    /// Its owner.
    pub(super) fn user(&self) -> u32 {
        self.user
    }

    /// A file in it. The path leads through the open directory, so that it cannot be redirected and fits into a
    /// socket address of 107 bytes.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd()))
    }

    /// The names of its files.
    pub(super) fn names(&self) -> impl Iterator<Item = OsString> {
        names(&self.file("."))
    }

    /// Keeps programs that remove old files away from the directory, as long as this process has it open.
    pub(super) fn hold(&self) {
        // An error of the lock is ignored.
        let _ = self.directory.try_lock_shared();
    }

    /// Removes the directory if it is empty.
    pub(super) fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.path);
    }

    fn open(path: PathBuf, user: u32) -> io::Result<Self> {
        Ok(Self { directory: private(&path, user)?, user, path })
    }

    /// The directory in a private folder of the user.
    fn made_in(parent: &Path, user: u32) -> io::Result<Self> {
        private(parent, user)?;
        let path = parent.join(NAME);
        match make(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Self::open(path, user),
        }
    }

    /// A directory in the folder that all users may write to.
    fn made_in_shared(user: u32) -> io::Result<Self> {
        let begin = format!("{BEGIN}{user}-");
        let ours = |name: &OsString| name.as_encoded_bytes().starts_with(begin.as_bytes());
        let found = names(Path::new(SHARED)).take(LOOKS).filter(ours);
        if let Some(place) =
            found.filter_map(|name| Self::open(Path::new(SHARED).join(name), user).ok()).next()
        {
            return Ok(place);
        }
        let number = u64::from_ne_bytes(random().map_err(|_| ErrorKind::Unsupported)?);
        let path = Path::new(SHARED).join(format!("{begin}{number:016x}"));
        // The name is unpredictable: if it exists nevertheless, it is not ours.
        make(&path)?;
        Self::open(path, user)
    }
}

/// The private folders of the user, first the one that the environment names.
fn runtime_directories(user: u32) -> Vec<PathBuf> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").and_then(|path| absolute(path.into()));
    named.into_iter().chain([Path::new(USERS).join(user.to_string())]).collect()
}

/// The same path without a trailing slash, with which a symbolic link would be followed.
fn absolute(path: PathBuf) -> Option<PathBuf> {
    path.is_absolute().then(|| path.components().collect())
}

/// Makes a private directory.
fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Opens a directory, which must be private to this user and no symbolic link.
fn private(path: &Path, user: u32) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = directory.metadata()?;
    if metadata.uid() != user || metadata.mode() & 0o077 != 0 {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(directory)
}

/// The names in a directory, none if it cannot be read.
fn names(directory: &Path) -> impl Iterator<Item = OsString> + use<> {
    fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.file_name())
}

/// The entries with a user's number in their name, behind `begin`, and that number.
fn numbered(directory: &'static str, begin: &'static str) -> impl Iterator<Item = (PathBuf, u32)> {
    let number = move |name: &OsStr| {
        let digits = name.to_str()?.strip_prefix(begin)?.split('-').next()?;
        digits.parse().ok().filter(|number: &u32| number.to_string() == digits)
    };
    names(Path::new(directory)).filter_map(move |name| {
        let user = number(&name)?;
        Some((Path::new(directory).join(name), user))
    })
}
