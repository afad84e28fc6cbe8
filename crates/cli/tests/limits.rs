//! Runs under limits of a user, of a process and of a control group, each named in one sentence; and runs of many nodes.

mod common;

use common::folder::Folder;
use common::user::User;
use common::whole::{LIMIT, Ran, run, whole};
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// `ulimit` for a command.
fn limited(command: &mut Command, resource: u32, bytes: u64) -> &mut Command {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    let set = move || {
        // SAFETY: passes a variable of the closure.
        match unsafe { libc::setrlimit(resource, &raw const limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: makes one system call and allocates nothing.
    unsafe { command.pre_exec(set) }
}

/// Nothing was started, and one sentence names the limit.
fn is_refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.status.and_then(|status| status.code()), Some(125), "{}", ran.errors);
    assert_eq!(ran.errors.matches('\n').count(), 1, "{}", ran.errors);
    for word in words {
        assert!(ran.errors.contains(word), "{word}: {}", ran.errors);
    }
}

fn program(name: &str) -> Folder {
    let folder = Folder::new();
    folder.compile(name);
    folder
}

#[test]
fn too_few_processes_for_a_user_are_named_at_once() {
    let Some([user]) = User::several() else { return };
    let folder = program("assembles");
    user.owns(&folder);
    let start = Instant::now();
    let mut command = whole().run(&folder, &["-n", "4", "--", "./assembles", "4"]);
    let ran = run(limited(user.lead(&mut command), libc::RLIMIT_NPROC, 8), LIMIT);
    is_refused(&ran, &["is 8", "ulimit -u"]);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn enough_processes_for_a_user_are_enough() {
    let Some([user]) = User::several() else { return };
    let folder = program("assembles");
    user.owns(&folder);
    let mut command = whole().run(&folder, &["-n", "2", "--", "./assembles", "2"]);
    let ran = run(limited(user.lead(&mut command), libc::RLIMIT_NPROC, 64), LIMIT);
    assert_eq!((&*ran.output, &*ran.errors), ("3\n", ""));
}

#[test]
fn a_limit_on_files_is_named() {
    let folder = program("assembles");
    for options in [&["--monitor=run.gwr"][..], &[]] {
        let words = [&["-n", "2"], options, &["--", "./assembles", "2"]].concat();
        let ran = run(limited(&mut whole().run(&folder, &words), libc::RLIMIT_FSIZE, 0), LIMIT);
        is_refused(&ran, &["ulimit -f"]);
    }
}

#[test]
fn a_limit_on_stacks_is_named() {
    let folder = program("assembles");
    let mut command = whole().run(&folder, &["-n", "2", "--", "./assembles", "2"]);
    let ran = run(limited(&mut command, libc::RLIMIT_STACK, 64 << 10), LIMIT);
    is_refused(&ran, &["64 KiB", "ulimit -s"]);
    let mut command = whole().run(&folder, &["-n", "2", "--", "./assembles", "2"]);
    let ran = run(limited(&mut command, libc::RLIMIT_STACK, 256 << 10), LIMIT);
    assert_eq!((&*ran.output, &*ran.errors), ("3\n", ""));
}

#[test]
fn a_limit_on_addresses_is_kept_or_named() {
    let folder = program("assembles");
    let words = |nodes| ["-n", nodes, "--", "./assembles", "4"];
    // 16 nodes have 1 GiB for messages, as much for streams, 1.5 GiB for what threads have of their own, and 2 GiB for low addresses.
    let ran = run(limited(&mut whole().run(&folder, &words("16")), libc::RLIMIT_AS, 7550 * MIB), LIMIT);
    assert_eq!((&*ran.output, &*ran.errors), ("10\n", ""));
    let ran = run(limited(&mut whole().run(&folder, &words("16")), libc::RLIMIT_AS, 4000 * MIB), LIMIT);
    is_refused(&ran, &["4000 MiB", "ulimit -v"]);
}

#[test]
fn a_core_file_does_not_hold_what_nodes_only_reserve() {
    let folder = Folder::new();
    for fabric in ["shm", "tcp"] {
        let mut command = whole().run(&folder, &["-n", "2", "--fabric", fabric, "--"]);
        command.arg(whole().programs.join("conform/crash_abort"));
        let ran = run(limited(&mut command, libc::RLIMIT_CORE, libc::RLIM_INFINITY), LIMIT);
        let signal = ran.status.and_then(|status| status.signal());
        assert_eq!(signal, Some(libc::SIGABRT), "{}", ran.errors);
        // Where the system is told to put them there.
        for core in fs::read_dir(&*folder).unwrap().flatten() {
            assert!(core.metadata().unwrap().len() < 1024 * MIB, "{core:?}");
        }
    }
}

/// A control group for memory, which goes away with this value.
struct Group(PathBuf);

impl Group {
    /// A control group of either version with this limit; `None`, with a printed line, if none can be made.
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("gondwana-test-{}-{bytes}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory");
        let (top, file) = match first.is_dir() {
            true => (first, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let group = Self(top.join(name));
        let made = fs::create_dir(&group.0).and_then(|()| fs::write(group.0.join(file), bytes.to_string()));
        if let Err(why) = made {
            eprintln!("skipped, because no control group can be made ({why}): run the test as root");
            return None;
        }
        // With swap space, reaching the limit would take long.
        let _ = fs::write(group.0.join("memory.swap.max"), "0");
        Some(group)
    }

    /// Runs a command in the group.
    fn run(&self, command: &Command) -> Ran {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        inside.arg(command.get_program()).args(command.get_args());
        run(inside.current_dir(command.get_current_dir().unwrap_or(Path::new("/"))), LIMIT)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // All its processes have ended; the kernel may need a moment to know.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_node_that_is_killed_for_its_memory_is_reported_with_the_limit() {
    let Some(group) = Group::new(160 * MIB) else { return };
    let folder = program("fills");
    for fabric in ["shm", "tcp"] {
        let options = ["-n", "2", "--fabric", fabric, "--", "./fills", "400"];
        let ran = group.run(&whole().run(&folder, &options));
        let status = ran.status.unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{fabric}: {status} {}", ran.errors);
        assert_eq!(ran.errors.matches('\n').count(), 1, "{fabric}: {}", ran.errors);
        for words in ["was killed by the kernel", "160 MiB", "raise it"] {
            assert!(ran.errors.contains(words), "{fabric}: {}", ran.errors);
        }
    }
}

/// There the kernel may kill the launcher as well as a node.
#[test]
fn nodes_that_are_too_many_for_a_limit_are_reported_as_well() {
    let Some(group) = Group::new(96 * MIB) else { return };
    let folder = program("assembles");
    let ran = group.run(&whole().run(&folder, &["-n", "64", "--", "./assembles", "64"]));
    assert_eq!(ran.status.unwrap().signal(), Some(libc::SIGKILL), "{}", ran.errors);
    assert_eq!(ran.errors.matches('\n').count(), 1, "{}", ran.errors);
    assert!(ran.errors.contains("96 MiB") && ran.errors.contains("fewer nodes"), "{}", ran.errors);
}

#[test]
fn doctor_shows_limits() {
    let Some(group) = Group::new(192 * MIB) else { return };
    let mut doctor = Command::new(&whole().gondwana);
    doctor.arg("doctor");
    let ran = group.run(&doctor);
    let line = ran.output.lines().find(|line| line.contains("memory limit")).unwrap();
    assert!(line.contains("192 MiB by control group"), "{line}");
    let ran = run(limited(&mut doctor, libc::RLIMIT_STACK, 512 << 10), LIMIT);
    let line = ran.output.lines().find(|line| line.contains("stacks")).unwrap();
    assert!(line.contains("512 KiB"), "{line}");
    let ran = run(limited(&mut doctor, libc::RLIMIT_STACK, 64 << 10), LIMIT);
    is_refused(&ran, &["64 KiB", "ulimit -s"]);
}

/// Runs a thread on each of so many nodes, over both fabrics; returns the times.
fn assemble(nodes: u64) -> [Duration; 2] {
    let folder = program("assembles");
    let count = nodes.to_string();
    ["shm", "tcp"].map(|fabric| {
        let start = Instant::now();
        let options = ["-n", &count, "--fabric", fabric, "--", "./assembles", &count];
        let ran = run(&mut whole().run(&folder, &options), LIMIT);
        let took = start.elapsed();
        eprintln!("{nodes} nodes over {fabric}: {took:?}");
        let expected = format!("{}\n", nodes * (nodes + 1) / 2);
        assert_eq!((ran.output, ran.errors), (expected, String::new()), "{fabric}");
        took
    })
}

#[test]
fn sixty_four_nodes_run_on_few_processors() {
    assemble(64);
}

#[test]
#[ignore = "needs the computer for itself: make nightly"]
fn as_many_nodes_as_there_can_be_start_in_ten_seconds() {
    for took in assemble(256) {
        assert!(took <= Duration::from_secs(10), "{took:?}");
    }
}
