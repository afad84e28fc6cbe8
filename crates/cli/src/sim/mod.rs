//! `gondwana sim`: a program that `gondwana cc` has built, on a simulated machine; `gondwana cc` and `gondwana c++`.

mod compile;
mod options;
mod plan;
mod program;
mod record;
mod sweep;
mod table;

pub(crate) use compile::{CompileOptions, compile};
pub(crate) use options::SimOptions;

use gondwana_console::create::Readers;
use gondwana_console::failure::Failure;
use gondwana_console::output::{self, Output, print};
use gondwana_sim::Description;
use program::{Simulated, Streams};
use record::Recording;
use std::process::ExitCode;

/// The library that programs are linked with.
const LIBRARY: &str = "libgondwana_hooks.so";

/// The package that it is built from.
const PACKAGE: &str = "gondwana-hooks";

/// Runs the program and prints the statistics; or lists the machines.
pub(crate) fn sim(options: &SimOptions) -> Result<ExitCode, Failure> {
    if options.list {
        return print(&options::list());
    }
    let file = options.json.as_deref().map(|path| Output::open("--json", path, Readers::Usual));
    let file = file.transpose()?;
    record::check(options)?;
    if options.is_sweep() {
        return sweep::sweep(options, file);
    }
    let name = &options.machine[0];
    let text = options.machine_text(name)?;
    let machine = Description::parse(&text).map_err(|error| options.wrong_machine(name, &error))?;
    options.check_threads(&machine.topology())?;
    let path = program::find(options)?;
    let placed = plan::resolve(options, &machine, &path)?;
    let recording = Recording::open(options, &machine, &path)?;
    let simulated = Simulated {
        machine: &text,
        placed: &placed,
        recording: recording.as_ref().map(|recording| &recording.file),
    };
    let end = program::run(options, &path, &simulated, Streams::Inherited)?;
    if let Some(recording) = recording {
        recording.keep();
    }
    let Some(statistics) = &end.statistics else {
        if !end.is_explained {
            output::tell(&format!(
                "{} ended without statistics: it was killed, or has replaced itself by another program",
                options.program[0].display()
            ));
        }
        return Ok(end.status());
    };
    match file {
        Some(file) => file.write(&output::json(statistics))?,
        None => eprint!("{}", table::text(statistics)),
    }
    Ok(end.status())
}
