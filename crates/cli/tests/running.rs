//! `gondwana topo --run`: queries of running runs.

mod common;

use common::endless::children;
use common::folder::Folder;
use common::process::Process;
use common::user::User;
use common::waiting::{Waiting, refuses, topo, topo_command};
use common::whole::{LIMIT, Ran, run, whole};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder for the sockets of launchers, as a session has one; and its one for ours.
fn session(folder: &Path) -> (PathBuf, PathBuf) {
    let session = folder.join("session");
    let sockets = session.join("gondwana");
    fs::create_dir_all(&sockets).unwrap();
    for folder in [&session, &sockets] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    (session, sockets)
}

#[test]
fn a_run_shows_its_nodes() {
    let waiting = Waiting::start(&["-n", "3", "-t", "2", "--consistency", "rc", "--common-after", "0"]);
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
    assert!(processes.into_iter().eq(started.into_iter().map(u64::from)));
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
    let process = json["nodes"][1]["process"].as_u64().unwrap();
    assert!(Process::open(process.try_into().unwrap()).is_some(), "this computer plays both hosts");
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
    // This user has no other run, and sees none of other users.
    let Some([user]) = User::several() else { return };
    refuses(
        &run(user.lead(&mut topo_command(&["--run"])).current_dir("/"), LIMIT),
        125,
        "no program of yours runs",
    );

    let folder = Folder::new();
    folder.compile("waits");
    user.owns(&folder);
    let script = r#"mkfifo end said; exec 3<>end
        "$0" run -n 2 -- ./waits <end >said 3>&- & read ready <said
        "$0" topo --run; exec 3>&-; wait $!"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(&whole().gondwana).current_dir(&*folder);
    let ran = run(user.lead(&mut shell), LIMIT);
    assert!(ran.output.starts_with("./waits (process "), "{} {}", ran.output, ran.errors);
    assert_eq!(ran.status.unwrap().code(), Some(3), "{}", ran.errors);
}

/// The message about a process that is no run, while there is a run.
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
    // Until then it is a launcher that is about to become the program.
    let exe = format!("/proc/{}/exe", program.id());
    while !fs::read_link(&exe).unwrap().ends_with("waits") {
        std::thread::yield_now();
    }
    let ran = topo(&["--run", &program.id().to_string()]);
    drop(program.stdin.take());
    assert_eq!(program.wait().unwrap().code(), Some(3));
    refuses(&ran, 125, "with one node that is the program itself");
}

#[test]
fn a_run_that_has_just_ended_is_not_waited_for() {
    // Someone listens in the name of this process, and closes what connects.
    let folder = Folder::new();
    let (session, sockets) = session(&folder);
    let this = std::process::id().to_string();
    let listener = UnixListener::bind(sockets.join(format!("{this}.run"))).unwrap();
    let closing = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let mut ask = topo_command(&["--run", &this]);
    refuses(&run(ask.env("XDG_RUNTIME_DIR", session), LIMIT), 125, "has just ended");
    closing.join().unwrap();
}

#[test]
fn names_prove_nothing() {
    let folder = Folder::new();
    let (session, sockets) = session(&folder);
    let ran = about_no_run(|process| {
        let _listener = UnixListener::bind(sockets.join(format!("{process}.run"))).unwrap();
        run(topo_command(&["--run", &process.to_string()]).env("XDG_RUNTIME_DIR", &session), LIMIT)
    });
    refuses(&ran, 125, "somebody else listens in the name of process");
}

