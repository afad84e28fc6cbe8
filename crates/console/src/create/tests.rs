use super::*;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};

/// A folder that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("gondwana-create-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(name: &Path) -> u32 {
    fs::symlink_metadata(name).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let folder = Folder::new("link");
    let (victim, name) = (folder.file("victim"), folder.file("a.json"));
    fs::write(&victim, "precious").unwrap();
    for target in [&victim, &folder.file("nowhere")] {
        symlink(target, &name).unwrap();
        replace(&name, b"new", Readers::User).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"new");
        assert!(fs::symlink_metadata(&name).unwrap().is_file());
        fs::remove_file(&name).unwrap();
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(folder.names(), ["victim"]);
}

#[test]
fn a_file_is_replaced_whole_and_for_its_readers() {
    let folder = Folder::new("whole");
    let name = folder.file("a.json");
    fs::write(&name, "a long text that was there before").unwrap();
    fs::set_permissions(&name, fs::Permissions::from_mode(0o644)).unwrap();
    let mut before = File::open(&name).unwrap();
    replace(&name, b"new", Readers::User).unwrap();
    assert_eq!((fs::read(&name).unwrap(), mode(&name)), (b"new".to_vec(), 0o600));
    // A reader that had it open has the old contents.
    let mut had = String::new();
    before.read_to_string(&mut had).unwrap();
    assert_eq!(had, "a long text that was there before");
    replace(&name, b"newer", Readers::Usual).unwrap();
    assert_eq!(mode(&name) & 0o600, 0o600);
    assert_eq!(folder.names(), ["a.json"]);
}

#[test]
fn what_gets_no_name_goes_away() {
    let folder = Folder::new("away");
    let name = folder.file("a.gwr");
    let mut fresh = Fresh::beside(&name, Readers::User).unwrap();
    fresh.write(b"begun").unwrap();
    assert_eq!(folder.names().len(), 1);
    drop(fresh);
    assert!(folder.names().is_empty());
    fs::create_dir(&name).unwrap();
    for folder in [&name, &folder.file("b/"), Path::new("/"), Path::new("..")] {
        let error = Fresh::beside(folder, Readers::User).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EISDIR), "{}", folder.display());
    }
    assert_eq!(destination(&name).unwrap_err().raw_os_error(), Some(libc::EISDIR));
}

#[test]
fn devices_and_pipes_are_written_to() {
    let folder = Folder::new("pipe");
    assert!(matches!(destination(Path::new("/dev/null")).unwrap(), Destination::Stream(_)));
    let (pipe, link) = (folder.file("pipe"), folder.file("link"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    symlink(&pipe, &link).unwrap();
    for name in [&pipe, &link] {
        let reader = pipe.clone();
        let reader = std::thread::spawn(move || fs::read(reader).unwrap());
        replace(name, b"through", Readers::User).unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
    }
    assert_eq!(folder.names(), ["link", "pipe"]);
}

#[test]
fn descriptors_of_this_process_are_written_to_where_they_are() {
    let folder = Folder::new("descriptor");
    let name = folder.file("output");
    let mut output = File::create(&name).unwrap();
    output.write_all(b"one ").unwrap();
    let link = folder.file("link");
    symlink(format!("/proc/self/fd/{}", output.as_raw_fd()), &link).unwrap();
    for path in [PathBuf::from(format!("/dev/fd/{}", output.as_raw_fd())), link] {
        replace(&path, b"two ", Readers::User).unwrap();
    }
    output.write_all(b"three").unwrap();
    assert_eq!(fs::read(&name).unwrap(), b"one two two three");
    let input = File::open(&name).unwrap();
    assert!(destination(Path::new(&format!("/dev/fd/{}", input.as_raw_fd()))).is_err());
}

#[test]
fn what_takes_no_bytes_is_refused() {
    let folder = Folder::new("socket");
    let name = folder.file("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&name).unwrap();
    assert!(destination(&name).unwrap_err().to_string().contains("no file, no pipe"));
}

/// Pipes and links of another user. Only root can make these for the test.
#[test]
fn pipes_and_links_of_others_are_not_trusted() {
    // SAFETY: the call cannot fail and touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let folder = Folder::new("others");
    let (pipe, link) = (folder.file("pipe"), folder.file("link"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    symlink(&pipe, &link).unwrap();
    for name in [&pipe, &link] {
        std::os::unix::fs::lchown(name, Some(4711), Some(4711)).unwrap();
    }
    assert!(destination(&pipe).unwrap_err().to_string().contains("another user"));
    assert!(matches!(destination(&link).unwrap(), Destination::File));
}
