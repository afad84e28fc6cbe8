//! Runs on several hosts, most of which fail. This computer plays all of them.

mod common;

use common::endless::{Endless, children};
use common::folder::Folder;
use common::installation::{Installation, errors};
use common::process::Process;
use common::whole::{LIMIT, run, whole};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TWO: [&str; 3] = ["run", "--hosts", "a=127.0.0.1,b=127.0.0.1"];

/// Runs on two hosts, which must fail with one line that contains the text.
fn fails(here: &Installation, options: &[&str], program: &[&str], text: &str) {
    let output = here.run(&[&TWO[..], options, program].concat());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains(text) && said.matches('\n').count() == 1, "{said}");
}

#[test]
fn a_host_that_cannot_be_reached_is_named() {
    let here = Installation::new();
    fails(&here, &["--launcher", "false {command}"], &["true"], "does not answer");
}

#[test]
fn hosts_that_keep_silent_are_named_when_time_is_over() {
    let here = Installation::new();
    let launcher = "sh -c 'test {host} = a && exec {command}; exec cat 3>&1 >/dev/null'";
    let options = ["--host-timeout", "1", "--launcher", launcher];
    fails(&here, &options, &["true"], "gondwana: no answer in time from b (--host-timeout gives more)\n");
}

#[test]
fn a_program_that_a_host_does_not_have_is_named() {
    let here = Installation::new();
    here.program("program", &[]);
    let launcher = "sh -c 'test {host} = b && mv program gone; exec {command}'";
    // The hosts share a folder, so that the other one may miss it as well.
    fails(&here, &["--launcher", launcher], &["./program"], "program: ");
}

#[test]
fn a_program_that_differs_between_hosts_is_refused() {
    let here = Installation::new();
    here.program("program", &[]);
    // A longer file can still run; what runs already cannot be written to.
    let launcher = "sh -c 'test {host} = b && cp program longer && echo x >> longer && mv longer program; exec {command}'";
    fails(&here, &["--launcher", launcher], &["./program"], "is not the same file as here");
}

/// A program whose library is another one on each host, as far as the codes differ. Each host finds it in the folder that
/// its agent has inherited as a descriptor.
fn with_library(codes: [&str; 2], options: &[&str]) -> Installation {
    let here = Installation::new();
    for (host, code) in ["a", "b"].into_iter().zip(codes) {
        std::fs::create_dir(here.path(&format!("lib-{host}"))).unwrap();
        std::fs::write(here.path("own.c"), code).unwrap();
        let file = format!("lib-{host}/libown.so");
        here.gcc(&[&["-shared", "-fPIC", "own.c", "-o", &file], options].concat());
    }
    std::fs::write(here.path("uses.c"), "int own(void); int main(void) { return own(); }").unwrap();
    here.gcc(&["uses.c", "-o", "uses", "-Llib-a", "-lown", "-Wl,-rpath,/proc/self/fd/9"]);
    here
}

/// Gives the agent of each host its folder.
const WITH_FOLDER: &str = "sh -c 'exec 9<lib-{host}; exec {command}'";

const ZERO: &str = "int own(void) { return 0; }";

/// The same result by shifted code.
const SHIFTED: &str = "int first(void) { return 1; } int own(void) { return 0; }";

#[test]
fn a_library_that_differs_between_hosts_is_refused() {
    for options in [&["-Wl,--build-id"][..], &["-Wl,--build-id=none"]] {
        let here = with_library([ZERO, SHIFTED], options);
        let text = "lib-a/libown.so on host a is not the same file as on host b, where it is ";
        fails(&here, &["--launcher", WITH_FOLDER], &["./uses"], text);
        let same = with_library([ZERO, ZERO], options);
        let output = same.run(&[&TWO[..], &["--launcher", WITH_FOLDER, "./uses"]].concat());
        let said = errors(&output);
        assert!(!said.contains("libown"), "{said}");
    }
}

#[test]
fn a_library_that_a_host_does_not_have_is_named() {
    let here = with_library([ZERO, ZERO], &[]);
    std::fs::remove_file(here.path("lib-b/libown.so")).unwrap();
    fails(
        &here,
        &["--launcher", WITH_FOLDER],
        &["./uses"],
        "but host b has no libown.so: install the same version",
    );
}

