//! Another user of the same computer cannot affect a run.

mod common;

use common::endless::children;
use common::folder::Folder;
use common::process::Process;
use common::user::User;
use common::waiting::{Waiting, refuses, topo_command};
use common::whole::{LIMIT, run, whole};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A run of this user.
fn run_of(user: User, options: &[&str]) -> Waiting {
    Waiting::start_with(options, |command, folder| {
        user.lead(command);
        user.owns(folder);
    })
}

/// The launcher and its nodes.
fn processes(launcher: u32) -> Vec<u32> {
    [launcher].into_iter().chain(children(launcher)).collect()
}

/// What the kernel tells everybody about the sockets of some processes: a name for each that has one. For root.
fn names_of_sockets(processes: &[u32]) -> Vec<String> {
    let link = |fd: fs::DirEntry| fs::read_link(fd.path()).ok()?.into_os_string().into_string().ok();
    let inode = |link: String| link.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned);
    let inodes: Vec<String> = processes
        .iter()
        .flat_map(|process| fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten())
        .filter_map(|fd| inode(link(fd.ok()?)?))
        .collect();
    assert!(!inodes.is_empty(), "the channels to the launcher are sockets");
    // Name spaces may differ from this process's.
    let sockets = fs::read_to_string(format!("/proc/{}/net/unix", processes[0])).unwrap();
    let mut names = BTreeMap::new();
    for line in sockets.lines().skip(1) {
        let mut fields = line.split_ascii_whitespace();
        let (inode, name) = (fields.nth(6).unwrap(), fields.next());
        names.insert(inode.to_owned(), name.map(str::to_owned));
    }
    assert!(inodes.iter().any(|inode| names.contains_key(inode)));
    inodes.iter().filter_map(|inode| names.get(inode)?.clone()).collect()
}

/// The entries of a world-readable directory that belong to a user.
fn owned_by(user: User, directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.uid() == user.0)).collect()
}

#[test]
fn another_user_finds_no_way_to_a_run() {
    let Some([user, stranger]) = User::several() else { return };
    let waiting = run_of(user, &["-n", "3"]);
    waiting.json_when_up();
    let processes = processes(waiting.pid());
    assert_eq!(processes.len(), 4);

    // Sockets. Nodes have none with a name; the launcher's names lead through a directory that it has open.
    assert_eq!(names_of_sockets(&processes[1..]), [""; 0]);
    let names = names_of_sockets(&processes);
    assert_eq!(names.len(), 2, "one that tells about the run, one that takes requests: {names:?}");
    for name in &names {
        assert!(!name.starts_with('@'), "anybody may call or take an abstract name: {name}");
        let found = stranger.does(|| UnixStream::connect(name).map(|_| ()).is_ok());
        assert!(!found.unwrap(), "{name}");
    }

    // Files. The folder of the program is the test's.
    let places: Vec<_> = ["/tmp", "/dev/shm", "/run/user", "/run", "/var/tmp"]
        .into_iter()
        .flat_map(|directory| owned_by(user, directory))
        .filter(|path| !path.starts_with(waiting.file("")))
        .collect();
    let [place] = &places[..] else { panic!("{places:?}") };
    let socket = place.join(format!("{}.run", waiting.pid()));
    assert!(fs::symlink_metadata(&socket).is_ok(), "root finds it");
    stranger
        .does(|| {
            assert!(fs::read_dir(place).is_err());
            assert!(fs::symlink_metadata(&socket).is_err());
            assert!(UnixStream::connect(&socket).is_err());
            assert!(File::create(place.join("file")).is_err());
            assert!(fs::rename(place, "/tmp/mine").is_err() && fs::remove_dir(place).is_err());
        })
        .unwrap();

    // Processes. The user may do all that, so that it is not for other reasons that it fails.
    for process in processes {
        assert_eq!(user.does(|| ways_into(process)).unwrap(), WAYS, "process {process}");
        assert_eq!(stranger.does(|| ways_into(process)).unwrap(), [""; 0], "process {process}");
        stranger.does(|| cannot_be_signalled(process)).unwrap();
    }

    // The commands.
    let pid = waiting.pid().to_string();
    let gondwana = |words: &[&str]| {
        let mut command = Command::new(&whole().gondwana);
        command.args(words);
        run(stranger.lead(&mut command).current_dir("/"), LIMIT)
    };
    for words in [
        &["topo", "--run", &pid][..],
        &["top", &pid],
        &["monitor", &pid],
        &["monitor", &pid, "--stop"],
        &["monitor", &pid, "--counters"],
    ] {
        refuses(&gondwana(words), 125, "only that user and root can see it");
    }
    refuses(&gondwana(&["topo", "--run"]), 125, "no program of yours");
    waiting.end();
    assert!(!place.exists(), "nothing is left of the run");
}

