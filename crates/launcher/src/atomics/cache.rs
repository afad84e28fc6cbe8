//! What long searches found, kept in the user's folder for caches.
//!
//! A file is known by its version. Each build of this command has a folder of its own: another one may search differently.

use crate::hosts::protocol::digest;
use crate::run_registry::credentials::this_user;
use gondwana_elf::FileVersion;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::env;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folders of other builds are removed after this time without a new entry.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a search finds.
pub(super) trait Kept: Serialize + DeserializeOwned {
    /// Begins the names of its entries.
    const NAME: &'static str;
}

/// Where entries are kept; nowhere if the user has no such folder.
pub(super) struct SearchCache(Option<PathBuf>);

impl SearchCache {
    /// That of the user, below `XDG_CACHE_HOME` or `.cache` in the home folder.
    pub(super) fn of_user() -> Self {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let build = env::current_exe().and_then(fs::metadata).ok();
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Self(caches.zip(build).and_then(|(caches, build)| Self::folder(&caches, FileVersion::of(&build))))
    }

    /// The folder of this build in a folder for caches, which may be missing. What that is in is not made: accounts
    /// without a home have the name of one that must stay absent.
    fn folder(caches: &Path, build: FileVersion) -> Option<PathBuf> {
        caches.parent()?.is_dir().then(|| caches.join("gondwana/searched").join(short_digest(build)))
    }

    /// What was found in this version of a file.
    pub(super) fn get<T: Kept>(&self, version: FileVersion) -> Option<T> {
        let folder = self.0.as_deref()?;
        // What others could have put there says nothing.
        let of_user = fs::metadata(folder).is_ok_and(|folder| folder.uid() == this_user());
        let entry = of_user.then(|| fs::read(folder.join(name::<T>(version))).ok())??;
        serde_json::from_slice(&entry).ok()
    }

    /// Keeps what was found in this version of a file. Without room it is searched again next time.
    pub(super) fn put<T: Kept>(&self, version: FileVersion, found: &T) {
        if let Some(folder) = &self.0 {
            let _ = self.write(folder, &name::<T>(version), found);
        }
    }

    fn write<T: Kept>(&self, folder: &Path, entry: &str, found: &T) -> io::Result<()> {
        if !folder.exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            remove_old(folder);
        }
        // Others see a whole entry or none.
        let unfinished = folder.join(format!("{entry}.{}", std::process::id()));
        fs::write(&unfinished, serde_json::to_vec(found)?)?;
        fs::rename(&unfinished, folder.join(entry))
    }
}

/// Removes the folders beside this one that nobody has written to for long.
fn remove_old(folder: &Path) {
    let Some(Ok(folders)) = folder.parent().map(fs::read_dir) else { return };
    let is_old = |metadata: Metadata| {
        metadata
            .modified()
            .is_ok_and(|last| SystemTime::now().duration_since(last).is_ok_and(|age| age > OLD))
    };
    for other in folders.flatten().filter(|other| other.metadata().is_ok_and(is_old)) {
        let _ = fs::remove_dir_all(other.path());
    }
}

/// The name of the entry for a version of a file.
fn name<T: Kept>(version: FileVersion) -> String {
    format!("{}{}", T::NAME, short_digest(version))
}

/// What tells a version of a file from others.
fn short_digest(version: FileVersion) -> String {
    let mut name = digest(format!("{version:?}").as_bytes());
    name.truncate(32);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomics::search::{self, Searched};
    use std::borrow::Cow;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("gondwana-search-cache-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn version_of(path: &Path) -> FileVersion {
        FileVersion::of(&path.metadata().unwrap())
    }

    #[test]
    fn a_known_file_is_not_read_and_a_changed_one_is() {
        let folder = Folder::new("known");
        let cache = SearchCache(Some(folder.0.join("cache/a")));
        let file = folder.0.join("program");
        fs::write(&file, "no ELF file").unwrap();
        let unread = || -> io::Result<Cow<'_, [u8]>> { panic!("it is known") };
        let found = Searched { count: 3, lockable: vec![7], ..Searched::default() };
        assert_eq!(cache.get::<Searched>(version_of(&file)), None);
        cache.put(version_of(&file), &found);
        assert_eq!(search::file(&file, unread, &cache, search::of_image).unwrap(), found);
        let other = SearchCache(Some(folder.0.join("cache/b")));
        assert_eq!(other.get::<Searched>(version_of(&file)), None, "another build searches for itself");
        fs::write(&file, "not an ELF file").unwrap();
        let error =
            search::file(&file, || fs::read(&file).map(Cow::Owned), &cache, search::of_image).unwrap_err();
        assert!(!error.to_string().is_empty());
    }

    #[test]
    fn a_damaged_entry_is_none() {
        let folder = Folder::new("damaged");
        let cache = SearchCache(Some(folder.0.clone()));
        let version = version_of(&folder.0);
        cache.put(version, &Searched::default());
        assert_eq!(cache.get(version), Some(Searched::default()));
        fs::write(folder.0.join(name::<Searched>(version)), "{\"count\":").unwrap();
        assert_eq!(cache.get::<Searched>(version), None);
        let nowhere = SearchCache(None);
        nowhere.put(version, &Searched::default());
        assert_eq!(nowhere.get::<Searched>(version), None);
    }

    #[test]
    fn a_home_that_is_absent_stays_absent() {
        let folder = Folder::new("home");
        let build = version_of(&folder.0);
        assert_eq!(SearchCache::folder(&folder.0.join("nonexistent/.cache"), build), None);
        let kept = SearchCache::folder(&folder.0.join(".cache"), build).unwrap();
        SearchCache(Some(kept.clone())).put(build, &Searched::default());
        assert!(kept.join(name::<Searched>(build)).is_file());
    }

    #[test]
    fn folders_of_old_builds_are_removed() {
        let folder = Folder::new("old");
        let (old, new) = (folder.0.join("old"), folder.0.join("new"));
        fs::create_dir(&old).unwrap();
        let long_ago = SystemTime::now() - 2 * OLD;
        fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
        fs::create_dir(folder.0.join("recent")).unwrap();
        SearchCache(Some(new.clone())).put(version_of(&folder.0), &Searched::default());
        assert!(!old.exists() && new.exists() && folder.0.join("recent").exists());
    }
}