#[test]
fn doctor_checks_hosts_ahead() {
    let doctor = |here: &Installation, options: &[&str]| {
        let hosts = ["doctor", "--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", WITH_FOLDER];
        let output = here.run(&[&hosts, options].concat());
        (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap() + &errors(&output))
    };
    let here = with_library([ZERO, SHIFTED], &[]);
    let (status, said) = doctor(&here, &["--", "./uses"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("LACK  same files") && said.contains("lib-a/libown.so on host a is not"), "{said}");
    let (status, said) = doctor(&here, &[]);
    assert_eq!(status, Some(0), "{said}");
    for text in
        ["a: clock", "b: ways to others", "all reached; it listens at 127.0.0.1", "same runtime library"]
    {
        assert!(said.contains(text), "{text} in {said}");
    }
    let (_, said) = doctor(&here, &["--json", "--", "./nothing"]);
    assert!(said.contains("nothing: no such program"), "{said}");
    let (status, said) = doctor(&with_library([ZERO, ZERO], &[]), &["--json", "--", "./uses"]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, &report["runs_work"]), (Some(0), &Value::Bool(true)), "{said}");
}

#[test]
fn doctor_names_hosts_that_cannot_be_examined() {
    let here = Installation::new();
    let hosts = ["doctor", "--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher"];
    for (launcher, options, text) in [
        ("sh -c 'test {host} = a && exec {command}'", &[][..], "it does not answer"),
        (
            "sh -c 'test {host} = a && exec {command}; cat >/dev/null'",
            &["--host-timeout", "12"],
            "no answer in time",
        ),
    ] {
        let output = here.run(&[&hosts[..], &[launcher], options].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("LACK  b: agent") && said.contains(text) && said.contains("ok    a: agent"),
            "{said}"
        );
    }
}

