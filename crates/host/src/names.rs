//! The file with the named sets of a user.

use gondwana_rset::Registry;
use gondwana_topology::DescriptionError;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Why named sets cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// No variable gives the folder.
    #[error("there is no place for named sets: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoPlace,
    /// The system refuses something.
    #[error("{} cannot be {what}: {error}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The action, as in "read".
        what: &'static str,
        /// The system's reason.
        error: io::Error,
    },
    /// The file is invalid; the user may have edited it.
    #[error("{} has no valid sets: {error}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The error.
        error: DescriptionError,
    },
}

/// The folder with the file. Changes are atomic for readers, and writers wait for each other.
#[derive(Debug)]
pub struct Names {
    folder: PathBuf,
}

impl Names {
    /// In the user's state folder (XDG_STATE_HOME).
    pub fn of_user() -> Result<Self, NamesError> {
        // The XDG specification ignores relative and empty paths.
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
        Ok(Self { folder: state.ok_or(NamesError::NoPlace)?.join("gondwana") })
    }

    /// The sets of the user; none without a state folder, as in an initramfs.
    pub fn known() -> Result<Registry, NamesError> {
        Self::of_user().map_or_else(|_| Ok(Registry::default()), |names| names.read())
    }

    fn file(&self) -> PathBuf {
        self.folder.join("rsets.toml")
    }

    /// The sets; none if there is no file.
    pub fn read(&self) -> Result<Registry, NamesError> {
        let path = self.file();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Registry::default()),
            result => result.map_err(failed(&path, "read"))?,
        };
        Registry::from_toml(&text).map_err(|error| NamesError::Invalid { path, error })
    }

    /// Reads the sets, changes them and writes them back; after an error the file is unchanged.
    pub fn change<E: From<NamesError>>(
        &self,
        change: impl FnOnce(&mut Registry) -> Result<(), E>,
    ) -> Result<(), E> {
        fs::create_dir_all(&self.folder).map_err(failed(&self.folder, "made"))?;
        // The lock is a separate file, because the file itself is replaced.
        let path = self.folder.join("rsets.lock");
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        // It is free again when the file is closed.
        let _lock = lock.and_then(|lock| lock.lock().map(|()| lock)).map_err(failed(&path, "locked"))?;
        let mut names = self.read()?;
        change(&mut names)?;
        Ok(self.replace(&names.to_toml()).map_err(failed(&self.file(), "written"))?)
    }

    /// After a power failure the old or the new file exists.
    fn replace(&self, text: &str) -> io::Result<()> {
        let new = self.folder.join("rsets.toml.new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.file())?;
        File::open(&self.folder)?.sync_all()
    }
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> NamesError {
    let path = path.to_owned();
    move |error| NamesError::System { path, what, error }
}
