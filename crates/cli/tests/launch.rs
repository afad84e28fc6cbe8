//! Runs behave like the native program, for the program and for its user.

mod common;

use common::installation::{Installation, errors};
use common::process::Process;
use common::whole::LIMIT;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long anything may be left of a run that has ended.
const SOON: Duration = Duration::from_secs(2);

const FABRICS: [&[&str]; 3] = [
    &["--fabric", "shm"],
    &["--fabric", "tcp"],
    &["--hosts", "a=127.0.0.1,b=127.0.0.1", "--launcher", "{command}"],
];

fn run_of<'a>(fabric: &[&'a str], program: &[&'a str]) -> Vec<&'a str> {
    [&["run"], fabric, program].concat()
}

#[test]
fn streams_arguments_and_folder_are_the_programs() {
    let here = Installation::new();
    for fabric in FABRICS {
        let script = "echo \"$1\"; pwd; cat; echo wrong >&2";
        let words = run_of(fabric, &["sh", "-c", script, "sh", "a  b"]);
        let mut child = here
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = "line\n".repeat(50_000);
        let pipe = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            // Beside reading: the program answers before it has read everything.
            scope.spawn(|| { pipe }.write_all(input.as_bytes()).unwrap());
            child.wait_with_output().unwrap()
        });
        let folder = here.path("").canonicalize().unwrap();
        let expected = format!("a  b\n{}\n{input}", folder.display());
        assert!(String::from_utf8(output.stdout.clone()).unwrap() == expected, "{fabric:?}");
        assert_eq!(errors(&output), "wrong\n", "{fabric:?}");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn the_environment_is_the_programs() {
    let here = Installation::new();
    for fabric in FABRICS {
        let words = run_of(fabric, &["env"]);
        let native =
            Command::new("env").env_clear().envs([("B", "2"), ("A", "1"), ("NODE", "")]).output().unwrap();
        let mut command = here.command(&words);
        command.env_clear().envs([("B", "2"), ("A", "1"), ("NODE", "")]);
        // The program is looked for as execvp does without PATH.
        let output = command.output().unwrap();
        assert_eq!(output.stdout, native.stdout, "{fabric:?}: {}", errors(&output));
    }
}

#[test]
fn every_node_writes_to_standard_output() {
    let here = Installation::new();
    for fabric in FABRICS {
        let words = run_of(fabric, &["true"]);
        let output = here.command(&words).env("NODE", "print").output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "from node 1\n",
            "{fabric:?}: {}",
            errors(&output)
        );
    }
}

#[test]
fn the_exit_status_is_the_programs() {
    let here = Installation::new();
    for fabric in FABRICS {
        for status in [0, 1, 42, 255] {
            let script = format!("exit {status}");
            let words = run_of(fabric, &["sh", "-c", &script]);
            let output = here.run(&words);
            assert_eq!(output.status.code(), Some(status), "{fabric:?}: {}", errors(&output));
        }
    }
}

