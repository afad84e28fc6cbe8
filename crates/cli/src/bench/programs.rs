//! The programs that measure: compiled anew for each benchmark, with the computer's own compiler.

use super::figures::{Figure, Runner};
use super::interrupt::remove_when_interrupted;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADER: &str = include_str!("../../../../bench/programs/measure.h");

/// Names and sources; each is one file that needs the header.
const SOURCES: [(&str, &str); 8] = [
    ("barrier", include_str!("../../../../bench/programs/barrier.c")),
    ("copy", include_str!("../../../../bench/programs/copy.c")),
    ("empty", include_str!("../../../../bench/programs/empty.c")),
    ("faults", include_str!("../../../../bench/programs/faults.c")),
    ("locks", include_str!("../../../../bench/programs/locks.c")),
    ("pages", include_str!("../../../../bench/programs/pages.c")),
    ("release", include_str!("../../../../bench/programs/release.c")),
    ("stream", include_str!("../../../../bench/programs/stream.c")),
];

/// A temporary folder with executables; it goes away with this value.
pub struct Programs {
    folder: PathBuf,
    apps: PathBuf,
}

impl Programs {
    /// Compiles what the figures need. `apps` is the folder of the workloads' sources.
    pub fn build(figures: &[Figure], apps: &Path) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("gondwana-bench-{}", std::process::id()));
        let failed = |error| Failure::system(&folder.display().to_string(), &error);
        std::fs::create_dir(&folder).map_err(failed)?;
        remove_when_interrupted(folder.clone());
        let this = Self { folder: folder.clone(), apps: apps.to_owned() };
        std::fs::write(folder.join("measure.h"), HEADER).map_err(failed)?;
        for (name, source) in SOURCES {
            let file = folder.join(format!("{name}.c"));
            std::fs::write(&file, source).map_err(failed)?;
            let options = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-pthread", "-o"];
            succeed(Command::new("gcc").args(options).arg(this.path(name)).arg(&file))?;
        }
        let mut targets: Vec<PathBuf> =
            figures.iter().flat_map(Figure::runners).filter_map(|r| this.app_target(&r)).collect();
        targets.sort();
        targets.dedup();
        if !targets.is_empty() {
            if !apps.join("Makefile").exists() {
                return Err(Failure::cannot(format!(
                    "{} is not the folder of the workloads: name it with --apps, or leave them out with --only",
                    apps.display()
                )));
            }
            let mut out = std::ffi::OsString::from("OUT=");
            out.push(&folder);
            succeed(Command::new("make").arg("-s").arg("-C").arg(apps).arg(out).args(&targets))?;
        }
        Ok(this)
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
