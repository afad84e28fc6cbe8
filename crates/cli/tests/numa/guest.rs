//! The computer on which the tests run.

use crate::common::c_api;
use crate::common::cargo::cargo;
use crate::common::whole::whole;
use gondwana_guest::{Guest, Image, Machine, Node, Ran, Tools};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard};

/// The distances between its nodes; no two pairs have the same.
pub(crate) const DISTANCES: [[u8; 4]; 4] =
    [[10, 12, 20, 28], [12, 10, 14, 22], [20, 14, 10, 16], [28, 22, 16, 10]];

/// The processors of its nodes: not in the order of the nodes, and none on the last, which has memory only.
pub(crate) const PROCESSORS: [&[u32]; 4] = [&[0, 2], &[1], &[3], &[]];

/// The memory of its nodes, in MiB. Node 2 is soon full.
pub(crate) const MEMORY: [u32; 4] = [512, 256, 128, 256];

/// Runs a script of the shell in the guest; `None` if there can be no guest.
pub(crate) fn run(script: &str) -> Option<Ran> {
    Some(guest()?.run(script).unwrap_or_else(|broken| panic!("{broken}")))
}

/// The guest, which the first call boots. If that fails, this test and all others do: it is not tried again.
fn guest() -> Option<MutexGuard<'static, Guest>> {
    static GUEST: LazyLock<Option<Mutex<Guest>>> = LazyLock::new(|| match Tools::find() {
        Ok(tools) => Some(Mutex::new(boot(&tools))),
        Err(missing) => {
            let required = std::env::var_os("GONDWANA_GUEST").is_some_and(|value| value == "required");
            assert!(!required, "{missing}");
            // Not through the macros, whose output the test harness hides when tests pass.
            let line = format!("skipped: tests on an emulated NUMA computer, because there is {missing}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            None
        }
    });
    // A failed test leaves the guest as it was.
    Some(gondwana_locks::lock(GUEST.as_ref()?))
}

fn boot(tools: &Tools) -> Guest {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("numa");
    fs::create_dir_all(&folder).unwrap();
    // Another run of these tests would write to the same files. The lock goes with this process.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    std::mem::forget(lock);
    let nodes = PROCESSORS.iter().zip(MEMORY);
    let nodes = nodes.map(|(processors, memory)| Node { processors: processors.to_vec(), memory }).collect();
    let machine = Machine { nodes, distances: DISTANCES.map(Vec::from).to_vec() };
    let guest = Guest::boot(tools, &machine, image(), &folder);
    let ran = guest.and_then(|mut guest| Ok((guest.run(SHORT_LISTS)?, guest)));
    let (ran, guest) = ran.unwrap_or_else(|broken| panic!("{broken}"));
    ran.succeeded();
    guest
}

/// Shortens the processors' lists of free pages.
///
/// Each has a list of them for each node, with 8 MiB of node 2 at most if nothing is said. They count as used and are
/// free again at any time, so that a node on which 8 MiB were left has 20 MiB a moment later. Kernels without the file
/// have short lists anyway.
const SHORT_LISTS: &str = "limit=/proc/sys/vm/percpu_pagelist_high_fraction
    [ ! -e $limit ] || echo 1000 > $limit";

fn image() -> Image {
    let whole = whole();
    let mut image = Image::new();
    image.file("/etc/passwd", 0o644, "root::0:0::/:/bin/sh\nuser::1000:1000::/:/bin/sh\n");
    image.file("/etc/group", 0o644, "root::0:\nuser::1000:\n");
    for name in ["gondwana", "libgondwana.so", "libgondwana_affinity.so"] {
        image.program(&whole.gondwana.with_file_name(name), Path::new("/bin").join(name)).unwrap();
    }
    for name in ["litmus/barrier_phases", "litmus/atomic_counter", "litmus/queue", "conform/globals"] {
        image.program(&whole.programs.join(name), Path::new("/programs").join(name)).unwrap();
    }
    let witness = Path::new(env!("CARGO_TARGET_TMPDIR")).join("numa/witness");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guest/witness.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&witness).arg(source);
    assert!(compiler.status().unwrap().success());
    image.program(&witness, "/bin/witness").unwrap();
    let host = |words: &[&str]| of_host(&whole.gondwana, words);
    image.program(&host(&["test", "--no-run", "--lib"]), "/tests/host").unwrap();
    image.program(&host(&["build", "--example", "placement_cost"]), "/tests/placement_cost").unwrap();
    for folder in ["tests/capi", "examples"] {
        for name in c_api::sources(folder) {
            let program = c_api::prefix().join(&name);
            c_api::compile("gcc", &c_api::root().join(folder).join(format!("{name}.c")), &[], &program);
            image.program(&program, Path::new("/").join(folder).join(name)).unwrap();
        }
    }
    // Without what only debuggers read. Where loaders look in any case: the folder that the programs name may be below
    // /tmp, which the guest has covered.
    let library = c_api::prefix().join("lib/libgondwana_api.so.0");
    image.program(&library, "/lib/libgondwana_api.so.0").unwrap();
    image
}

/// Builds something of `crates/host` to be run in the guest; the executable.
fn of_host(gondwana: &Path, words: &[&str]) -> PathBuf {
    let target = gondwana.ancestors().nth(2).unwrap();
    let mut build = cargo();
    build.args(words).args(["--quiet", "--package", "gondwana-host", "--message-format", "json"]);
    build.arg("--target-dir").arg(target);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8(built.stdout).unwrap();
    let messages = messages.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut executables = messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    executables.next().expect("one executable is built")
}