/// By what a process can be read, written or held up; all of them work for its user.
const WAYS: [&str; 12] = [
    "fd",
    "map_files",
    "maps",
    "smaps",
    "mem",
    "environ",
    "auxv",
    "exe",
    "cwd",
    "memory",
    "descriptor",
    "trace",
];

/// The ways into a process that are open to this thread's user.
fn ways_into(process: u32) -> Vec<&'static str> {
    let of_process = |name: &str| PathBuf::from(format!("/proc/{process}/{name}"));
    let is_open = |way: &&str| match *way {
        "fd" | "map_files" => fs::read_dir(of_process(way)).is_ok(),
        "exe" | "cwd" => fs::read_link(of_process(way)).is_ok(),
        "memory" => {
            // The address is not mapped: a permitted caller gets that error.
            let (mut byte, pid) = (0_u8, process.cast_signed());
            let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(8), iov_len: 1 };
            // SAFETY: at most one byte is written to `byte`.
            let result = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
            result >= 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
        }
        "descriptor" => Process::open(process).unwrap().descriptor(1).is_some(),
        "trace" => {
            // SAFETY: touches no memory of this process. The tracer ends with this thread, and with it the tracing, which
            // has stopped nobody.
            unsafe {
                let none = std::ptr::null_mut::<libc::c_void>();
                libc::ptrace(libc::PTRACE_SEIZE, process.cast_signed(), none, none) == 0
            }
        }
        file => File::open(of_process(file)).is_ok(),
    };
    WAYS.into_iter().filter(is_open).collect()
}