#[test]
fn a_launcher_of_another_version_is_refused() {
    let here = Installation::new();
    let mut agent = here.command(&["agent"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let message = br#"{"Prepare":{"version":"0.0.0","new":"field"}}"#;
    let mut frame = u32::try_from(message.len()).unwrap().to_le_bytes().to_vec();
    frame.push(0);
    frame.extend_from_slice(message);
    agent.stdin.take().unwrap().write_all(&frame).unwrap();
    let mut said = vec![];
    agent.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("Failed") && said.contains("and 0.0.0 here"), "{said}");
    assert!(agent.wait().unwrap().success());
}

#[test]
fn an_agent_that_dies_ends_the_run() {
    let here = Installation::new();
    // The agent of b is killed as soon as the program on node 0 runs.
    let launcher = "sh -c 'echo $$ > pid-{host}; exec {command}'";
    let program = ["sh", "-c", "kill -9 $(cat pid-b); exec sleep 1000"];
    fails(&here, &["--launcher", launcher], &program, "host b: the connection is lost");
}

/// How long anything may be left of a run that has failed.
const SOON: Duration = Duration::from_secs(2);

/// The time that the launcher gives agents to end.
const FAREWELL: Duration = Duration::from_millis(300);

#[test]
fn an_agent_that_dies_before_it_is_ready_is_not_waited_for() {
    let here = Installation::new();
    let took = || {
        let start = Instant::now();
        fails(&here, &["--launcher", "sh -c 'kill -9 $$ # {host} {command}'"], &["true"], "does not answer");
        start.elapsed()
    };
    let least = (0..5).map(|_| took()).min().unwrap();
    assert!(least < FAREWELL, "{least:?}");
}

/// Starts agents that read a runtime library which takes for ever, and waits until all do. The writer keeps them there.
fn agents_that_prepare(here: &Installation) -> (Child, File) {
    std::fs::remove_file(here.path("libgondwana.so")).unwrap();
    assert!(Command::new("mkfifo").arg(here.path("libgondwana.so")).status().unwrap().success());
    let command =
        [&TWO[..], &["--launcher", "sh -c 'echo $$ > pid-{host}; exec {command}'", "true"]].concat();
    let launcher = here.command(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let library = File::options().write(true).open(here.path("libgondwana.so")).unwrap();
    (launcher, library)
}

#[test]
fn agents_that_prepare_end_with_their_launcher() {
    let here = Installation::new();
    let (mut launcher, library) = agents_that_prepare(&here);
    let agents: Vec<Process> = children(launcher.id()).into_iter().filter_map(Process::open).collect();
    assert!(!agents.is_empty());
    launcher.kill().unwrap();
    for agent in agents {
        assert!(agent.ends_within(SOON), "the agent {} is left", agent.pid);
    }
    launcher.wait().unwrap();
    drop(library);
}

#[test]
fn agents_that_prepare_end_when_another_has_died() {
    let here = Installation::new();
    let (launcher, library) = agents_that_prepare(&here);
    let victim = Process::open(children(launcher.id())[0]).unwrap();
    victim.signal(libc::SIGKILL);
    assert!(Process::open(launcher.id()).unwrap().ends_within(SOON));
    let output = launcher.wait_with_output().unwrap();
    assert!(errors(&output).contains("does not answer: "), "{}", errors(&output));
    assert_eq!(output.status.code(), Some(125));
    drop(library);
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let here = Installation::new();
    let full = |program: &[&str]| {
        let command = [&TWO[..], &["--launcher", "{command}"], program].concat();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let launcher = here.command(&command).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        assert!(Process::open(launcher.id()).unwrap().ends_within(LIMIT), "{program:?}");
        let output = launcher.wait_with_output().unwrap();
        (output.status.code(), errors(&output))
    };
    let sentence = "gondwana: standard output cannot be written: No space left on device (os error 28); the rest of it is \
                    lost\n";
    for program in [&["echo", "lost"][..], &["yes"]] {
        assert_eq!(full(program), (Some(125), sentence.to_owned()), "{program:?}");
    }
    // The program's own failure takes precedence.
    assert_eq!(full(&["sh", "-c", "echo lost; exit 3"]), (Some(3), sentence.to_owned()));
}

#[test]
fn output_that_nobody_reads_holds_up_nothing_else() {
    let here = Installation::new();
    let script = "trap 'echo caught >&2; exit 3' TERM; yes & wait";
    let command = [&TWO[..], &["--launcher", "{command}", "sh", "-c", script]].concat();
    let mut launcher = here.command(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (output, mut said) = (launcher.stdout.take().unwrap(), launcher.stderr.take().unwrap());
    let start = Instant::now();
    while waiting_in(&output) < PIPE {
        assert!(start.elapsed() < LIMIT, "the program prints nothing");
        std::thread::yield_now();
    }
    let process = Process::open(launcher.id()).unwrap();
    process.signal(libc::SIGTERM);
    let (sender, heard) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut line = [0; 7];
        said.read_exact(&mut line).unwrap();
        sender.send(line).unwrap();
        said
    });
    let line = heard.recv_timeout(LIMIT).expect("standard error comes although standard output is stuck");
    assert_eq!(&line, b"caught\n");
    // The program's output stays available as long as there is a reader.
    assert!(!process.ends_within(Duration::from_millis(100)));
    drop(output);
    assert!(process.ends_within(LIMIT));
    assert_eq!(launcher.wait().unwrap().code(), Some(3));
    drop(reading.join().unwrap());
}

#[test]
fn a_launcher_whose_output_nobody_reads_ends_when_asked() {
    let here = Installation::new();
    // Ends by itself, with more output than the credit.
    let command = [&TWO[..], &["--launcher", "{command}", "sh", "-c", "head -c 300000 /dev/zero"]].concat();
    let mut launcher = here.command(&command).stdout(Stdio::piped()).spawn().unwrap();
    let output = launcher.stdout.take().unwrap();
    let process = Process::open(launcher.id()).unwrap();
    let start = Instant::now();
    while waiting_in(&output) < PIPE
        || children(launcher.id()).iter().any(|&agent| !children(agent).is_empty())
    {
        assert!(start.elapsed() < LIMIT, "the program does not end");
        std::thread::yield_now();
    }
    // Until the launcher knows of all ends, it passes the signal to the program.
    while !process.ends_within(Duration::from_millis(50)) {
        assert!(start.elapsed() < LIMIT, "the launcher does not end");
        process.signal(libc::SIGTERM);
    }
    assert_eq!(launcher.wait().unwrap().code(), Some(0));
}

/// How many bytes a pipe holds.
const PIPE: usize = 64 << 10;

/// How many bytes wait in a pipe.
fn waiting_in(pipe: &impl AsRawFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one number.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes.try_into().unwrap()
}

/// How to reach a namespace.
const INTO: &str = "ip netns exec {host} {command}";

/// Two network namespaces with one cable between them, as two hosts.
struct Namespaces([String; 2]);

impl Namespaces {
    /// Makes them, where that is possible.
    fn new() -> Option<Self> {
        let made = Self::make();
        made.inspect_err(|why| eprintln!("skipped, because no network namespace can be made: {why}")).ok()
    }

    fn make() -> Result<Self, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("gondwana-{}-{number}{end}", std::process::id()));
        let this = Self(names);
        let [a, b] = &this.0;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b])?;
        for (name, address) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24")] {
            ip(&["-n", name, "address", "add", address, "dev", "cable"])?;
            ip(&["-n", name, "link", "set", "cable", "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(this)
    }

    /// The list of both, for `--hosts`.
    fn list(&self) -> String {
        format!("{}=10.0.0.1,{}=10.0.0.2", self.0[0], self.0[1])
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            // It may not exist.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(errors(&output)) }
}

#[test]
fn a_program_runs_on_two_hosts_as_natively() {
    let Some(hosts) = Namespaces::new() else { return };
    let whole = whole();
    let program = ["./pagerank", "-p", "4"];
    let native = run(Command::new(program[0]).args(&program[1..]).current_dir(&whole.apps), LIMIT);
    for consistency in ["rc", "sc"] {
        let list = hosts.list();
        let options = ["-n", "4", "--hosts", &list, "--launcher", INTO, "--consistency", consistency, "--"];
        let ran = run(&mut whole.run(&whole.apps, &[&options[..], &program].concat()), LIMIT);
        assert_eq!(ran.output, native.output, "{consistency}: {}", ran.errors);
        assert!(ran.status.unwrap().success(), "{consistency}");
    }
}

/// Each host has its own way to the launcher, but what threads print in turn comes in that order.
#[test]
fn what_threads_of_two_hosts_print_comes_in_their_order() {
    let whole = whole();
    let hosts = ["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "sh -c 'exec {command}' {host}", "--"];
    for (program, threads) in
        [("conform/print_order", "3"), ("litmus/print_by_atomics", "4"), ("conform/redirected_output", "2")]
    {
        let program = whole.programs.join(program);
        let command = [program.to_str().unwrap(), "-p", threads];
        let native = run(Command::new(command[0]).args(&command[1..]), LIMIT);
        for nodes in ["2", "3"] {
            let options = [&["-n", nodes], &hosts[..], &command].concat();
            let ran = run(&mut whole.run(&whole.programs, &options), LIMIT);
            assert_eq!(ran.output, native.output, "{nodes} nodes: {}", ran.errors);
            let printed = ran.errors.split_inclusive('\n').filter(|line| !line.starts_with("gondwana: "));
            assert_eq!(printed.collect::<String>(), native.errors, "{nodes} nodes");
        }
    }
}

/// The second host has nothing in one of the directories.
#[test]
fn a_directory_that_another_host_does_not_have_is_named() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped, because no mount namespace can be made");
    }
    let folder = Folder::new();
    folder.compile("directory");
    let (here, hidden) = (folder.display().to_string(), folder.join("hidden"));
    let (inner, common) = (hidden.join("inner"), folder.join("common"));
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir(&common).unwrap();
    let script = "host=$1; shift; test $host = a && exec sh -c \"$*\"\n\
        exec unshare -m sh -c \"mount -t tmpfs none hidden && $*\"\n";
    std::fs::write(folder.join("into"), script).unwrap();
    let goes = |to: &std::path::Path| {
        let to = to.to_str().unwrap();
        let options = ["-n", "2", "--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher"];
        let more = ["sh ./into {host} {command}", "--", "./directory", to];
        run(&mut whole().run(&folder, &[&options[..], &more].concat()), LIMIT)
    };
    let went = goes(&common);
    assert_eq!((went.output, went.errors.as_str()), (format!("went: {here}/common\n"), ""));
    let stayed = goes(&inner);
    assert_eq!(stayed.output, format!("No such file or directory: {here}\n"), "{}", stayed.errors);
    let says = format!("chdir() to {here}/hidden/inner: node 1 cannot go there (No such file or directory");
    assert!(stayed.errors.contains(&says) && stayed.errors.lines().count() == 1, "{}", stayed.errors);
}

