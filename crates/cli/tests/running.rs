//! `gondwana topo --run`: what others can see of a run that is going on.

mod common;

use common::endless::children;
use common::folder::Folder;
use common::process::Process;
use common::whole::{LIMIT, Ran, run, whole};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A run whose program waits for the end of its standard input.
struct Waiting {
    launcher: Child,
    _folder: Folder,
}

impl Waiting {
    /// Starts it, and waits until a thread on node 1 has written to its pages.
    fn start(options: &[&str]) -> Self {
        let folder = Folder::new();
        folder.compile("waits");
        let mut command = whole().run(&folder, &[options, &["--", "./waits"]].concat());
        let mut launcher = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(launcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { launcher, _folder: folder }
    }

    fn pid(&self) -> u32 {
        self.launcher.id()
    }

    /// What JSON says once it says that all nodes are up: the program may be faster than the news of its nodes.
    fn json_when_up(&self) -> Value {
        let start = Instant::now();
        loop {
            let ran = topo(&["--run", &self.pid().to_string(), "--json"]);
            assert!(ran.status.unwrap().success(), "{}", ran.errors);
            let json: Value = serde_json::from_str(&ran.output).unwrap();
            if json["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "up") {
                return json;
            }
            assert!(start.elapsed() < LIMIT, "{json:#}");
        }
    }

    /// Lets the program end, which must be as if nobody had asked.
    fn end(mut self) {
        drop(self.launcher.stdin.take());
        assert!(Process::open(self.pid()).unwrap().ends_within(LIMIT));
        assert_eq!(self.launcher.wait().unwrap().code(), Some(3));
    }

    /// The socket that tells about the run.
    fn address(&self) -> SocketAddr {
        address(self.pid())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if matches!(self.launcher.try_wait(), Ok(None)) {
            self.launcher.kill().unwrap();
            self.launcher.wait().unwrap();
        }
    }
}

fn address(process: u32) -> SocketAddr {
    // SAFETY: touches no memory.
    let user = unsafe { libc::geteuid() };
    SocketAddr::from_abstract_name(format!("gondwana-run-{user}-{process}")).unwrap()
}

fn topo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(&whole().gondwana);
    command.arg("topo").args(arguments);
    command
}

fn topo(arguments: &[&str]) -> Ran {
    run(&mut topo_command(arguments), LIMIT)
}

/// The command must fail with this status and one sentence that contains the text.
fn refuses(ran: &Ran, status: i32, text: &str) {
    assert_eq!(ran.status.unwrap().code(), Some(status), "{}", ran.errors);
    assert!(ran.errors.contains(text) && ran.errors.matches('\n').count() == 1, "{}", ran.errors);
    assert_eq!(ran.output, "");
}

