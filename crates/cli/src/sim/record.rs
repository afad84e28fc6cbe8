//! The recording of a simulated run: this command makes the file and writes what was run, and the library in the program
//! writes the rest.

use super::SimOptions;
use gondwana_console::failure::Failure;
use gondwana_control::VERSION;
use gondwana_launcher::run::options::default_recording;
use gondwana_launcher::run::recording_writer::RecordingWriter;
use gondwana_page::{PAGE_BITS, PAGE_SIZE};
use gondwana_recording::{LAUNCHER, RunRecord, encode};
use gondwana_rset::MemoryPolicy;
use gondwana_sim::{CALENDAR, Description};
use std::fs::File;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

/// A recording that the program is to write.
pub(super) struct Recording {
    writer: RecordingWriter,
    /// What the program gets.
    pub file: File,
}

impl Recording {
    /// Makes the file, if one is wanted, for a program on a machine.
    pub(super) fn open(
        options: &SimOptions,
        machine: &Description,
        program: &Path,
    ) -> Result<Option<Self>, Failure> {
        let Some(asked) = &options.monitor else { return Ok(None) };
        let path = asked.as_ref().map_or_else(|| default_recording(&options.program[0]), PathBuf::from);
        let mut writer = RecordingWriter::open("--monitor", &path)?;
        let first = encode(LAUNCHER, &described(options, machine, program));
        let file = writer
            .hand_over(&first)
            .and_then(|file| {
                rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
                Ok(file)
            })
            .map_err(|error| Failure::system(&format!("--monitor: {}", path.display()), &error))?;
        Ok(Some(Self { writer, file }))
    }

    /// The program has run, and has written what it did.
    pub(super) fn keep(mut self) {
        self.writer.keep();
    }
}

/// Refuses what cannot be recorded.
pub(super) fn check(options: &SimOptions) -> Result<(), Failure> {
    let Some(asked) = &options.monitor else { return Ok(()) };
    if options.is_sweep() {
        return Err(Failure::usage(
            "--monitor records one run: give one --machine and no --sweep, or leave --monitor out",
        ));
    }
    if asked.as_deref().is_some_and(|file| file == "auto") {
        return Err(Failure::usage(
            "--monitor=auto: the simulator records each transaction anyway: write --monitor, or ./auto for a file of that name",
        ));
    }
    Ok(())
}

/// The record about the run. It has no time of the host's, so that each run has the same.
fn described(options: &SimOptions, machine: &Description, program: &Path) -> RunRecord {
    let path = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    RunRecord {
        version: VERSION.to_owned(),
        executable: path.to_string_lossy().into_owned(),
        command: options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        nodes: u16::try_from(machine.topology().node_ids().len()).expect("machines are checked"),
        consistency: RunRecord::CACHES.to_owned(),
        fabric: machine.name.clone(),
        threads: options.threads.clone(),
        memory: memory(machine),
        plan: options.plan.as_ref().map_or_else(String::new, |plan| plan.display().to_string()),
        began: CALENDAR,
        page_bytes: 1 << PAGE_BITS,
    }
}

/// The policy of memory in pages of recordings, which may be shorter than those of the machine.
fn memory(machine: &Description) -> String {
    let text = &machine.memory.placement;
    match machine.check_placement(text) {
        Ok(MemoryPolicy::Striped(pages)) => {
            let factor = NonZeroU64::new(machine.memory.page_size.0 / PAGE_SIZE as u64);
            format!("striped:{}", factor.map_or(pages, |factor| pages.saturating_mul(factor)))
        }
        // The simulated system gives memory where it is asked for.
        Ok(MemoryPolicy::Float) => "local".to_owned(),
        _ => text.clone(),
    }
}