/// What a program opens, a host gets from the first node if it does not have the file.
#[test]
fn a_library_that_is_opened_need_not_be_on_all_hosts() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped, because no mount namespace can be made");
    }
    let (whole, folder) = (whole(), Folder::new());
    let script = "host=$1; libraries=$2; shift 2; test $host = a && exec sh -c \"$*\"\n\
        exec unshare -m sh -c \"mount -t tmpfs none $libraries && $*\"\n";
    std::fs::write(folder.join("into"), script).unwrap();
    let libraries = whole.programs.join("libraries");
    let launcher = format!("sh ./into {{host}} {} {{command}}", libraries.display());
    for program in ["conform/dlopen_locals", "cxx/dlopen_throws"] {
        let program = whole.programs.join(program);
        let options = ["-n", "4", "--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", &launcher, "--"];
        let command = [&options[..], &[program.to_str().unwrap(), "-p", "4"]].concat();
        let ran = run(&mut whole.run(&folder, &command), LIMIT);
        assert!(ran.output.starts_with("PASS ") && ran.errors.is_empty(), "{}{}", ran.output, ran.errors);
    }
}

/// Half of the threads and of the pages are on the other computer, as asked for.
#[test]
fn policies_hold_across_hosts() {
    let Some(hosts) = Namespaces::new() else { return };
    let whole = whole();
    let folder = Folder::new();
    folder.compile("placed");
    let native = run(Command::new("./placed").current_dir(&*folder), LIMIT);
    let list = hosts.list();
    for memory in ["striped:16", "block", "node:1", "remote"] {
        let options =
            ["--hosts", &list, "--launcher", INTO, "--threads", "node:1;node:0", "--memory", memory];
        let ran = run(
            &mut whole.run(&folder, &[&options[..], &["--stats=stats.json", "--", "./placed"]].concat()),
            LIMIT,
        );
        assert_eq!(ran.output, native.output, "{memory}: {}", ran.errors);
        let stats: Value =
            serde_json::from_slice(&std::fs::read(folder.join("stats.json")).unwrap()).unwrap();
        let started = [0, 1].map(|node| stats["nodes"][node]["threads"]["started"].as_u64().unwrap());
        assert_eq!(started, [2, 2], "{memory}");
        let sum = |name: &str| {
            let of = |node: usize| stats["nodes"][node]["homes"][name].as_u64().unwrap();
            of(0) + of(1)
        };
        assert_eq!(sum("asked"), sum("found") + sum("untouched"), "{memory}: {stats}");
        assert!(stats["nodes"][1]["homes"]["found"].as_u64().unwrap() > 100, "{memory}: {stats}");
    }
}