#[test]
fn a_run_shows_its_nodes() {
    let waiting = Waiting::start(&["-n", "3", "-t", "2", "--consistency", "rc"]);
    let pid = waiting.pid();
    let json = waiting.json_when_up();
    assert_eq!((&json["process"], &json["program"]), (&pid.into(), &"./waits".into()));
    assert_eq!((&json["consistency"], &json["fabric"]), (&"rc".into(), &"shm".into()));
    assert!(json["seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(json["machine"]["node"][2]["processors"], "4-5");
    let nodes = json["nodes"].as_array().unwrap();
    let mut processes: Vec<u64> = nodes.iter().map(|node| node["process"].as_u64().unwrap()).collect();
    let memory = |node: usize, kind: &str| nodes[node]["memory"][kind].as_u64().unwrap();
    // The thread was on node 1, and nothing has happened on node 2.
    assert!(memory(1, "shared") >= 64 * 4096, "{json:#}");
    assert!(memory(2, "shared") < 64 * 4096, "{json:#}");
    assert!((0..3).all(|node| memory(node, "resident") > 0), "{json:#}");

    let text = topo(&["--run", &pid.to_string()]).output;
    assert!(text.starts_with(&format!("./waits (process {pid}) for ")), "{text}");
    assert!(text.contains("+- node 2 ---") && text.contains("\nnode  host "), "{text}");
    assert!(text.contains(&format!("process {}, up", processes[0])), "{text}");
    processes.sort_unstable();
    let mut started = children(pid);
    started.sort_unstable();
    assert!(processes.iter().map(|&process| process as u32).eq(started));
    waiting.end();
}

#[test]
fn memory_of_other_hosts_is_not_known() {
    let launcher = "sh -c 'exec {command}'";
    let waiting = Waiting::start(&["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", launcher]);
    let json = waiting.json_when_up();
    let hosts: Vec<&Value> = json["nodes"].as_array().unwrap().iter().map(|node| &node["host"]).collect();
    assert_eq!(hosts, ["a", "b"]);
    assert_eq!(json["nodes"][1]["memory"], Value::Null);
    let process = json["nodes"][1]["process"].as_u64().unwrap() as u32;
    assert!(Process::open(process).is_some(), "this computer plays both hosts");
    let text = topo(&["--run", &waiting.pid().to_string()]).output;
    let row = text.lines().last().unwrap();
    assert!(row.contains(" b ") && row.ends_with(" -"), "{text}");
    waiting.end();
}

#[test]
fn several_runs_are_listed() {
    let (one, other) = (Waiting::start(&["-n", "2"]), Waiting::start(&["-n", "2"]));
    let text = topo(&["--run"]).output;
    for pid in [one.pid(), other.pid()] {
        let is_row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[..1] == [pid.to_string()] && words.ends_with(&["./waits"])
        };
        assert!(text.lines().filter(|line| !line.is_empty()).any(is_row), "{text}");
    }
    let json: Value = serde_json::from_str(&topo(&["--run", "--json"]).output).unwrap();
    let listed = |pid: u32| json["runs"].as_array().unwrap().iter().any(|run| run["process"] == pid);
    assert!(listed(one.pid()) && listed(other.pid()), "{json:#}");
}

#[test]
fn the_only_run_needs_no_name() {
    // Names of sockets belong to a network namespace: in one of its own a run is the only one.
    let own_namespace = |command: &mut Command| {
        // SAFETY: unshare is a system call that touches no memory.
        unsafe {
            command.pre_exec(|| match libc::unshare(libc::CLONE_NEWNET) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
    };
    let mut probe = Command::new("true");
    own_namespace(&mut probe);
    if let Err(why) = probe.status() {
        eprintln!("skipped, because no network namespace can be made: {why}");
        return;
    }
    let mut alone = topo_command(&["--run"]);
    own_namespace(&mut alone);
    refuses(&run(&mut alone, LIMIT), 125, "no program of yours runs on several nodes");

    let folder = Folder::new();
    folder.compile("waits");
    let script = r#"mkfifo end said; exec 3<>end
        "$0" run -n 2 -- ./waits <end >said 3>&- & read ready <said
        "$0" topo --run; exec 3>&-; wait $!"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(&whole().gondwana).current_dir(&*folder);
    own_namespace(&mut shell);
    let ran = run(&mut shell, LIMIT);
    assert!(ran.output.starts_with("./waits (process "), "{} {}", ran.output, ran.errors);
    assert_eq!(ran.status.unwrap().code(), Some(3), "{}", ran.errors);
}

/// What is said about a process that is no run, while there is one.
fn about_no_run(ask: impl Fn(u32) -> Ran) -> Ran {
    let mut other = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let ran = ask(other.id());
    drop(other.stdin.take());
    other.wait().unwrap();
    ran
}

#[test]
fn what_is_no_run_is_refused_in_a_sentence() {
    let ran = about_no_run(|process| topo(&["--run", &process.to_string()]));
    refuses(&ran, 125, "is no run on several nodes");
    refuses(&topo(&["--run", &i32::MAX.to_string()]), 125, "there is no process 2147483647");
    for wrong in ["0", "x", "4294967296"] {
        refuses(&topo(&["--run", wrong]), 2, "--run");
    }
    refuses(&topo(&["--run", "1", "--machine", "x.toml"]), 2, "cannot be used with");
}

#[test]
fn a_run_with_one_node_is_the_program_itself() {
    let folder = Folder::new();
    folder.compile("waits");
    let mut command = whole().run(&folder, &["-n", "1", "--", "./waits"]);
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let ran = topo(&["--run", &program.id().to_string()]);
    drop(program.stdin.take());
    assert_eq!(program.wait().unwrap().code(), Some(3));
    refuses(&ran, 125, "with one node that is the program itself");
}

#[test]
fn a_run_that_has_just_ended_is_not_waited_for() {
    // Someone listens in the name of this process, and closes what connects.
    let listener = UnixListener::bind_addr(&address(std::process::id())).unwrap();
    let closing = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let this = std::process::id().to_string();
    refuses(&topo(&["--run", &this]), 125, "has just ended");
    closing.join().unwrap();
}

#[test]
fn names_prove_nothing() {
    let ran = about_no_run(|process| {
        let _listener = UnixListener::bind_addr(&address(process)).unwrap();
        topo(&["--run", &process.to_string()])
    });
    refuses(&ran, 125, "somebody else listens in the name of process");
}

#[test]
fn a_run_of_another_user_is_shown_to_root_only() {
    let waiting = Waiting::start(&["-n", "2"]);
    let mut command = topo_command(&["--run", &waiting.pid().to_string()]);
    if command.uid(65534).gid(65534).current_dir("/").output().is_err() {
        eprintln!("skipped, because no other user can run the command");
        return;
    }
    refuses(&run(&mut command, LIMIT), 125, "only that user and root can see it");
    let mut list = topo_command(&["--run"]);
    refuses(&run(list.uid(65534).gid(65534).current_dir("/"), LIMIT), 125, "no program of yours");
    waiting.end();
}

#[test]
fn a_stopped_run_is_not_waited_for() {
    let waiting = Waiting::start(&["-n", "2"]);
    let launcher = Process::open(waiting.pid()).unwrap();
    launcher.signal(libc::SIGSTOP);
    let mut status = 0;
    // SAFETY: the kernel writes one status; the process is a child of this one, and only stopped.
    let stopped = unsafe { libc::waitpid(waiting.pid() as i32, &raw mut status, libc::WUNTRACED) };
    assert!(stopped == waiting.pid() as i32 && libc::WIFSTOPPED(status));
    refuses(&topo(&["--run", &waiting.pid().to_string()]), 125, "is stopped and cannot answer");
    launcher.signal(libc::SIGCONT);
    waiting.end();
}

#[test]
fn those_who_ask_and_do_not_listen_do_no_harm() {
    let waiting = Waiting::start(&["-n", "2"]);
    let connect = || UnixStream::connect_addr(&waiting.address()).unwrap();
    let silent: Vec<UnixStream> = (0..300).map(|_| connect()).collect();
    (0..300).for_each(|_| drop(connect()));
    // Each is served in its turn, so all before this one have been.
    let json = waiting.json_when_up();
    let mut late = String::new();
    (&silent[0]).read_to_string(&mut late).unwrap();
    let late: Value = serde_json::from_str(&late).unwrap();
    assert_eq!(late["program"], json["program"]);
    waiting.end();
}
