//! What `gondwana sim` says to the library: in the environment, the number of a descriptor of a memory file. The file has
//! the settings as JSON; the statistics replace them at the end.

use gondwana_control::{PlacementRule, ThreadGroup};
use gondwana_sim::{Description, shipped};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};

const VARIABLE: &std::ffi::CStr = c"GONDWANA_SIM";

/// The machine of a program that runs without `gondwana sim`.
const USUAL: &str = "e6000-16";

/// What a run is to be like.
pub(crate) struct Settings {
    pub machine: Description,
    /// A policy of `rset` for threads.
    pub threads: String,
    /// The rules and groups of a plan, if there is one.
    pub plan: Option<(Vec<PlacementRule>, Vec<ThreadGroup>)>,
    /// Where a recording goes, behind the record of the run, if one is wanted.
    pub recording: Option<ManuallyDrop<File>>,
    /// Where the statistics go.
    descriptor: Option<RawFd>,
}

impl Settings {
    /// Reads them.
    pub(crate) fn read() -> Result<Self, String> {
        // SAFETY: no other thread runs yet.
        let value = unsafe { libc::getenv(VARIABLE.as_ptr()) };
        let usual = shipped::find(USUAL).expect("it is shipped");
        if value.is_null() {
            return Self::new(usual, "fill", None);
        }
        // SAFETY: the value is a C string.
        let text = unsafe { std::ffi::CStr::from_ptr(value) }.to_string_lossy().into_owned();
        // A program that this one starts is not simulated with the same file.
        // SAFETY: as above.
        unsafe { libc::unsetenv(VARIABLE.as_ptr()) };
        let descriptor: RawFd = text.parse().map_err(|_| {
            format!("GONDWANA_SIM is '{text}', not a descriptor: start the program by 'gondwana sim'")
        })?;
        let mut text = String::new();
        let mut file = ManuallyDrop::new(open(descriptor));
        file.rewind()
            .and_then(|()| file.read_to_string(&mut text))
            .map_err(|error| format!("the settings of the simulation cannot be read: {error}"))?;
        let settings: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| format!("the settings of the simulation: {error}"))?;
        end_with(&settings["parent"]);
        let field = |name: &str| settings[name].as_str().unwrap_or_default().to_owned();
        let mut own = Self::new(&field("machine"), &field("threads"), Some(descriptor))?;
        own.recording = recording(&settings["recording"]);
        own.plan = serde_json::from_value(settings["plan"].clone())
            .map_err(|error| format!("the plan of the simulation: {error}"))?;
        Ok(own)
    }

    fn new(machine: &str, threads: &str, descriptor: Option<RawFd>) -> Result<Self, String> {
        let machine = Description::parse(machine).map_err(|error| error.to_string())?;
        Ok(Self { machine, threads: threads.to_owned(), plan: None, recording: None, descriptor })
    }

    /// Writes the statistics, if somebody wants them.
    pub(crate) fn answer(&self, text: &str) {
        let Some(descriptor) = self.descriptor else { return };
        let mut file = ManuallyDrop::new(open(descriptor));
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            gondwana_interpose::message::write_line(2, &format!("the statistics are lost: {error}"));
        }
    }
}

/// Has the process end with the one that started it, which shows the statistics.
fn end_with(parent: &serde_json::Value) {
    // SAFETY: two system calls.
    let is_orphan = unsafe {
        gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        parent.as_i64().is_some_and(|parent| gondwana_sys::syscall!(libc::SYS_getppid) != parent)
    };
    if is_orphan {
        crate::start::die("the command that started the simulation has ended");
    }
}

/// The file of a recording, which programs that this one starts do not get.
fn recording(setting: &serde_json::Value) -> Option<ManuallyDrop<File>> {
    let descriptor = RawFd::try_from(setting.as_i64()?).ok()?;
    // SAFETY: a system call.
    unsafe { gondwana_sys::syscall!(libc::SYS_fcntl, descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    Some(ManuallyDrop::new(open(descriptor)))
}

/// A file of the command's, which stays open.
fn open(descriptor: RawFd) -> File {
    // SAFETY: nobody else uses the descriptor, and the file is never dropped.
    unsafe { File::from_raw_fd(descriptor) }
}