#[test]
fn a_cut_cable_ends_the_run() {
    // Threads that communicate much, and threads that only compute.
    for program in ["endless", "silent"] {
        let Some(hosts) = Namespaces::new() else { return };
        let options = ["-n", "4", "--hosts", &hosts.list(), "--launcher", INTO];
        let run = Endless::start_program(program, &options);
        let start = Instant::now();
        ip(&["-n", &hosts.0[0], "link", "set", "cable", "down"]).unwrap();
        let (said, status) = run.end(SOON);
        eprintln!("{program}: all had ended after {:?}", start.elapsed());
        assert!(said.contains("has lost its connection to node"), "{program}: {said}");
        assert!(said.contains("its computer does not answer"), "{program}: {said}");
        assert_eq!((said.matches('\n').count(), status.success()), (1, false), "{program}: {said}");
    }
}

#[test]
fn nodes_end_without_a_launcher_that_could_end_them() {
    let Some(hosts) = Namespaces::new() else { return };
    let run = Endless::start(&["-n", "2", "--hosts", &hosts.list(), "--launcher", INTO]);
    let launcher = Process::open(run.launcher.id()).unwrap();
    // A launcher that is as good as cut off.
    launcher.signal(libc::SIGSTOP);
    ip(&["-n", &hosts.0[0], "link", "set", "cable", "down"]).unwrap();
    for agent in &run.nodes {
        assert!(agent.ends_within(2 * SOON), "the agent {} is left", agent.pid);
    }
    launcher.signal(libc::SIGCONT);
    run.end(SOON);
}