fn cannot_be_signalled(process: u32) {
    // Not SIGCONT: the kernel lets it through within a session, whoever sends it.
    for signal in [0, libc::SIGUSR1, libc::SIGKILL] {
        // SAFETY: touches no memory.
        let result = unsafe { libc::kill(process.cast_signed(), signal) };
        assert_eq!((result, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
    }
}

/// Files of a stranger in `/tmp`; removed with this value.
struct Squatted(Vec<PathBuf>);

impl Drop for Squatted {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
}

#[test]
fn names_that_another_user_has_taken_do_no_harm() {
    const NAMES: u32 = 1000;
    const PROCESSES: u32 = 200;
    let Some([user, stranger]) = User::several() else { return };
    let begin = format!("/tmp/gondwana-{}", user.0);
    // Directories that look private, that are open to the user, links to such, links to nowhere, files; and sockets for
    // processes that the next run could be.
    let next = std::process::id();
    let (paths, listeners) = stranger
        .does(|| {
            let mut paths = vec![PathBuf::from(&begin)];
            File::create(&begin).unwrap();
            let mut listeners = vec![];
            for number in 0..NAMES {
                let path = PathBuf::from(format!("{begin}-{number:016x}"));
                match number % 5 {
                    0 | 1 => {
                        let mode = if number % 5 == 0 { 0o700 } else { 0o777 };
                        fs::DirBuilder::new().mode(mode).create(&path).unwrap();
                    }
                    2 => symlink(&paths[1], &path).unwrap(),
                    3 => symlink("/nowhere", &path).unwrap(),
                    _ => drop(File::create(&path).unwrap()),
                }
                paths.push(path);
            }
            for process in next..next + PROCESSES {
                for name in ["run", "requests"] {
                    let name = format!("gondwana-{name}-{}-{process}", user.0);
                    let address = SocketAddr::from_abstract_name(name).unwrap();
                    listeners.push(UnixListener::bind_addr(&address).unwrap());
                }
                listeners.push(UnixListener::bind(paths[1].join(format!("{process}.run"))).unwrap());
            }
            (paths, listeners)
        })
        .unwrap();
    let _squatted = Squatted(paths);

    let waiting = run_of(user, &["-n", "2"]);
    let pid = waiting.pid().to_string();
    let as_user = |words: &[&str]| {
        let mut command = Command::new(&whole().gondwana);
        command.args(words);
        run(user.lead(&mut command).current_dir("/"), LIMIT)
    };
    for words in [&["topo", "--run"][..], &["topo", "--run", &pid]] {
        let ran = as_user(words);
        assert!(ran.output.starts_with(&format!("./waits (process {pid})")), "{} {}", ran.output, ran.errors);
    }
    assert!(as_user(&["top", &pid, "--once"]).status.unwrap().success());
    let recorded = waiting.file("recorded.gwr");
    assert!(as_user(&["monitor", &pid, "--record", recorded.to_str().unwrap()]).status.unwrap().success());
    assert!(as_user(&["monitor", &pid, "--stop"]).status.unwrap().success());
    // Root finds the same run, and none that the stranger pretends.
    let ran = run(&mut topo_command(&["--run", "--json"]), LIMIT);
    assert!(ran.output.contains(&pid), "{} {}", ran.output, ran.errors);
    assert!(!ran.output.contains(&format!("\"user\": {}", stranger.0)), "{}", ran.output);
    drop(listeners);
    waiting.end();
}

/// A process that pretends to be a run keeps root, who lists all runs, from nothing.
#[test]
fn runs_that_do_not_answer_do_not_keep_root_from_the_others() {
    let Some([user, stranger]) = User::several() else { return };
    let waiting = run_of(user, &["-n", "2"]);
    let place = PathBuf::from(format!("/tmp/gondwana-{}-0", stranger.0));
    let socket = place.join(format!("{}.run", std::process::id()));
    let listener = stranger
        .does(|| {
            fs::DirBuilder::new().mode(0o700).create(&place).unwrap();
            UnixListener::bind(&socket).unwrap()
        })
        .unwrap();
    let _squatted = Squatted(vec![place]);
    let start = Instant::now();
    let ran = run(&mut topo_command(&["--run", "--json"]), LIMIT);
    let json: serde_json::Value = serde_json::from_str(&ran.output).unwrap();
    let runs = json["runs"].as_array().unwrap();
    let program = |process: u32| &runs.iter().find(|run| run["process"] == process).unwrap()["program"];
    assert_eq!(
        (program(waiting.pid()).as_str(), program(std::process::id()).as_str()),
        (Some("./waits"), None)
    );
    assert!(start.elapsed() < LIMIT / 2);
    drop(listener);
    waiting.end();
}

/// A run of eight nodes, one of which is held before it joins the others, which wait for its descriptors.
struct Held {
    launcher: Child,
    folder: Folder,
}

impl Held {
    fn start() -> Self {
        let folder = Folder::new();
        folder.compile("held");
        let mut command =
            whole().run(&folder, &["-n", "8", "--consistency", "rc", "--common-after", "0", "--", "./held"]);
        let launcher = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let held = Self { launcher: launcher.unwrap(), folder };
        held.until_the_others_wait();
        held
    }

    /// The node that is held.
    fn second(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join("second")).ok()?.trim().parse().ok()
    }

    /// Waits until seven nodes stand still in the system call in which they wait for the launcher.
    fn until_the_others_wait(&self) {
        let start = Instant::now();
        let waits = |process: &u32| {
            let call = fs::read_to_string(format!("/proc/{process}/syscall")).unwrap_or_default();
            let number = call.split(' ').next().and_then(|number| number.parse().ok());
            number.is_some_and(|number: i64| [libc::SYS_poll, libc::SYS_ppoll].contains(&number))
        };
        while self.second().is_none()
            || children(self.launcher.id()).iter().filter(|node| waits(node)).count() < 7
        {
            assert!(start.elapsed() < LIMIT, "the nodes do not come to wait for each other");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The launcher's status, which must come soon, and its messages.
    fn ended(mut self) -> (Option<i32>, String) {
        assert!(Process::open(self.launcher.id()).unwrap().ends_within(LIMIT));
        let mut said = String::new();
        self.launcher.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.launcher.wait().unwrap().code(), said)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            self.launcher.kill().unwrap();
            self.launcher.wait().unwrap();
        }
    }
}

#[test]
fn what_nodes_hand_over_to_each_other_travels_where_no_name_leads_to() {
    let Some([stranger]) = User::several() else { return };
    let held = Held::start();
    let nodes = children(held.launcher.id());
    assert_eq!(nodes.len(), 8);
    assert_eq!(names_of_sockets(&nodes), [""; 0]);
    // Nor do the processes themselves lead to them.
    for &node in &nodes {
        assert_eq!(stranger.does(|| ways_into(node)).unwrap(), [""; 0]);
    }
    fs::write(held.folder.join("go"), "").unwrap();
    assert_eq!(held.ended(), (Some(3), String::new()));
}

#[test]
fn nobody_waits_for_what_a_dead_node_does_not_hand_over() {
    let held = Held::start();
    let second = held.second().unwrap();
    let start = Instant::now();
    Process::open(second).unwrap().signal(libc::SIGKILL);
    let (status, said) = held.ended();
    assert!(status.is_none() && said.contains("was killed by SIGKILL"), "{status:?} {said}");
    // The timeout of the nodes is 20 s.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}
