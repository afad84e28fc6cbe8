//! `topo`, `exec` and `where` on this computer, with the real kernel.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use gondwana_host::sys;
use gondwana_page::PAGE_SIZE;
use gondwana_topology::{Machine, ProcessorId, ProcessorSet};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn gondwana(arguments: &[&str]) -> Command {
    let mut command = Command::new(&whole().gondwana);
    command.args(arguments);
    command
}

fn ran(arguments: &[&str]) -> Ran {
    run(&mut gondwana(arguments), LIMIT)
}

/// The command must fail with this status and one sentence that contains the text.
fn fails(arguments: &[&str], status: i32, text: &str) {
    let ran = ran(arguments);
    assert_eq!(ran.status.unwrap().code(), Some(status), "{arguments:?}: {}", ran.errors);
    assert!(
        ran.errors.starts_with("gondwana: ") && ran.errors.contains(text),
        "{arguments:?}: {}",
        ran.errors
    );
    assert_eq!(ran.output, "", "{arguments:?}");
}

fn allowed() -> Vec<ProcessorId> {
    sys::affinity(0).unwrap().iter().collect()
}

#[test]
fn this_computer_is_shown_as_text_and_as_json() {
    let text = ran(&["topo"]).output;
    assert!(text.contains("+- node 0 ---") && text.contains("\nnode  processors "), "{text}");
    let machine: Machine = serde_json::from_str(&ran(&["topo", "--json"]).output).unwrap();
    machine.check().unwrap();
    assert!(machine.processors().contains_all(&sys::affinity(0).unwrap()));
    assert!(machine.nodes.iter().all(|node| machine.distance(node.id, node.id) == Some(10)));
}

#[test]
fn processors_that_are_taken_away_are_shown() {
    let mut command = gondwana(&["topo"]);
    let one = ProcessorSet::only(allowed()[0]);
    // SAFETY: the closure only makes a system call.
    unsafe { command.pre_exec(move || sys::set_affinity(0, &one)) };
    let text = run(&mut command, LIMIT).output;
    assert_eq!(
        allowed().len() > 1,
        text.contains(&format!("this process may use processors {one}\n")),
        "{text}"
    );
}

#[test]
fn described_machines_are_shown_and_mistakes_are_pointed_at() {
    let folder = Folder::new();
    let file = folder.join("machine.toml");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "[[node]]\nid = 3\nprocessors = \"0-1\"\nmemory = { total = \"1GiB\" }\n").unwrap();
    assert!(ran(&["topo", "--machine", path]).output.contains("+- node 3 ---"));
    std::fs::write(&file, "[[node]]\nid = 3\nprocessors = \"1-0\"\n").unwrap();
    fails(&["topo", "--machine", path], 2, "machine.toml: line 3: ");
    fails(&["topo", "--machine", "/nowhere"], 125, "/nowhere cannot be read");
}

#[test]
fn a_program_is_where_it_was_asked_to_be() {
    let last = allowed().pop().unwrap().to_string();
    let rset = format!("cpu:{last}");
    let script = "grep Cpus_allowed_list /proc/self/status; head -1 /proc/self/numa_maps";
    let ran = ran(&["exec", "--rset", &rset, "--memory", "striped", "--strict", "--", "sh", "-c", script]);
    assert_eq!((ran.status.unwrap().code(), ran.errors.as_str()), (Some(0), ""));
    let mut lines = ran.output.lines();
    assert_eq!(lines.next().unwrap().split_whitespace().last(), Some(last.as_str()));
    assert!(lines.next().unwrap().contains(" interleave:"), "{}", ran.output);
}

#[test]
fn named_sets_are_known_and_a_user_without_a_home_has_none() {
    let home = Folder::new();
    let at_home = |arguments: &[&str]| {
        let mut command = gondwana(arguments);
        run(command.env_remove("XDG_STATE_HOME").env("HOME", &*home), LIMIT)
    };
    let set = format!("cpu:{}", allowed()[0]);
    assert!(at_home(&["rset", "make", "mine", &set]).status.unwrap().success());
    let named = at_home(&["exec", "--rset", "mine", "--strict", "--", "nproc"]);
    assert_eq!((named.output.as_str(), named.errors.as_str()), ("1\n", ""));
    let mut homeless = gondwana(&["exec", "--rset", "all", "--", "/bin/echo", "done"]);
    assert_eq!(run(homeless.env_clear(), LIMIT).output, "done\n");
}

