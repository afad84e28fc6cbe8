//! The file with the named sets of a user.

use crate::failure::Failure;
use gondwana_rset::Registry;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A folder with the file. Readers see the file as it was before a change or as it is after it; of those who change
/// it, one waits for the other.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// In the folder for what programs remember of a user.
    pub fn of_user() -> Result<Self, Failure> {
        // Relative paths are to be ignored, says the XDG specification, and so are empty ones.
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
        let missing = "there is no place for named sets: neither XDG_STATE_HOME nor HOME is an absolute path";
        Ok(Self { folder: state.ok_or_else(|| Failure::cannot(missing))?.join("gondwana") })
    }

    fn file(&self) -> PathBuf {
        self.folder.join("rsets.toml")
    }

    /// The sets; none if nobody has made any.
    pub fn read(&self) -> Result<Registry, Failure> {
        let file = self.file();
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Registry::default()),
            result => result.map_err(|error| failed(&file, "read", &error))?,
        };
        Registry::from_toml(&text)
            .map_err(|error| Failure::cannot(format!("{} has no valid sets: {error}", file.display())))
    }

    /// Reads the sets, changes them and writes them back, or leaves everything as it is.
    pub fn change(&self, change: impl FnOnce(&mut Registry) -> Result<(), Failure>) -> Result<(), Failure> {
        fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, "made", &error))?;
        // The file itself is replaced, so whoever waited for a lock on it would have the old one.
        let path = self.folder.join("rsets.lock");
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        // It is free again when the file is closed.
        let _lock = lock
            .and_then(|lock| lock.lock().map(|()| lock))
            .map_err(|error| failed(&path, "locked", &error))?;
        let mut names = self.read()?;
        change(&mut names)?;
        self.replace(&names.to_toml()).map_err(|error| failed(&self.file(), "written", &error))
    }

    /// A computer that loses power has the old file or the new one.
    fn replace(&self, text: &str) -> std::io::Result<()> {
        let new = self.folder.join("rsets.toml.new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.file())?;
        File::open(&self.folder)?.sync_all()
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::cannot(format!("{} cannot be {what}: {error}", path.display()))
}
