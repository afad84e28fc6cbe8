use gondwana_console::columns::{Side, columns};
use gondwana_console::failure::Failure;
use gondwana_rset::{Registry, ThreadPolicy};
use gondwana_sim::{Description, shipped};
use gondwana_topology::{DescriptionError, Machine};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// Options of `gondwana sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimOptions {
    /// The machine: a name of --list, or a file (TOML). Given several times, the program runs on each
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "list")]
    pub machine: Vec<String>,
    /// Run the program with each of these values of a field of the machine's file, side by side; given several times, with all
    /// combinations. Such as l2.size=512KiB,1MiB or memory.placement=local,striped
    #[arg(long, value_name = "FIELD=VALUE,VALUE")]
    pub sweep: Vec<Setting>,
    /// Where pages are, instead of what the machine's file says: local, remote, striped, striped:PAGES or a set such as mem:0
    #[arg(long, value_name = "POLICY")]
    pub placement: Option<String>,
    /// Place variables, allocations and threads by a plan, as gondwana advise writes it
    #[arg(long, value_name = "PLAN.toml")]
    pub plan: Option<PathBuf>,
    /// Where threads run, in the order of their creation: fill, round-robin, or sets with ; between them such as cpu:0;cpu:8
    #[arg(long, value_name = "POLICY", default_value = "fill")]
    pub threads: String,
    /// Record each transaction between nodes with its data, thread and code, for gondwana report and gondwana advise [default
    /// file: the program's name with .gwr; an existing file is renamed to FILE.old]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub monitor: Option<Option<OsString>>,
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

/// A field of a machine's file and the values that it takes by turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Names with dots between them.
    pub field: String,
    /// One at least.
    pub values: Vec<String>,
}

impl FromStr for Setting {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a field and its values are expected, such as l2.size=512KiB,1MiB";
        let (field, values) = text.split_once('=').ok_or(wrong)?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        let empty = field.split('.').any(str::is_empty) || values.iter().any(String::is_empty);
        if empty { Err(wrong) } else { Ok(Self { field: field.to_owned(), values }) }
    }
}

impl SimOptions {
    /// True if there are several runs.
    pub(super) fn is_sweep(&self) -> bool {
        self.machine.len() > 1 || !self.sweep.is_empty()
    }

    /// The description of a machine, with what the options change.
    pub(super) fn machine_text(&self, name: &str) -> Result<String, Failure> {
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
        let mut machine = Description::parse(&text).map_err(|error| self.wrong_machine(name, &error))?;
        machine.memory.placement.clone_from(placement);
        Ok(toml::to_string(&machine).expect("a machine has a description"))
    }

    /// The error of a machine as one sentence.
    pub(super) fn wrong_machine(&self, name: &str, error: &DescriptionError) -> Failure {
        let of_option =
            self.placement.as_ref().filter(|_| error.field.as_deref() == Some("memory.placement"));
        match of_option {
            Some(_) => Failure::usage(format!("--placement: {}", error.message)),
            None => Failure::usage(format!("{name}: {error}")),
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
