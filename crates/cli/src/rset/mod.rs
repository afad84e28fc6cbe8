//! `gondwana rset`: named resource sets.

mod show;

use gondwana_console::failure::Failure;
use gondwana_console::output::print;
use gondwana_host::{Names, NamesError};
use gondwana_launcher::names::named_sets;
use gondwana_rset::{Entry, RSet, Registry};
use gondwana_topology::Machine;
use std::path::PathBuf;
use std::process::ExitCode;

/// The syntax of sets, for the help.
const LANGUAGE: &str = "\
How to write a set:
  node:0-1     the processors and the memory of nodes
  cpu:0-7      processors, and the memory nearest to them
  proc:0-7     processors alone
  mem:0        the memory of nodes alone
  all, none    everything in the machine, nothing
  web          the set with this name
  a|b  a&b     union, intersection (before the others)
  a-b  (a|b)   difference, parentheses
Example: gondwana rset make web 'node:0-1 - cpu:0'";

/// Options of `gondwana rset`.
#[derive(Debug, clap::Args)]
pub(crate) struct RsetOptions {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print the named sets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the contents of a set
    #[command(after_help = LANGUAGE)]
    Show {
        /// A name, or a set as described in the help
        set: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: MachineOption,
    },
    /// Give a set a name
    #[command(after_help = LANGUAGE)]
    Make {
        /// The name: letters, digits, '_' and '.'
        name: String,
        /// The set
        set: String,
        /// The named set that this one is a part of
        #[arg(long, value_name = "NAME")]
        parent: Option<String>,
        /// Don't overlap with other exclusive parts of the same set
        #[arg(long)]
        exclusive: bool,
        #[command(flatten)]
        place: MachineOption,
    },
    /// Forget a name
    Remove {
        /// The name
        name: String,
        /// Forget its parts, too
        #[arg(long)]
        parts: bool,
    },
}

/// Which machine sets are of.
#[derive(Debug, clap::Args)]
struct MachineOption {
    /// The machine that a file (TOML) describes instead of this computer
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

impl MachineOption {
    fn machine(&self) -> Result<Machine, Failure> {
        match &self.machine {
            Some(path) => crate::topo::described(path),
            None => gondwana_host::discover().map_err(|error| Failure::cannot(error.to_string())),
        }
    }
}

/// Does what the verb says.
pub(crate) fn rset(options: &RsetOptions) -> Result<ExitCode, Failure> {
    match &options.verb {
        Verb::List { json } => {
            // A list of names reports it if there is no folder for them.
            let names = Names::of_user().and_then(|names| names.read()).map_err(refused)?;
            print(&if *json { show::list_json(&names) } else { show::list(&names) })?;
        }
        Verb::Show { set, json, place } => {
            let (machine, names) = (place.machine()?, named_sets()?);
            let rset = parsed(set, &machine, &names)?;
            let description = show::Description::new(set, &rset, &machine, &names);
            print(&if *json { description.json() } else { description.text() })?;
        }
        Verb::Make { name, set, parent, exclusive, place } => {
            let machine = place.machine()?;
            change(|names| {
                let rset = parsed(set, &machine, names)?;
                // Tables have it on one line.
                let written = Some(set.split_whitespace().collect::<Vec<_>>().join(" "));
                names
                    .add(name, Entry { rset, parent: parent.clone(), exclusive: *exclusive, written })
                    .map_err(|error| Failure::usage(error.to_string()))
            })?;
        }
        Verb::Remove { name, parts } => change(|names| {
            let removed =
                if *parts { names.remove_all(name).map(drop) } else { names.remove(name).map(drop) };
            removed.map_err(|error| Failure::usage(error.to_string()))
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An error of a change of names.
struct Refused(Failure);

impl From<NamesError> for Refused {
    fn from(error: NamesError) -> Self {
        Self(refused(error))
    }
}

fn refused(error: NamesError) -> Failure {
    Failure::cannot(error.to_string())
}

/// Changes the user's names.
fn change(change: impl FnOnce(&mut Registry) -> Result<(), Failure>) -> Result<(), Failure> {
    let names = Names::of_user().map_err(refused)?;
    names.change(|names| change(names).map_err(Refused)).map_err(|Refused(failure)| failure)
}

fn parsed(text: &str, machine: &Machine, names: &Registry) -> Result<RSet, Failure> {
    RSet::parse(text, machine, names).map_err(|error| Failure::usage(error.to_string()))
}
