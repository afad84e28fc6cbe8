//! The run: the settings go to the library in a memory file, and the statistics come back in it.

use super::plan::Placed;
use super::{LIBRARY, SimOptions};
use gondwana_console::failure::{CANNOT, Failure};
use gondwana_elf::LibraryFile;
use gondwana_launcher::process::events::End;
use gondwana_launcher::{exit, program};
use gondwana_sim::Statistics;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

/// How a program ended.
pub(super) struct Ended {
    /// How the program did.
    end: End,
    /// The library has said why it ended the program.
    pub is_explained: bool,
    /// None if it did not come to write them.
    pub statistics: Option<Statistics>,
    /// What it has written, if that was kept.
    pub output: Vec<u8>,
    /// The same of its errors.
    pub errors: Vec<u8>,
}

/// What the program reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// What the command does.
    Inherited,
    /// It reads nothing, and what it writes is kept.
    Kept,
}

impl Ended {
    /// As the program did.
    pub(super) fn status(&self) -> ExitCode {
        exit_like(self.end)
    }

    /// True if the program says that all is well, and there are statistics.
    pub(super) fn succeeded(&self) -> bool {
        self.end == End::Exited(0) && self.statistics.is_some()
    }
}

/// A memory file that the children of this process inherit.
pub(super) fn memory_file(name: &str, text: &str) -> Result<File, Failure> {
    let file = memfd_create(name, MemfdFlags::empty()).map(File::from);
    let mut file = file.map_err(|error| Failure::system("making a memory file", &error.into()))?;
    file.write_all(text.as_bytes()).map_err(|error| Failure::system("writing a memory file", &error))?;
    Ok(file)
}

/// The program's file.
pub(super) fn find(options: &SimOptions) -> Result<PathBuf, Failure> {
    let path = program::locate(&options.program[0])?;
    let shown = options.program[0].display();
    let needed = LibraryFile::read(&path).map(|file| file.needed).unwrap_or_default();
    if !needed.iter().any(|name| name == LIBRARY) {
        return Err(Failure::not_runnable(format!(
            "{shown} was not built for the simulator: build it with gondwana cc or gondwana c++, such as make CC='gondwana cc'"
        )));
    }
    Ok(path)
}

/// What a program is run on.
pub(super) struct Simulated<'a> {
    /// The machine's description.
    pub machine: &'a str,
    /// What a plan says.
    pub placed: &'a Placed,
    /// The program writes a recording into it.
    pub recording: Option<&'a File>,
}

/// Runs the program at this path to its end.
pub(super) fn run(
    options: &SimOptions,
    path: &Path,
    simulated: &Simulated<'_>,
    streams: Streams,
) -> Result<Ended, Failure> {
    let shown = options.program[0].display();
    let settings = serde_json::json!({
        "machine": simulated.machine,
        "threads": options.threads,
        "parent": std::process::id(),
        "recording": simulated.recording.map(AsRawFd::as_raw_fd),
        "plan": options.plan.is_some().then_some((&simulated.placed.rules, &simulated.placed.groups)),
    });
    let mut file = memory_file("gondwana-sim", &settings.to_string())?;
    let mut command = Command::new(path);
    command.args(&options.program[1..]).env("GONDWANA_SIM", file.as_raw_fd().to_string());
    if streams == Streams::Kept {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let ended = command.spawn().and_then(Child::wait_with_output);
    let ended = ended.map_err(|error| Failure::not_runnable(format!("{shown} cannot be run: {error}")))?;
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.map_err(|error| Failure::system("reading the statistics", &error))?;
    let end = match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Signalled(signal.unwrap_or_default()),
    };
    // A process that is killed still has the settings in the file, which are no statistics.
    let is_explained = end == End::Exited(i32::from(CANNOT));
    Ok(Ended {
        end,
        is_explained,
        statistics: serde_json::from_str(&text).ok(),
        output: ended.stdout,
        errors: ended.stderr,
    })
}

/// The status of the program; of a signal, the one by which shells report it, as the statistics are still to be printed.
fn exit_like(end: End) -> ExitCode {
    match end {
        End::Exited(_) => exit::like(end),
        End::Signalled(signal) => ExitCode::from(128_u8.saturating_add(signal.to_le_bytes()[0])),
    }
}
