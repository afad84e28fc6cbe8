//! The command and its real runtime library, the workloads and test programs they run, and a limit of time.

use super::cargo::cargo;
use super::process::Process;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// The timeout of one run; a hanging run is killed. Runs take a fraction of it, also on a computer with ten times as
/// many runnable threads as processors.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The paths of all built files.
pub(crate) struct Whole {
    /// The command, with the runtime library beside it.
    pub gondwana: PathBuf,
    /// The folder with the workloads.
    pub apps: PathBuf,
    /// The folder with the test programs, as the manifest names them.
    pub programs: PathBuf,
}

/// Builds, in the first call of a process, what `cargo test` does not: the runtime library (nothing that cargo
/// knows links to it), the workloads and the test programs.
pub(crate) fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let gondwana = PathBuf::from(env!("CARGO_BIN_EXE_gondwana"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned();
        let profile_folder = gondwana.parent().unwrap();
        let target = profile_folder.parent().unwrap();
        // Test binaries that run side by side would write the same files.
        let lock = File::create(target.join("whole-programs.lock")).unwrap();
        lock.lock().unwrap();
        let profile = match profile_folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            other => other,
        };
        // All libraries, because a package alone would want its dependencies with other features. An example, too: without any,
        // cargo would leave out the features that only tests want, and build most of what the test was built of once more.
        succeed(
            cargo()
                .args(["build", "--quiet", "--workspace", "--lib", "--example", "placement_cost"])
                .args(["--profile", profile, "--target-dir"])
                .arg(target)
                .current_dir(&root),
        );
        let (apps, programs) = (root.join("apps"), root.join("tests/programs"));
        for folder in [&apps, &programs] {
            succeed(Command::new("make").args(["--silent", "-C"]).arg(folder));
        }
        Whole { gondwana, apps: apps.join("build"), programs: root.join("tests/build") }
    })
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Whole {
    /// `gondwana run` with options, started in `folder`.
    pub(crate) fn run(&self, folder: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(&self.gondwana);
        command.arg("run").args(options).current_dir(folder);
        command
    }
}

/// The result of a run.
pub(crate) struct Ran {
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
    /// Its exit status; `None` if it was killed after the timeout.
    pub status: Option<ExitStatus>,
}

/// Runs a command to its end, without input; kills it when `limit` is over.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Ran {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut output, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    thread::scope(|scope| {
        let output = scope.spawn(move || text(&mut output));
        let errors = scope.spawn(move || text(&mut errors));
        let status = end_within(&mut child, limit);
        Ran { output: output.join().unwrap(), errors: errors.join().unwrap(), status }
    })
}

fn text(stream: &mut dyn Read) -> String {
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn end_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let ended = Process::open(child.id()).is_none_or(|process| process.ends_within(limit));
    if !ended {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    ended.then_some(status)
}
