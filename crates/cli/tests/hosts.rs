//! Runs on several hosts that do not do as they should. This computer plays all of them.

mod common;

use common::{Installation, errors};
use std::io::{Read, Write};
use std::process::Stdio;

const TWO: [&str; 3] = ["run", "--hosts", "a=127.0.0.1,b=127.0.0.1"];

#[test]
fn a_host_that_cannot_be_reached_is_named() {
    let here = Installation::new();
    let output = here.run(&[&TWO[..], &["--launcher", "false {command}", "true"]].concat());
    assert_eq!(output.status.code(), Some(125));
    let said = errors(&output);
    assert!(said.contains("does not answer") && said.matches('\n').count() == 1, "{said}");
}

#[test]
fn hosts_that_keep_silent_are_named_when_time_is_over() {
    let here = Installation::new();
    let launcher = "sh -c 'test {host} = a && exec {command}; exec cat 3>&1 >/dev/null'";
    let output = here.run(&[&TWO[..], &["--host-timeout", "1", "--launcher", launcher, "true"]].concat());
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).ends_with("gondwana: no answer in time from b (--host-timeout gives more)\n"));
}

#[test]
fn a_program_that_a_host_does_not_have_is_named() {
    let here = Installation::new();
    here.program("program", &[]);
    let launcher = "sh -c 'test {host} = b && mv program gone; exec {command}'";
    let output = here.run(&[&TWO[..], &["--launcher", launcher, "./program"]].concat());
    assert_eq!(output.status.code(), Some(125));
    let said = errors(&output);
    assert!(said.contains("program: no such program"), "{said}");
}

#[test]
fn a_program_that_differs_between_hosts_is_refused() {
    let here = Installation::new();
    here.program("program", &[]);
    // Appending leaves the program able to run.
    let launcher = "sh -c 'test {host} = b && echo x >> program; exec {command}'";
    let output = here.run(&[&TWO[..], &["--launcher", launcher, "./program"]].concat());
    assert_eq!(output.status.code(), Some(125));
    let said = errors(&output);
    assert!(said.contains("is not the same file as here") && said.matches('\n').count() == 1, "{said}");
}

#[test]
fn a_launcher_of_another_version_is_refused() {
    let here = Installation::new();
    let mut agent = here.command(&["agent"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let message = br#"{"Prepare":{"version":"0.0.0","new":"field"}}"#;
    let mut frame = (message.len() as u32).to_le_bytes().to_vec();
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
    let program = ["--launcher", launcher, "sh", "-c", "kill -9 $(cat pid-b); exec sleep 1000"];
    let output = here.run(&[&TWO[..], &program].concat());
    assert_eq!(output.status.code(), Some(125));
    let said = errors(&output);
    assert!(said.contains("host b: the connection is lost") && said.matches('\n').count() == 1, "{said}");
}
