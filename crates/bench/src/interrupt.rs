//! An interrupted benchmark leaves nothing behind.

use gondwana_launcher::exit;
use gondwana_launcher::process::events::End;
use std::path::PathBuf;

/// From now on, a signal that is to end this process removes the folder first. To be called before there are threads.
pub(crate) fn remove_when_interrupted(folder: PathBuf) {
    // SAFETY: the set is a private variable. Processes that are started later have nothing blocked: the standard
    // library sees to it.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    std::thread::spawn(move || {
        let mut signal = 0;
        // SAFETY: reads the set, writes one number.
        if unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
            // What is still being measured may add a file meanwhile.
            while folder.exists() && std::fs::remove_dir_all(&folder).is_err() {
                std::thread::yield_now();
            }
            exit::like(End::Signalled(signal));
        }
    });
}
