use gondwana_console::columns::{Side, columns};
use gondwana_console::failure::Failure;
use gondwana_rset::{Registry, ThreadPolicy};
use gondwana_sim::{Description, shipped};
use gondwana_topology::{DescriptionError, Machine};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `gondwana sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimOptions {
    /// The machine: a name of --list, or a file (TOML)
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "list")]
    pub machine: Option<String>,
    /// Where pages are, instead of what the machine's file says: local, remote, striped, striped:PAGES or a set such as mem:0
    #[arg(long, value_name = "POLICY")]
    pub placement: Option<String>,
    /// Where threads run, in the order of their creation: fill, round-robin, or sets with ; between them such as cpu:0;cpu:8
    #[arg(long, value_name = "POLICY", default_value = "fill")]
    pub threads: String,
    /// Write the statistics as JSON into this file, instead of a table on standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// List the machines that come with Gondwana
    #[arg(long)]
    pub list: bool,
    /// The program, built by gondwana cc or gondwana c++, and its arguments
    #[arg(
        value_name = "PROGRAM",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "list"
    )]
    pub program: Vec<OsString>,
}

impl SimOptions {
    /// The machine's description, with what the options change.
    pub(super) fn machine_text(&self) -> Result<String, Failure> {
        let name = self.machine.as_deref().unwrap_or_default();
        let text = match shipped::find(name) {
            Some(text) => text.to_owned(),
            None => std::fs::read_to_string(name).map_err(|error| {
                let names: Vec<&str> = shipped::names().collect();
                Failure::usage(format!(
                    "--machine: {name} is none of {}, and no file that can be read: {error}",
                    names.join(", ")
                ))
            })?,
        };
        let Some(placement) = &self.placement else { return Ok(text) };
        // Errors of the file are to have its lines.
        let mut machine = Description::parse(&text).map_err(|error| self.wrong_machine(&error))?;
        machine.memory.placement.clone_from(placement);
        Ok(toml::to_string(&machine).expect("a machine has a description"))
    }

    /// The error of a machine as one sentence.
    pub(super) fn wrong_machine(&self, error: &DescriptionError) -> Failure {
        let of_option =
            self.placement.as_ref().filter(|_| error.field.as_deref() == Some("memory.placement"));
        match of_option {
            Some(_) => Failure::usage(format!("--placement: {}", error.message)),
            None => Failure::usage(format!("{}: {error}", self.machine.as_deref().unwrap_or_default())),
        }
    }

    /// Refuses what is no policy for threads.
    pub(super) fn check_threads(&self, machine: &Machine) -> Result<(), Failure> {
        let policy = ThreadPolicy::parse(&self.threads, machine, &Registry::default());
        policy
            .map(|_| ())
            .map_err(|error| Failure::usage(format!("--threads {}: {}", self.threads, error.message())))
    }
}

/// The machines that come with Gondwana, one a line.
pub(super) fn list() -> String {
    let line = |name: &str| {
        let machine = shipped::find(name).and_then(|text| Description::parse(text).ok());
        let size = machine.map_or_else(String::new, |machine| {
            format!("{} x {} processors of {} MHz", machine.nodes, machine.processors, machine.processor.mhz)
        });
        vec![name.to_owned(), size]
    };
    columns(&[Side::Left, Side::Left], &shipped::names().map(line).collect::<Vec<_>>())
}
