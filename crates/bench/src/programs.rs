//! The programs that measure: part of the command, except for the workloads, which are compiled when they are needed.

use super::interrupt::remove_when_interrupted;
use gondwana_console::failure::Failure;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names and executables.
const PROGRAMS: [(&str, &[u8]); 13] = [
    ("allocate", include_bytes!(concat!(env!("OUT_DIR"), "/allocate"))),
    ("barrier", include_bytes!(concat!(env!("OUT_DIR"), "/barrier"))),
    ("copy", include_bytes!(concat!(env!("OUT_DIR"), "/copy"))),
    ("empty", include_bytes!(concat!(env!("OUT_DIR"), "/empty"))),
    ("faults", include_bytes!(concat!(env!("OUT_DIR"), "/faults"))),
    ("locks", include_bytes!(concat!(env!("OUT_DIR"), "/locks"))),
    ("objects", include_bytes!(concat!(env!("OUT_DIR"), "/objects"))),
    ("memory", include_bytes!(concat!(env!("OUT_DIR"), "/memory"))),
    ("openmp", include_bytes!(concat!(env!("OUT_DIR"), "/openmp"))),
    ("pages", include_bytes!(concat!(env!("OUT_DIR"), "/pages"))),
    ("release", include_bytes!(concat!(env!("OUT_DIR"), "/release"))),
    ("sharing", include_bytes!(concat!(env!("OUT_DIR"), "/sharing"))),
    ("stream", include_bytes!(concat!(env!("OUT_DIR"), "/stream"))),
];

/// How a program runs on nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnNodes<'a> {
    /// How many.
    pub nodes: u16,
    /// Where the monitor's recording goes, if the run is monitored.
    pub monitor: Option<&'a Path>,
    /// How they talk; `None`: as without the option.
    pub fabric: Option<&'a str>,
    /// Where the counters go as JSON, if they are wanted.
    pub stats: Option<&'a Path>,
    /// Nothing becomes common to the nodes: all that they share is copied.
    pub copies: bool,
}

impl OnNodes<'_> {
    /// So many nodes, and nothing else asked for.
    pub(crate) fn new(nodes: u16) -> Self {
        Self { nodes, monitor: None, fabric: None, stats: None, copies: false }
    }
}

/// A temporary folder with executables; it goes away with this value.
pub(crate) struct Programs {
    folder: PathBuf,
    /// The folder of the workloads' sources; empty if none are needed.
    apps: PathBuf,
}

impl Programs {
    /// Writes the programs that come with the command.
    pub(crate) fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("gondwana-bench-{}", std::process::id()));
        let failed = |error| Failure::system(&folder.display().to_string(), &error);
        std::fs::create_dir(&folder).map_err(failed)?;
        remove_when_interrupted(folder.clone());
        let this = Self { folder: folder.clone(), apps: PathBuf::new() };
        for (name, executable) in PROGRAMS {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(this.path(name));
            file.and_then(|mut file| file.write_all(executable)).map_err(failed)?;
        }
        Ok(this)
    }

    /// Compiles workloads. `apps` is the folder of their sources.
    pub(crate) fn build(
        &mut self,
        workloads: impl Iterator<Item = &'static str>,
        apps: &Path,
    ) -> Result<(), Failure> {
        apps.clone_into(&mut self.apps);
        let mut targets: Vec<PathBuf> = workloads.map(|name| self.path(name)).collect();
        targets.sort();
        targets.dedup();
        if targets.is_empty() {
            return Ok(());
        }
        if !self.apps.join("Makefile").exists() {
            return Err(Failure::cannot(format!(
                "{} is not the folder of the workloads: name it with --apps, or leave them out with --only",
                self.apps.display()
            )));
        }
        self.make(&self.folder, None, &targets)
    }

    /// Compiles workloads for `gondwana sim`; [`Self::build`] has named the folder of their sources.
    pub(crate) fn build_for_simulator(
        &self,
        workloads: impl Iterator<Item = &'static str>,
    ) -> Result<(), Failure> {
        let folder = self.simulated_folder();
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::system(&folder.display().to_string(), &error))?;
        let targets: BTreeSet<PathBuf> = workloads.map(|name| self.simulated_path(name)).collect();
        if targets.is_empty() {
            return Ok(());
        }
        let mut compiler = OsString::from("CC=");
        compiler.push(own_path()?);
        compiler.push(" cc");
        self.make(&folder, Some(compiler), &Vec::from_iter(targets))
    }

    /// Compiles a program of one file natively and for `gondwana sim`.
    pub(crate) fn compile_both(&self, name: &str, source: &str) -> Result<(), Failure> {
        let file = self.path(name).with_extension("c");
        std::fs::write(&file, source)
            .map_err(|error| Failure::system(&file.display().to_string(), &error))?;
        let options = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-pthread", "-o"];
        succeed(Command::new("gcc").args(options).arg(self.path(name)).arg(&file))?;
        let mut simulated = Command::new(own_path()?);
        succeed(simulated.arg("cc").args(options).arg(self.simulated_path(name)).arg(&file))
    }

    /// Has the workloads' Makefile make these files in a folder.
    fn make(&self, out: &Path, compiler: Option<OsString>, targets: &[PathBuf]) -> Result<(), Failure> {
        let mut folder = OsString::from("OUT=");
        folder.push(out);
        let mut command = Command::new("make");
        command.arg("-s").arg("-C").arg(&self.apps).arg(folder).args(compiler);
        succeed(command.args(targets))
    }

    /// The command that runs a program: a workload, or one that comes with the command.
    pub(crate) fn command(
        &self,
        name: &str,
        arguments: &[&str],
        workload: bool,
        on: Option<OnNodes<'_>>,
    ) -> Result<Command, String> {
        let mut command = match on {
            None => Command::new(self.path(name)),
            Some(OnNodes { nodes, monitor, fabric, stats, copies }) => {
                let gondwana = std::env::current_exe().map_err(|error| error.to_string())?;
                let mut command = Command::new(gondwana);
                command.args(["run", "-n", &nodes.to_string()]);
                for (option, file) in [("--monitor=", monitor), ("--stats=", stats)] {
                    if let Some(file) = file {
                        let mut option = OsString::from(option);
                        option.push(file);
                        command.arg(option);
                    }
                }
                if let Some(fabric) = fabric {
                    command.args(["--fabric", fabric]);
                }
                if copies {
                    command.args(["--common-after", "0"]);
                }
                command.arg("--").arg(self.path(name));
                command
            }
        };
        command.args(arguments);
        if workload {
            command.args(self.extra_arguments(name));
        }
        Ok(command)
    }

    /// Where files of the measurement may go.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// An executable.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The same, built for `gondwana sim`.
    pub(crate) fn simulated_path(&self, name: &str) -> PathBuf {
        self.simulated_folder().join(name)
    }

    fn simulated_folder(&self) -> PathBuf {
        self.folder.join("simulated")
    }

    /// The arguments that a workload needs besides its sizes: those that read a file look for it near themselves, which
    /// is the wrong place here.
    fn extra_arguments(&self, name: &str) -> Vec<PathBuf> {
        match name {
            "tsp" => vec!["-f".into(), self.apps.join("data/gr17.tsp")],
            _ => vec![],
        }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // Nothing can be done about what cannot be removed.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// This command, which compiles for the simulator, too.
fn own_path() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::system("finding this command", &error))
}

fn succeed(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::cannot(format!("{name}: {status}"))),
        Err(error) => Err(Failure::system(&name, &error)),
    }
}