#[test]
fn what_was_asked_for_and_what_was_found_are_reported() {
    let ran = ran(&["exec", "--rset", "all", "--memory", "node:0", "--report", "--", "true"]);
    assert!(ran.errors.contains("gondwana: asked for processors 0"), "{}", ran.errors);
    assert!(ran.errors.contains(", memory bind:0\n"), "{}", ran.errors);
    assert!(ran.errors.contains("gondwana: found pages 16 on node 0\n"), "{}", ran.errors);
}

#[test]
fn threads_are_bound_one_by_one() {
    let folder = Folder::new();
    folder.compile("bound");
    let processors = allowed();
    let (first, last) = (processors[0], processors[processors.len() - 1]);
    let program = folder.join("bound");
    let program = program.to_str().unwrap();
    let bound = ran(&["exec", "--threads", &format!("cpu:{last};cpu:{first}"), "--strict", "--", program]);
    assert_eq!((bound.status.unwrap().code(), bound.errors.as_str()), (Some(0), ""));
    let expected = [("main", last), ("thread", first), ("thread", last), ("thread", first), ("thread", last)];
    let expected: String = expected.map(|(who, processor)| format!("{who} {processor}\n")).concat();
    assert_eq!(bound.output, expected);
    // On one node, fill and round-robin are the same.
    let native = run(&mut Command::new(program), LIMIT).output;
    let one_node = gondwana_host::discover().unwrap().nodes.len() == 1;
    for policy in ["fill", "round-robin"] {
        let ran = ran(&["exec", "--threads", policy, "--", program]);
        assert_eq!(ran.output.lines().count(), 5, "{}", ran.errors);
        assert!(!one_node || ran.output == native, "{policy}: {}", ran.output);
    }
}

#[test]
fn a_statically_linked_program_runs_inside_the_set() {
    let folder = Folder::new();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/bound.c");
    let mut compiler = Command::new("gcc");
    let made = compiler.args(["-static", "-pthread", "-o"]).arg(folder.join("bound")).arg(source).status();
    assert!(made.unwrap().success());
    let (program, rset) = (folder.join("bound"), format!("cpu:{}", allowed()[0]));
    let arguments = ["exec", "--rset", &rset, "--threads", "fill", "--", program.to_str().unwrap()];
    let ran = ran(&arguments);
    assert_eq!(ran.status.unwrap().code(), Some(0), "{}", ran.errors);
    assert!(
        ran.errors.contains("is statically linked: its threads cannot be bound one by one"),
        "{}",
        ran.errors
    );
    assert!(ran.output.lines().all(|line| line.ends_with(&format!(" {}", allowed()[0]))), "{}", ran.output);
}