#[test]
fn sockets_are_where_the_session_has_its_files_and_go_with_the_run() {
    let folder = Folder::new();
    // Longer than an address of a socket can be.
    let (session, sockets) = session(&folder.join("x".repeat(150)));
    let waiting = Waiting::start_with(&["-n", "2"], |command, _| {
        command.env("XDG_RUNTIME_DIR", &session);
    });
    let names = || {
        let names = fs::read_dir(&sockets).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    let pid = waiting.pid();
    assert_eq!(names(), [format!("{pid}.requests"), format!("{pid}.run")]);
    // Commands in the same session find the run there, others through the environment of its process.
    let listed = run(topo_command(&["--run", "--json"]).env("XDG_RUNTIME_DIR", &session), LIMIT);
    assert!(listed.output.contains(&pid.to_string()), "{}", listed.errors);
    waiting.json_when_up();
    waiting.end();
    assert_eq!(names(), [""; 0]);
    assert!(!sockets.exists(), "an empty folder is left");
}

#[test]
fn what_a_killed_launcher_has_left_behind_is_cleared_away() {
    let folder = Folder::new();
    let (session, sockets) = session(&folder);
    let in_session = |command: &mut Command| {
        command.env("XDG_RUNTIME_DIR", &session);
    };
    let start = || Waiting::start_with(&["-n", "2"], |command, _| in_session(command));
    let (mut killed, other) = (start(), start());
    let left = |of: &Waiting| sockets.join(format!("{}.run", of.pid())).exists();
    killed.kill();
    assert!(left(&killed) && left(&other));
    let mut list = topo_command(&["--run", "--json"]);
    in_session(&mut list);
    let json: Value = serde_json::from_str(&run(&mut list, LIMIT).output).unwrap();
    assert!(!json.to_string().contains(&killed.pid().to_string()), "{json:#}");
    assert!(!left(&killed) && left(&other), "asking clears away what is of no use, and nothing else");

    let mut killed = start();
    killed.kill();
    assert!(left(&killed));
    let next = start();
    assert!(!left(&killed) && left(&other) && left(&next), "so does the next run");
    next.end();
    other.end();
}

/// A session's folder that a launcher must not use.
fn is_avoided(spoil: impl FnOnce(&Path)) {
    let folder = Folder::new();
    let (session, sockets) = session(&folder);
    spoil(&session);
    let waiting = Waiting::start_with(&["-n", "2"], |command, _| {
        command.env("XDG_RUNTIME_DIR", &session);
    });
    let none = fs::read_dir(&sockets).map_or(0, Iterator::count);
    assert_eq!(none, 0, "nothing is put into such a folder");
    // It has another socket.
    waiting.json_when_up();
    waiting.end();
}

#[test]
fn a_session_that_others_can_look_into_is_not_used() {
    is_avoided(|session| fs::set_permissions(session, fs::Permissions::from_mode(0o750)).unwrap());
}

#[test]
fn a_session_that_is_a_symbolic_link_is_not_used() {
    is_avoided(|session| {
        let elsewhere = session.with_file_name("elsewhere");
        fs::rename(session, &elsewhere).unwrap();
        std::os::unix::fs::symlink(elsewhere, session).unwrap();
    });
}

#[test]
fn a_session_of_another_user_is_not_used() {
    let Some([other]) = User::several() else { return };
    is_avoided(|session| other.owns(session));
}

#[test]
fn a_run_without_a_place_for_its_sockets_goes_on_and_cannot_be_asked() {
    // Everything can only be read, in a name space of its own.
    let read_only = |command: &mut Command, _: &Path| {
        command.env_remove("XDG_RUNTIME_DIR");
        // SAFETY: system calls on constant strings.
        unsafe {
            command.pre_exec(|| {
                let (root, none) = (c"/".as_ptr(), std::ptr::null());
                let private = libc::MS_REC | libc::MS_PRIVATE;
                let done = libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(none, root, none, private, std::ptr::null()) == 0
                    && [c"/tmp", c"/run"].iter().all(|path| {
                        let path = path.as_ptr();
                        let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
                        libc::mount(path, path, none, libc::MS_BIND, std::ptr::null()) == 0
                            && libc::mount(none, path, none, flags, std::ptr::null()) == 0
                    });
                if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            })
        };
    };
    let mut probe = Command::new("true");
    read_only(&mut probe, Path::new(""));
    if let Err(why) = probe.status() {
        eprintln!("skipped, because nothing can be mounted: {why}");
        return;
    }
    let waiting = Waiting::start_with(&["-n", "2"], read_only);
    refuses(&topo(&["--run", &waiting.pid().to_string()]), 125, "cannot be asked: it found no directory");
    waiting.end();
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
    let (pid, mut status) = (waiting.pid().cast_signed(), 0);
    // SAFETY: the kernel writes one status; the process is a child of this one, and only stopped.
    let stopped = unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) };
    assert!(stopped == pid && libc::WIFSTOPPED(status));
    refuses(&topo(&["--run", &waiting.pid().to_string()]), 125, "is stopped and cannot answer");
    launcher.signal(libc::SIGCONT);
    waiting.end();
}

#[test]
fn those_who_ask_and_do_not_listen_do_no_harm() {
    let folder = Folder::new();
    let (session, sockets) = session(&folder);
    let waiting = Waiting::start_with(&["-n", "2"], |command, _| {
        command.env("XDG_RUNTIME_DIR", &session);
    });
    let socket = sockets.join(format!("{}.run", waiting.pid()));
    let connect = || UnixStream::connect(&socket).unwrap();
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

#[test]
fn those_who_say_nothing_keep_no_request_waiting() {
    let folder = Folder::new();
    let (session, sockets) = session(&folder);
    let waiting = Waiting::start_with(&["-n", "2"], |command, _| {
        command.env("XDG_RUNTIME_DIR", &session);
    });
    let socket = sockets.join(format!("{}.requests", waiting.pid()));
    // One after the other they would exceed the timeout of an answer.
    let silent: Vec<UnixStream> = (0..60).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let mut ask = Command::new(&whole().gondwana);
    ask.args(["monitor", &waiting.pid().to_string(), "--counters"]).env("XDG_RUNTIME_DIR", &session);
    refuses(&run(&mut ask, LIMIT), 125, "has no filters");
    drop(silent);
    waiting.end();
}
