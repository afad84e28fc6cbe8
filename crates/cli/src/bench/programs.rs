//! The programs that measure: part of the command, except for the workloads, which are compiled when they are needed.

use super::figures::{Figure, Runner};
use super::interrupt::remove_when_interrupted;
use crate::failure::Failure;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names and executables.
const PROGRAMS: [(&str, &[u8]); 9] = [
    ("barrier", include_bytes!(concat!(env!("OUT_DIR"), "/barrier"))),
    ("copy", include_bytes!(concat!(env!("OUT_DIR"), "/copy"))),
    ("empty", include_bytes!(concat!(env!("OUT_DIR"), "/empty"))),
    ("faults", include_bytes!(concat!(env!("OUT_DIR"), "/faults"))),
    ("locks", include_bytes!(concat!(env!("OUT_DIR"), "/locks"))),
    ("memory", include_bytes!(concat!(env!("OUT_DIR"), "/memory"))),
    ("pages", include_bytes!(concat!(env!("OUT_DIR"), "/pages"))),
    ("release", include_bytes!(concat!(env!("OUT_DIR"), "/release"))),
    ("stream", include_bytes!(concat!(env!("OUT_DIR"), "/stream"))),
];

/// A temporary folder with executables; it goes away with this value.
pub struct Programs {
    folder: PathBuf,
    /// The folder of the workloads' sources; empty if none are needed.
    apps: PathBuf,
}

impl Programs {
    /// Writes the programs that come with the command.
    pub fn new() -> Result<Self, Failure> {
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

    /// Compiles the workloads that the figures need. `apps` is the folder of their sources.
    pub fn build(&mut self, figures: &[Figure], apps: &Path) -> Result<(), Failure> {
        apps.clone_into(&mut self.apps);
        let mut targets: Vec<PathBuf> =
            figures.iter().flat_map(Figure::runners).filter_map(|r| self.app_target(&r)).collect();
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
        let mut out = std::ffi::OsString::from("OUT=");
        out.push(&self.folder);
        succeed(Command::new("make").arg("-s").arg("-C").arg(&self.apps).arg(out).args(&targets))
    }

    fn app_target(&self, runner: &Runner) -> Option<PathBuf> {
        match runner {
            Runner::Program { name, app: true, .. } => Some(self.path(name)),
            _ => None,
        }
    }

    /// Where files of the measurement may go.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// An executable.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The arguments that a workload needs besides its sizes: those that read a file look for it near themselves, which
    /// is the wrong place here.
    pub fn extra_arguments(&self, name: &str) -> Vec<PathBuf> {
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

fn succeed(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::cannot(format!("{name}: {status}"))),
        Err(error) => Err(Failure::system(&name, &error)),
    }
}