#[test]
fn one_node_is_the_program_itself() {
    let here = Installation::new();
    let output = here.run(&["run", "-n", "1", "sh", "-c", "echo $PPID; env; exit 7"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.lines().next(), Some(std::process::id().to_string().as_str()), "no launcher in between");
    let ours = |line: &&str| line.starts_with("LD_PRELOAD=") || line.starts_with("GONDWANA");
    for line in text.lines().filter(ours) {
        let (name, value) = line.split_once('=').unwrap();
        assert_eq!(std::env::var(name).as_deref(), Ok(value), "nothing is added to the environment");
    }
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn signals_that_are_not_ignored_stay_so() {
    let here = Installation::new();
    let ask = ["grep", "SigIgn", "/proc/self/status"];
    let native = Command::new(ask[0]).args(&ask[1..]).output().unwrap().stdout;
    for nodes in ["1", "2"] {
        let output = here.run(&[&["run", "-n", nodes][..], &ask].concat());
        assert_eq!(output.stdout, native, "{nodes} nodes");
    }
}

#[test]
fn a_crash_anywhere_ends_the_run_with_one_line() {
    let here = Installation::new();
    for fabric in FABRICS {
        for (order, signal, line) in [
            ("crash", libc::SIGSEGV, "gondwana: node 1, thread 3 died of SIGSEGV at address 0x1000\n"),
            ("kill", libc::SIGKILL, "gondwana: node 1 was killed by SIGKILL\n"),
        ] {
            let words = run_of(fabric, &["sleep", "1000"]);
            let output = here.command(&words).env("NODE", order).output().unwrap();
            assert_eq!(errors(&output), line, "{fabric:?}");
            assert_eq!(output.status.signal(), Some(signal), "{fabric:?}");
        }
    }
}

/// A run with the stand-in that has printed the number of node 0's process and goes on until it is ended.
struct Sleeping {
    launcher: Child,
    output: BufReader<ChildStdout>,
    node: Process,
}

impl Sleeping {
    fn start(here: &Installation, fabric: &[&str]) -> Self {
        let words = run_of(fabric, &["sh", "-c", "echo $$; exec sleep 1000"]);
        let mut launcher =
            here.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let node = Process::open(line.trim().parse().unwrap()).unwrap();
        Self { launcher, output, node }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the launcher is our child and has not been waited for.
        unsafe { libc::kill(self.launcher.id().cast_signed(), signal) };
    }

    /// Waits until no process has the launcher's standard output open any more: all nodes have ended.
    fn all_nodes_end(&mut self) {
        assert!(self.node.ends_within(SOON));
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

/// A run whose standard output is closed after the first line; its status and standard error.
fn closed_output(here: &Installation, fabric: &[&str], script: &str) -> (ExitStatus, String) {
    let mut launcher = here
        .command(&run_of(fabric, &["sh", "-c", script]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(launcher.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    let ends = Process::open(launcher.id()).unwrap().ends_within(LIMIT);
    if !ends {
        launcher.kill().unwrap();
    }
    let output = launcher.wait_with_output().unwrap();
    assert!(ends, "{fabric:?}: writes for ever to nobody");
    (output.status, errors(&output))
}

#[test]
fn a_closed_output_reaches_the_program() {
    let here = Installation::new();
    for fabric in FABRICS {
        let (status, said) = closed_output(&here, fabric, "exec yes");
        assert_eq!((status.signal(), said.as_str()), (Some(libc::SIGPIPE), ""), "{fabric:?}");
        // Who ignores the signal gets the error.
        let script = "trap '' PIPE; while echo y; do :; done 2>errors; exit 7";
        let (status, said) = closed_output(&here, fabric, script);
        assert_eq!((status.code(), said.as_str()), (Some(7), ""), "{fabric:?}");
        // A shell does not print which error it was.
        assert!(std::fs::read_to_string(here.path("errors")).unwrap().contains("echo"), "{fabric:?}");
    }
}

#[test]
fn a_signal_to_the_launcher_reaches_the_program() {
    let here = Installation::new();
    for fabric in FABRICS {
        let mut run = Sleeping::start(&here, fabric);
        run.signal(libc::SIGTERM);
        run.all_nodes_end();
        assert_eq!(run.launcher.wait().unwrap().signal(), Some(libc::SIGTERM), "{fabric:?}");
        let mut said = String::new();
        run.launcher.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{fabric:?}");
    }
}

#[test]
fn nothing_survives_the_launcher() {
    let here = Installation::new();
    for fabric in FABRICS {
        let mut run = Sleeping::start(&here, fabric);
        run.launcher.kill().unwrap();
        run.all_nodes_end();
        run.launcher.wait().unwrap();
    }
}

#[test]
fn statistics_are_a_table_and_a_file() {
    let here = Installation::new();
    for (fabric, name) in FABRICS.iter().zip(["shm", "tcp", "tcp"]) {
        let program = ["-n", "3", "--consistency", "sc", "--stats=out.json", "true"];
        let words = run_of(fabric, &program);
        let output = here.run(&words);
        assert!(
            errors(&output).contains("\nfaults read       1      41      41     83\n"),
            "{}",
            errors(&output)
        );
        assert!(output.stdout.is_empty());
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(here.path("out.json")).unwrap()).unwrap();
        assert_eq!(report["total"]["faults"]["read"], 83);
        assert_eq!(report["fabric"], name);
        assert_eq!(report["consistency_reason"], "asked for");
        assert_eq!(report["program"][0], "true");
    }
    let output = here.run(&["run", "-n", "1", "--stats", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(errors(&output).contains("nothing crossed between nodes"));
}

/// A library that is preloaded puts functions in place of the C library's, and calls these by `RTLD_NEXT`.
#[test]
fn preloaded_libraries_wrap_functions() {
    let here = Installation::new();
    let wrapper = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <sys/types.h>
        static int calls;
        mode_t umask(mode_t mask) {
            static mode_t (*next)(mode_t);
            if (!next) *(void **)&next = dlsym(RTLD_NEXT, "umask");
            return next(mask) + 01000 * ++calls;
        }
        ssize_t read(int fd, void *to, size_t count) {
            static ssize_t (*next)(int, void *, size_t);
            if (!next) *(void **)&next = dlsym(RTLD_NEXT, "read");
            return next(fd, to, fd == 0 && count > 2 ? 2 : count);
        }
    "#;
    let program = r#"
        #include <pthread.h>
        #include <stdio.h>
        #include <sys/stat.h>
        #include <unistd.h>
        static void *work(void *text) { printf("%zd, %o\n", read(0, text, 9), umask(027)); return text; }
        int main(void) {
            char text[10] = {0};
            umask(022);
            for (int i = 0; i < 3; i++) {
                pthread_t thread;
                pthread_create(&thread, NULL, work, text);
                pthread_join(thread, NULL);
                puts(text);
            }
        }
    "#;
    std::fs::write(here.path("wrapper.c"), wrapper).unwrap();
    std::fs::write(here.path("wrapped.c"), program).unwrap();
    std::fs::write(here.path("input"), "ABCDEF").unwrap();
    here.gcc(&["-shared", "-fPIC", "wrapper.c", "-o", "libwrapper.so"]);
    here.gcc(&["wrapped.c", "-pthread", "-o", "wrapped"]);
    let output = |command: &mut Command| {
        command.env("LD_PRELOAD", here.path("libwrapper.so"));
        command.stdin(std::fs::File::open(here.path("input")).unwrap());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let expected = "2, 2022\nAB\n2, 3027\nCD\n2, 4027\nEF\n";
    assert_eq!(output(&mut Command::new(here.path("wrapped"))), expected);
    for fabric in ["shm", "tcp"] {
        assert_eq!(output(&mut here.command(&["run", "-n", "2", "--fabric", fabric, "./wrapped"])), expected);
    }
}

/// As the system executes them. The interpreter is a program that prints its arguments.
#[test]
fn scripts_are_executed_by_their_interpreters() {
    let here = Installation::new();
    let interpreter = "#include <stdio.h>\nint main(int n, char **words) {\n\
                       for (int i = 0; i < n; i++) printf(\"[%s]\", words[i]); puts(\"\"); return 3; }\n";
    std::fs::write(here.path("interpreter.c"), interpreter).unwrap();
    here.gcc(&["interpreter.c", "-o", "interpreter"]);
    let interpreter = here.path("interpreter");
    let folder = interpreter.parent().unwrap().display();
    let script = |name: &str, line: String| {
        std::fs::write(here.path(name), line + "\nthe rest\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(here.path(name), mode).unwrap();
    };
    script("plain", format!("#!{folder}/interpreter -a b"));
    script("found", "#!/usr/bin/env interpreter".to_owned());
    script("split", "#!/usr/bin/env -S interpreter -x  -y".to_owned());
    script("nested", format!("#!{folder}/plain"));
    script("missing", format!("#!{folder}/nothing"));
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    for (name, nodes) in [("plain", "2"), ("found", "2"), ("split", "1"), ("nested", "2")] {
        let native = Command::new(format!("./{name}"))
            .args(["one", "two words"])
            .env("PATH", &path)
            .current_dir(interpreter.parent().unwrap())
            .output()
            .unwrap();
        let mut command = here.command(&["run", "-n", nodes, &format!("./{name}"), "one", "two words"]);
        let ran = command.env("PATH", &path).output().unwrap();
        assert_eq!(ran, native, "{name}: {}", errors(&ran));
        assert_eq!(native.status.code(), Some(3));
    }
    let missing = here.run(&["run", "./missing"]);
    assert!(errors(&missing).contains("/nothing: no such program"), "{}", errors(&missing));
    assert_eq!(missing.status.code(), Some(127));
}

#[test]
fn inline_atomic_instructions_decide_the_consistency() {
    let here = Installation::new();
    let library = "int n; void bump(void) { __sync_fetch_and_add(&n, 1); }\n";
    std::fs::write(here.path("own.c"), library).unwrap();
    here.gcc(&["-shared", "-fPIC", "own.c", "-o", "libown.so"]);
    std::fs::write(here.path("user.c"), "void bump(void);\nint main(void) { bump(); return 0; }\n").unwrap();
    here.gcc(&["user.c", "-L.", "-lown", "-Wl,-rpath,$ORIGIN", "-o", "user"]);
    here.program("plain", &[]);
    let reason = |program: &str| errors(&here.run(&["run", "--stats", program]));
    assert!(reason("./plain").contains("rc (no inline atomic instruction)"));
    let said = reason("./user");
    assert!(said.contains("sc (1 inline atomic instruction, in function bump at 0x"), "{said}");
    assert!(said.contains("libown.so"), "{said}");
    let mut preloaded = here.command(&["run", "--stats", "./plain"]);
    let said = errors(&preloaded.env("LD_PRELOAD", here.path("libown.so")).output().unwrap());
    assert!(said.contains("libown.so"), "{said}");
}