/// Makes the kernel refuse the calls for the placement of memory, as container runtimes do.
fn as_in_a_container(command: &mut Command) {
    let statement = |code: u32, jf, k| libc::sock_filter { code: code.try_into().unwrap(), jt: 0, jf, k };
    let deny = |call: libc::c_long| statement(JUMP_IF_EQUAL, 1, call.try_into().unwrap());
    let give = |k| statement(RETURN, 0, k);
    let refuse = give(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    // The number of the call is what the filter sees first.
    let load = statement(LOAD, 0, 0);
    let calls = [libc::SYS_set_mempolicy, libc::SYS_mbind, libc::SYS_move_pages];
    let mut filter = vec![load];
    filter.extend(calls.into_iter().flat_map(|call| [deny(call), refuse]));
    filter.push(give(libc::SECCOMP_RET_ALLOW));
    let len = filter.len().try_into().unwrap();
    let install = move || {
        let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the kernel reads the filter, which outlives the calls.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure only makes system calls.
    unsafe { command.pre_exec(install) };
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

#[test]
fn in_a_container_the_program_runs_without_what_cannot_be_had() {
    let mut command = gondwana(&["exec", "--memory", "node:0", "--", "echo", "done"]);
    as_in_a_container(&mut command);
    let here = run(&mut command, LIMIT);
    assert_eq!((here.status.unwrap().code(), here.output.as_str()), (Some(0), "done\n"));
    let refused = "gondwana: binding memory is refused by the kernel: not permitted, as in containers without CAP_SYS_NICE\n";
    assert!(here.errors.contains(refused), "{}", here.errors);
    let mut strict = gondwana(&["exec", "--memory", "node:0", "--strict", "--", "echo", "done"]);
    as_in_a_container(&mut strict);
    let strict = run(&mut strict, LIMIT);
    assert_eq!((strict.status.unwrap().code(), strict.output.as_str()), (Some(125), ""));
    assert!(strict.errors.contains("the program was not started, because of --strict"), "{}", strict.errors);
}

#[test]
fn in_a_container_allocations_go_where_they_can() {
    let mut command = gondwana(&[
        "exec",
        "--malloc",
        "all=node:0",
        "--malloc",
        ">=1M=striped:2",
        "--",
        "sort",
        "/etc/passwd",
    ]);
    as_in_a_container(&mut command);
    let here = run(&mut command, LIMIT);
    let native = run(Command::new("sort").arg("/etc/passwd"), LIMIT);
    assert_eq!((here.status, &here.output), (native.status, &native.output));
    let refused = "gondwana: setting a policy for memory is refused by the kernel: not permitted, as in containers without CAP_SYS_NICE\n";
    assert!(here.errors.contains(refused), "{}", here.errors);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    fails(&["exec", "--rset", "node:250", "true"], 2, "--rset: the machine has no node 250");
    fails(&["exec", "--rset", "none", "true"], 2, "has no memory");
    fails(&["exec", "--memory", "striped:0", "true"], 2, "--memory: a stride is a number of pages from 1 on");
    fails(&["exec", "--threads", "sideways", "true"], 2, "--threads: there is no set named 'sideways'");
    fails(&["exec", "--", "/nowhere/at/all"], 127, "no such program");
    fails(&["exec", "--", "/"], 126, "cannot be run");
    fails(&["exec"], 2, "PROGRAM");
    fails(&["where", "0"], 2, "0 is not in 1..");
    fails(&["where", "1", "5"], 2, "a range is START-END or START+LENGTH");
    let gone = format!("{}", i32::MAX);
    fails(&["where", &gone], 125, "there is no process 2147483647");
    fails(&["where", &gone, "1000+1000"], 125, "there is no process 2147483647");
}

#[test]
fn other_users_pages_are_not_shown() {
    let folder = Folder::new();
    // Other users may not access the build folder.
    let copy = folder.join("gondwana");
    std::fs::copy(&whole().gondwana, &copy).unwrap();
    for arguments in [&["where", "1"][..], &["where", "1", "1000+1000"]] {
        let mut command = Command::new(&copy);
        command.args(arguments);
        // Whoever may see everything becomes somebody who may not.
        // SAFETY: touches no memory.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(65534).gid(65534);
        }
        let ran = run(&mut command, LIMIT);
        assert_eq!(ran.status.unwrap().code(), Some(125), "{}", ran.output);
        assert!(ran.errors.contains("does not show the pages of process 1 to this user"), "{}", ran.errors);
    }
}

#[test]
fn pages_of_a_running_process_are_counted() {
    let folder = Folder::new();
    folder.compile("touched");
    let mut command = Command::new(folder.join("touched"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut range = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut range).unwrap();
    let (pid, range) = (child.id().to_string(), range.trim());
    let start = range.split('+').next().unwrap();
    let counted: Value = serde_json::from_str(&ran(&["where", &pid, range, "--json"]).output).unwrap();
    let all: u64 = counted["pages"].as_object().unwrap().values().map(|pages| pages.as_u64().unwrap()).sum();
    assert_eq!((all, counted["absent"].as_u64()), (100, Some(156)), "{counted}");
    let strip = ran(&["where", &pid, range]).output;
    assert!(strip.lines().last().unwrap().starts_with("0000000000"), "{strip}");
    assert!(strip.lines().last().unwrap().ends_with(".........."), "{strip}");
    let table = ran(&["where", &pid]).output;
    let line = table.lines().find(|line| line.starts_with(&format!("{start}-"))).unwrap();
    assert!(
        line.contains("anonymous") && line.contains(&format!("  {} KiB  ", 100 * PAGE_SIZE / 1024)),
        "{line}"
    );
    assert!(table.contains("\nheap ") && table.contains("\ntotal "), "{table}");
    // The child ends with its input.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
