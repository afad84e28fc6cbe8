//! Acting as other users, which only root can.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user of this computer that has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User(pub u32);

impl User {
    /// Users that no other test and no other process uses; `None`, with a printed line, if this process may not
    /// become them.
    pub(crate) fn several<const N: usize>() -> Option<[Self; N]> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let first = 1_000_000 + std::process::id() * 32;
        let users = [(); N].map(|()| Self(first + COUNT.fetch_add(1, Ordering::Relaxed)));
        let probe = users[0].does(|| ());
        if let Err(why) = probe {
            eprintln!(
                "skipped, because this process cannot become another user ({why}): run the test as root"
            );
            return None;
        }
        let gondwana = &super::whole::whole().gondwana;
        if users[0].run(&mut Command::new(gondwana), &["--version"]).is_err() {
            eprintln!("skipped, because other users cannot start {}", gondwana.display());
            return None;
        }
        Some(users)
    }

    /// Does something on a thread that is this user's and has no rights of root.
    pub(crate) fn does<R: Send>(self, what: impl FnOnce() -> R + Send) -> io::Result<R> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // By system call: the C library's functions change the user of all threads.
                // SAFETY: the calls touch no memory.
                let changed = unsafe {
                    let none = std::ptr::null::<libc::gid_t>();
                    gondwana_sys::syscall!(libc::SYS_setgroups, 0, none) == 0
                        && gondwana_sys::syscall!(libc::SYS_setresgid, self.0, self.0, self.0) == 0
                        && gondwana_sys::syscall!(libc::SYS_setresuid, self.0, self.0, self.0) == 0
                };
                if changed { Ok(what()) } else { Err(io::Error::last_os_error()) }
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Makes a command run as this user, with no folder for sockets in its environment.
    pub(crate) fn lead(self, command: &mut Command) -> &mut Command {
        command.uid(self.0).gid(self.0).env_remove("XDG_RUNTIME_DIR")
    }

    fn run(self, command: &mut Command, arguments: &[&str]) -> io::Result<()> {
        self.lead(command).current_dir("/").args(arguments).output().map(|_| ())
    }

    /// Gives a folder to this user, closed to all others.
    pub(crate) fn owns(self, folder: &Path) {
        chown(folder, Some(self.0), Some(self.0)).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
