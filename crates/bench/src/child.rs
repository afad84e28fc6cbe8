//! A measuring process: its output, its time, its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// After this time a process that has little to do has got stuck. The slowest of these takes some seconds.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// What a process that succeeded has left.
pub(crate) struct Finished {
    /// What it printed.
    pub stdout: String,
    /// What it and those who ran it said beside.
    pub stderr: String,
    /// From before its start until after its end.
    pub wall: Duration,
    /// The time that processors have spent on it and on its own children.
    pub processors: Duration,
}

/// Why a process did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsuccessful {
    /// It was killed because it took longer than this.
    Stuck(Duration),
    /// In words for people.
    Failed(String),
}

impl From<Unsuccessful> for String {
    fn from(why: Unsuccessful) -> Self {
        match why {
            Unsuccessful::Stuck(limit) => format!("stuck for {} s", limit.as_secs()),
            Unsuccessful::Failed(why) => why,
        }
    }
}

/// Runs the command to its end, which must come within `limit`. What it prints goes to files in `folder` meanwhile, so
/// that nobody has to read it.
pub(crate) fn run(command: &mut Command, folder: &Path, limit: Duration) -> Result<Finished, Unsuccessful> {
    let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
    let text = |error: io::Error| Unsuccessful::Failed(error.to_string());
    command.stdin(Stdio::null());
    command.stdout(File::create(&stdout).map_err(text)?).stderr(File::create(&stderr).map_err(text)?);
    let (start, before) = (Instant::now(), processor_time());
    let mut child = command.spawn().map_err(text)?;
    let ended = ends_within(child.id(), limit).map_err(text)?;
    if !ended {
        child.kill().map_err(text)?;
    }
    let status = child.wait().map_err(text)?;
    let (wall, processors) = (start.elapsed(), processor_time().saturating_sub(before));
    let said = std::fs::read(&stderr).map_err(text)?;
    let said = String::from_utf8_lossy(&said).into_owned();
    if status.success() {
        let stdout = std::fs::read_to_string(&stdout).map_err(text)?;
        return Ok(Finished { stdout, stderr: said, wall, processors });
    }
    if !ended {
        return Err(Unsuccessful::Stuck(limit));
    }
    let why = said.trim_end().lines().last().map_or_else(|| status.to_string(), str::to_owned);
    Err(Unsuccessful::Failed(why))
}

/// The time that processors have spent on children that were waited for.
fn processor_time() -> Duration {
    // SAFETY: zero is a valid value of every field.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one record, which lives during the call; with these arguments it cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.cast_unsigned()) + Duration::from_micros(time.tv_usec.cast_unsigned())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Waits for the end of a child that nobody has waited for; false if it takes longer.
fn ends_within(child: u32, time: Duration) -> io::Result<bool> {
    // SAFETY: the call takes plain numbers, and its result is a new descriptor that nobody else owns.
    let process = unsafe {
        let fd = gondwana_sys::syscall!(libc::SYS_pidfd_open, child, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(RawFd::try_from(fd).map_err(io::Error::other)?)
    };
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let left = i32::try_from(left).unwrap_or(i32::MAX);
        let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives during the call.
        match unsafe { libc::poll(&mut poll, 1, left) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            ready => return Ok(ready > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_failures_are_told() {
        let folder = std::env::temp_dir().join(format!("gondwana-child-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let shell = |script: &str| run(Command::new("sh").args(["-c", script]), &folder, STUCK);
        assert_eq!(shell("echo miss 5").unwrap().stdout, "miss 5\n");
        let why = |script: &str| shell(script).err().unwrap();
        assert_eq!(why("echo one >&2; echo two >&2; exit 3"), Unsuccessful::Failed("two".to_owned()));
        assert_eq!(why("exit 3"), Unsuccessful::Failed("exit status: 3".to_owned()));
        let short = Duration::from_millis(10);
        let endless = run(Command::new("sleep").arg("1000"), &folder, short).err().unwrap();
        assert_eq!(endless, Unsuccessful::Stuck(short));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_process_that_goes_on_is_noticed() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(!ends_within(child.id(), Duration::from_millis(1)).unwrap());
        child.kill().unwrap();
        assert!(ends_within(child.id(), STUCK).unwrap());
        child.wait().unwrap();
    }
}
