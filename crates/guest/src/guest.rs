//! A running guest.

use crate::agent::{self, Ran};
use crate::image::Image;
use crate::machine::Machine;
use crate::tools::Tools;
use std::fs;
use std::io::{self, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Time that a script may take before the agent kills it. Only what hangs takes it: emulation is slow, and the computer
/// may have much else to do.
const SCRIPT: Duration = Duration::from_secs(300);

/// Time after which a guest that says nothing is given up. The agent answers soon after [`SCRIPT`] at the latest, and
/// booting takes less.
const SILENCE: Duration = Duration::from_secs(360);

/// A guest that does not work any more, and what its kernel said at last.
#[derive(Debug, thiserror::Error)]
#[error("the guest {what}: {why}\n--- its kernel said\n{console}---")]
pub struct Broken {
    what: &'static str,
    why: String,
    console: String,
}

/// A guest. It ends with this value, or with the process that booted it.
#[derive(Debug)]
pub struct Guest {
    emulator: Child,
    answers: Receiver<io::Result<Ran>>,
    console: PathBuf,
}

impl Guest {
    /// Boots a guest with the files of `image`, to which it adds what every guest needs. It writes to files in `folder`,
    /// which must exist: the image, and what the kernel says.
    pub fn boot(tools: &Tools, machine: &Machine, mut image: Image, folder: &Path) -> Result<Self, Broken> {
        let console = folder.join("console.log");
        let cannot_start = |why: io::Error| broken("cannot be started", &why, &console);
        for folder in ["/proc", "/sys", "/dev", "/run"] {
            image.folder(folder);
        }
        image.file("/init", 0o755, agent::first_program());
        image.file(agent::AGENT, 0o755, agent::program(SCRIPT));
        image.copy(&tools.busybox, "/bin/busybox").map_err(cannot_start)?;
        let archive = folder.join("initramfs.cpio");
        fs::write(&archive, image.archive()).map_err(cannot_start)?;

        let command = emulator(tools, machine, &archive, &console);
        let (started, start) = channel();
        let (to, answers) = channel();
        thread::spawn(move || serve(command, &started, &to));
        let start = start.recv().expect("the thread says how it went");
        let guest = Self { emulator: start.map_err(cannot_start)?, answers, console };
        guest.wait().map_err(|why| guest.broken("does not boot", &why))?;
        Ok(guest)
    }

    /// Runs a script of the shell as root, without input, in a folder that keeps its files for later scripts. It gets
    /// five minutes. Processes that it leaves are killed.
    pub fn run(&mut self, script: &str) -> Result<Ran, Broken> {
        let port = self.emulator.stdin.as_mut().expect("standard input is a pipe");
        let written = port.write_all(agent::question(script).as_bytes());
        let ran = written.and_then(|()| self.wait());
        ran.map_err(|why| self.broken("has failed", &why))
    }

    fn wait(&self) -> io::Result<Ran> {
        let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        self.answers.recv_timeout(SILENCE).map_err(silent)?
    }

    fn broken(&self, what: &'static str, why: &io::Error) -> Broken {
        broken(what, why, &self.console)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

fn broken(what: &'static str, why: &io::Error, console: &Path) -> Broken {
    Broken { what, why: why.to_string(), console: fs::read_to_string(console).unwrap_or_default() }
}

/// The command that emulates the computer.
fn emulator(tools: &Tools, machine: &Machine, archive: &Path, console: &Path) -> Command {
    let mut command = Command::new(&tools.qemu);
    command.args([
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
    ]);
    command.args(machine.options());
    command.arg("-kernel").arg(&tools.kernel).arg("-initrd").arg(archive);
    // At its start a kernel tries out whether the timer interrupts, and waits a certain number of turns of a loop for it.
    // On a busy computer the emulated timer is later than that, and the kernel would give up.
    // And it would put itself anywhere, which takes a quarter of a small node.
    command.args(["-append", "console=ttyS0 quiet panic=-1 no_timer_check nokaslr"]);
    command.arg("-serial").arg(format!("file:{}", console.display())).args(["-serial", "stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let parent = std::process::id();
    let die_with_parent = move || {
        // SAFETY: both calls only ask the kernel about this process, and may be made between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before the kernel knew.
            if libc::getppid().cast_unsigned() != parent {
                Err(io::ErrorKind::BrokenPipe.into())
            } else {
                Ok(())
            }
        }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) };
    command
}

/// Starts the emulator and hands on the answers of the agent, the first of which only says that it is ready, until
/// there are no more.
///
/// Test harnesses run no destructors when they end. The kernel kills a process that asked for it when the *thread* that
/// started it ends: this one, which lives until the emulator says no more, or this process ends in whatever way.
fn serve(mut command: Command, started: &Sender<io::Result<Child>>, answers: &Sender<io::Result<Ran>>) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(why) => {
            let _ = started.send(Err(why));
            return;
        }
    };
    let mut port = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
    let _ = started.send(Ok(child));
    let mut next = agent::wait_until_ready(&mut port);
    while next.is_ok() {
        let _ = answers.send(next);
        next = agent::answer(&mut port);
    }
    let _ = answers.send(next);
}
