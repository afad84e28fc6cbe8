//! Looking at the threads of a child, which does not notice.

use gondwana_inspect::{Observer, tasks};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SOURCE: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static int epoll;
static volatile int go = 1;

/* A call that fails with EINTR when the thread is stopped. */
__attribute__((noinline)) static int in_epoll(void) {
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, -1) == 1 ? 0 : errno;
}

__attribute__((noinline)) static void in_handler(int number) {
    (void)number;
    while (go) {}
}

__attribute__((noinline)) static void in_loop(void) {
    raise(SIGUSR1);
    __asm__ volatile(""); /* no tail call */
}

static void *waits(void *unused) {
    (void)unused;
    return (void *)(long)in_epoll();
}

static void *loops(void *unused) {
    in_loop();
    return unused;
}

int main(void) {
    pthread_t threads[2];
    void *error;
    struct epoll_event event = {.events = EPOLLIN};
    int pipes[2];
    char byte;
    signal(SIGUSR1, in_handler);
    epoll = epoll_create1(0);
    if (pipe(pipes) != 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event) != 0) return 1;
    pthread_create(&threads[0], NULL, waits, NULL);
    pthread_create(&threads[1], NULL, loops, NULL);
    puts("ready");
    fflush(stdout);
    if (read(0, &byte, 1) != 1) return 2;
    go = 0;
    if (write(pipes[1], "x", 1) != 1) return 3;
    pthread_join(threads[0], &error);
    pthread_join(threads[1], NULL);
    printf("epoll_wait: %ld\n", (long)error);
    return 0;
}
"#;

/// The child, and the folder of its program.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Program {
    fn start(options: &[&str]) -> Self {
        let name = format!("gondwana-look-{}-{}", std::process::id(), options.len());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("p.c"), SOURCE).unwrap();
        let gcc = Command::new("gcc")
            .args(["-pthread", "-o", "p", "p.c"])
            .args(options)
            .current_dir(&folder)
            .status();
        assert!(gcc.unwrap().success());
        let mut command = Command::new(folder.join("p"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { input: child.stdin.take().unwrap(), child, output, folder }
    }

    /// The addresses of a function, in the file.
    fn range(&self, function: &str) -> std::ops::Range<u64> {
        let elf = gondwana_elf::ElfFile::open(&self.folder.join("p")).unwrap();
        let mut found = None;
        elf.for_each_symbol(|symbol| {
            if symbol.name == function {
                found = Some(symbol.range);
            }
        });
        found.unwrap()
    }

    /// True if a stack has these functions, the innermost first, perhaps with others between.
    fn has(&self, observer: &Observer, task: u32, functions: &[&str]) -> bool {
        let looked = observer.look(task);
        let base = observer.objects().find(|object| object.path.ends_with("/p")).unwrap().base;
        let mut frames = looked.frames.as_ref().unwrap().iter();
        functions.iter().all(|function| {
            let range = self.range(function);
            frames.any(|frame| range.contains(&frame.inside().wrapping_sub(base)))
        })
    }
}

/// Looks until all threads are where they hang, and often enough to disturb a call that can be disturbed.
fn looks_without_disturbing(options: &[&str]) {
    let mut program = Program::start(options);
    let process = program.child.id();
    let observer = Observer::new(process).unwrap();
    let expected: [&[&str]; 3] = [&["main"], &["in_epoll", "waits"], &["in_handler", "in_loop", "loops"]];
    let mut seen = [0; 3];
    while seen.iter().any(|seen| *seen < 20) {
        let found = tasks(process);
        assert_eq!(found.len(), 3);
        for ((task, functions), seen) in found.into_iter().zip(expected).zip(&mut seen) {
            *seen += u32::from(program.has(&observer, task, functions));
        }
    }
    program.input.write_all(b"x").unwrap();
    let mut rest = String::new();
    program.output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "epoll_wait: 0\n");
    assert!(program.child.wait().unwrap().success());
    fs::remove_dir_all(&program.folder).unwrap();
}

#[test]
fn threads_have_stacks_and_do_not_notice() {
    looks_without_disturbing(&["-O0"]);
    looks_without_disturbing(&["-O2", "-fomit-frame-pointer"]);
}

#[test]
fn a_process_that_is_not_there_cannot_be_looked_at() {
    let mut child = Command::new("true").spawn().unwrap();
    let process = child.id();
    child.wait().unwrap();
    assert!(Observer::new(process).is_err() && tasks(process).is_empty());
}
