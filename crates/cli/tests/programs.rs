//! Whole programs, unmodified: each must print and end under `gondwana run` as it does by itself.
//!
//! The default tests run every program in a few of the possible ways; `cargo test -- --ignored` runs the rest.

mod common;

use common::folder::Folder;
use common::manifest::Line;
use common::whole::{LIMIT, Ran, run, whole};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One way to run programs.
#[derive(Clone, Copy, Debug)]
struct Way {
    nodes: u16,
    /// A fabric, or `copies`: shm without common pages, so that all that nodes share is copied.
    fabric: &'static str,
    /// A consistency, or the name of a protocol that is not the first for its consistency.
    consistency: &'static str,
}

/// All combinations.
fn ways(nodes: &[u16], fabrics: &[&'static str], consistencies: &[&'static str]) -> Vec<Way> {
    let mut all = vec![];
    for &nodes in nodes {
        for &fabric in fabrics {
            all.extend(consistencies.iter().map(|&consistency| Way { nodes, fabric, consistency }));
        }
    }
    all
}

/// Variables of the environment.
type Variables = [(String, String)];

/// Runs a program in one of the ways, with more variables.
fn run_under(way: Way, folder: &Path, variables: &Variables, program: &[&str], limit: Duration) -> Ran {
    let nodes = way.nodes.to_string();
    let option =
        if ["erc", "csm-invalidate"].contains(&way.consistency) { "--protocol" } else { "--consistency" };
    let fabric: &[&str] = match way.fabric {
        "touch" => &["--fabric", "shm", "--common-after", "touch"],
        "contested" => &["--fabric", "shm", "--common-after", "1"],
        "copies" => &["--fabric", "shm", "--common-after", "0"],
        fabric => &["--fabric", fabric],
    };
    let options = [&["-n", &nodes], fabric, &[option, way.consistency, "--"]].concat();
    let mut command = whole().run(folder, &[&options, program].concat());
    run(command.envs(variables.iter().cloned()), limit)
}

/// What is wrong with a run, compared with the native one.
fn difference(way: Way, program: &[&str], native: &Ran, ran: &Ran) -> Option<String> {
    let ends = |ran: &Ran| ran.status.map(|status| (status.code(), status.signal()));
    // Output that a crash loses is lost natively too: programs that crash flush it first.
    if ran.status.is_some() && ends(ran) == ends(native) && ran.output == native.output {
        return None;
    }
    let end = |ran: &Ran| ran.status.map_or("out of time".to_owned(), |status| status.to_string());
    Some(format!(
        "{way:?} {}: {} instead of {}\n--- output\n{}--- instead of\n{}--- errors\n{}",
        program.join(" "),
        end(ran),
        end(native),
        ran.output,
        native.output,
        ran.errors
    ))
}

/// Collects what was wrong. Gives up after a few: when each run hangs, the rest only takes time.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    /// Runs a program in one of the ways.
    fn compare(
        &mut self,
        way: Way,
        folder: &Path,
        variables: &Variables,
        program: &[&str],
        native: &Ran,
        limit: Duration,
    ) {
        let ran = run_under(way, folder, variables, program, limit);
        self.note(difference(way, program, native, &ran));
    }

    fn note(&mut self, difference: Option<String>) {
        self.0.extend(difference);
        assert!(self.0.len() < 3, "{}", self.0.join("\n"));
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

fn app_equals_native(app: &str, size: &[&str], ways: &[Way], limit: Duration) {
    let folder = &whole().apps;
    let program = format!("./{app}");
    let native = run(Command::new(&program).args(size).args(["-p", "4"]).current_dir(folder), limit);
    assert!(native.status.unwrap().success() && native.output.contains("result: "), "{}", native.errors);
    let mut wrong = Wrong::default();
    for &way in ways {
        let threads = way.nodes.max(4).to_string();
        let words = [&[program.as_str()], size, &["-p", &threads]].concat();
        wrong.compare(way, folder, &[], &words, &native, limit);
    }
    wrong.none();
}

macro_rules! apps {
    ($small:ident: $small_ways:expr; $large:ident: $large_ways:expr; $($name:ident: $app:literal),*) => {
        mod $small {
            use super::*;
            $(#[test]
            fn $name() {
                app_equals_native($app, &[], &$small_ways, LIMIT);
            })*
        }

        mod $large {
            use super::*;
            $(#[test]
            #[ignore = "takes minutes: make nightly"]
            fn $name() {
                app_equals_native($app, &["-s", "paper"], &$large_ways, Duration::from_secs(900));
            })*
        }
    };
}

apps! {
    small_workload: [
        ways(&[2, 8], &["touch"], &["rc", "sc"]),
        ways(&[4], &["contested"], &["rc", "sc"]),
        ways(&[3], &["copies"], &["rc", "sc"]),
        ways(&[4], &["tcp"], &["rc", "auto", "sc"]),
    ]
    .concat();
    paper_sized_workload: ways(&[2, 4], &["touch", "contested"], &["rc"]);
    barnes: "barnes", cholesky: "cholesky", em3d: "em3d", fft: "fft", fft3d: "fft3d", fmm: "fmm", gauss: "gauss",
    jacobi: "jacobi", lu: "lu", matmul: "matmul", ocean: "ocean", omp_adi: "omp-adi", omp_fft3d: "omp-fft3d",
    omp_sort: "omp-sort", omp_tasks: "omp-tasks", pagerank: "pagerank", radiosity: "radiosity", radix: "radix",
    raytrace: "raytrace", sor: "sor", tsp: "tsp", volrend: "volrend", water: "water-nsquared",
    water_spatial: "water-spatial"
}

// Programs with atomic instructions of their own are right without an option.
apps! {
    small_workload_with_atomics: [
        ways(&[4], &["touch"], &["auto", "sc"]),
        ways(&[2, 4], &["contested"], &["auto", "sc"]),
        ways(&[3], &["copies", "tcp"], &["auto", "sc"]),
        ways(&[2, 4], &["tcp"], &["c11"]),
    ]
    .concat();
    large_workload_with_atomics: ways(&[2], &["touch", "contested"], &["auto"]);
    betweenness: "betweenness", components: "components", delta_stepping: "delta-stepping", deque: "deque",
    hashtable: "hashtable", omp_cg: "omp-cg", omp_multigrid: "omp-multigrid", omp_wavefront: "omp-wavefront"
}

#[test]
fn workloads_with_another_layout_of_their_memory_equal_native() {
    let ways = [ways(&[4], &["touch"], &["rc", "sc"]), ways(&[2], &["contested"], &["rc", "sc"])].concat();
    let apps = [
        ("barnes", "-r"),
        ("fft3d", "-o"),
        ("fmm", "-o"),
        ("jacobi", "-o"),
        ("lu", "-l"),
        ("ocean", "-l"),
        ("raytrace", "-r"),
    ];
    for (app, option) in apps {
        app_equals_native(app, &[option, "1"], &ways, LIMIT);
    }
}

/// Runs the lines of the list whose programs are in `folder`, with more arguments.
fn lines_equal_native(folder: &str, more: &[&str], ways: &[Way], limit: Duration) {
    let programs = &whole().programs;
    let mut lines: Vec<Line> = common::manifest::read();
    lines.retain(|line| line.program.starts_with(folder));
    assert!(!lines.is_empty());
    let mut wrong = Wrong::default();
    for line in &lines {
        let path = format!("./{}", line.program);
        let arguments: Vec<&str> =
            line.arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let words = [&[path.as_str()], &arguments[..]].concat();
        let native = if line.native {
            let mut command = Command::new(&path);
            let variables = line.variables.iter().cloned();
            run(command.args(&arguments).envs(variables).current_dir(programs), limit)
        } else {
            let name = line.program.rsplit('/').next().unwrap();
            let status = Some(std::process::ExitStatus::from_raw(0));
            Ran { output: format!("PASS {name}\n"), errors: String::new(), status }
        };
        assert!(native.status.is_some() && !native.output.contains("FAIL"), "{words:?}: {}", native.output);
        // A run on one node is a native one.
        let possible = |way: &&Way| (line.native || way.nodes > 1) && !(line.together && way.fabric == "tcp");
        let right = |way: &&Way| match way.consistency {
            "sc" => true,
            "c11" => !line.plain || way.fabric == "tcp",
            "auto" if line.plain => ["touch", "tcp"].contains(&way.fabric),
            // Over shm, programs without data races are run in more ways elsewhere than `auto` would choose for them.
            "auto" => !line.race_free || way.fabric == "tcp",
            _ => line.race_free,
        };
        for &way in ways.iter().filter(possible).filter(right) {
            wrong.compare(way, programs, &line.variables, &words, &native, limit);
        }
    }
    wrong.none();
}

macro_rules! lines {
    ($($name:ident: $folder:literal),*) => {
        mod over_shm {
            use super::*;
            $(#[test]
            fn $name() {
                let ways = [ways(&[4], &["touch"], &["rc", "sc"]), ways(&[2], &["contested"], &["rc", "sc"])];
                lines_equal_native($folder, &[], &ways.concat(), LIMIT);
            })*
        }

        mod over_tcp {
            use super::*;
            $(#[test]
            fn $name() {
                lines_equal_native($folder, &[], &ways(&[3], &["tcp"], &["auto", "sc"]), LIMIT);
            })*
        }

        mod in_all_ways {
            use super::*;
            $(#[test]
            #[ignore = "takes minutes: make nightly"]
            fn $name() {
                let in_order = ways(&[2, 3, 4, 8], &["tcp"], &["auto"]);
                let ways = ways(&[1, 2, 3, 4, 8], &["touch", "contested", "copies", "tcp"], &["rc", "sc"]);
                lines_equal_native($folder, &[], &[ways, in_order].concat(), LIMIT);
            })*
        }
    };
}

lines! { conform: "conform/", cxx: "cxx/", litmus: "litmus/", openmp: "openmp/" }

#[test]
fn litmus_programs_without_common_pages() {
    let ways = [ways(&[3], &["copies"], &["rc", "sc"]), ways(&[3], &["tcp"], &["rc"])].concat();
    lines_equal_native("litmus/", &[], &ways, LIMIT);
}

/// Atomic instructions on pages of two kinds: what threads write elsewhere is seen with them.
#[test]
fn programs_with_synchronisation_pages() {
    for folder in ["conform/", "cxx/", "litmus/", "openmp/"] {
        lines_equal_native(folder, &[], &ways(&[2], &["tcp"], &["c11"]), LIMIT);
    }
    lines_equal_native("litmus/", &[], &ways(&[3], &["copies"], &["c11"]), LIMIT);
}

const OTHER_PROTOCOLS: [&str; 2] = ["erc", "csm-invalidate"];

#[test]
fn litmus_programs_under_other_protocols() {
    let ways = [ways(&[4], &["shm"], &OTHER_PROTOCOLS), ways(&[2], &["tcp"], &OTHER_PROTOCOLS)].concat();
    lines_equal_native("litmus/", &[], &ways, LIMIT);
}

#[test]
#[ignore = "takes minutes: make nightly"]
fn litmus_programs_in_all_ways_under_other_protocols() {
    lines_equal_native("litmus/", &[], &ways(&[2, 3, 4], &["shm", "tcp"], &OTHER_PROTOCOLS), LIMIT);
}

#[test]
fn programs_with_atomics_are_right_without_an_option() {
    for folder in ["litmus/", "openmp/", "cxx/"] {
        lines_equal_native(folder, &[], &ways(&[2], &["touch", "contested"], &["auto"]), LIMIT);
    }
}

#[test]
fn erc_places_no_memory() {
    let ran =
        run(&mut whole().run(&whole().apps, &["--protocol", "erc", "--memory", "striped", "./sor"]), LIMIT);
    assert_eq!(ran.status.and_then(|status| status.code()), Some(2));
    assert!(ran.errors.contains("--protocol erc cannot place memory"), "{}", ran.errors);
}

#[test]
fn pages_are_in_order_over_tcp_only() {
    let options = ["--protocol", "csm-ordered", "--fabric", "shm", "./sor"];
    let ran = run(&mut whole().run(&whole().apps, &options), LIMIT);
    assert_eq!(ran.status.and_then(|status| status.code()), Some(2));
    assert!(ran.errors.contains("orders pages over tcp only; say --fabric tcp"), "{}", ran.errors);
}

#[test]
fn workloads_under_other_protocols_equal_native() {
    for app in ["barnes", "fft", "gauss", "lu", "omp-tasks", "radix", "sor", "tsp", "water-nsquared"] {
        let ways = [ways(&[2], &["shm"], &OTHER_PROTOCOLS), ways(&[4], &["tcp"], &OTHER_PROTOCOLS)].concat();
        app_equals_native(app, &[], &ways, LIMIT);
    }
}

#[test]
#[ignore = "takes minutes: make nightly"]
fn a_hundred_thousand_rounds_of_the_classic_shapes() {
    let program = ["./litmus/shapes", "-i", "100000"];
    let native = Ran {
        output: "PASS shapes\n".to_owned(),
        errors: String::new(),
        status: Some(std::process::ExitStatus::from_raw(0)),
    };
    let mut wrong = Wrong::default();
    for way in
        [ways(&[2, 4], &["touch", "contested"], &["auto"]), ways(&[3], &["copies", "tcp"], &["sc"])].concat()
    {
        wrong.compare(way, &whole().programs, &[], &program, &native, Duration::from_secs(7200));
    }
    wrong.none();
}

#[test]
#[ignore = "takes minutes: make nightly"]
fn thousands_of_litmus_rounds() {
    let apart =
        [ways(&[2, 3, 4], &["copies", "tcp"], &["c11"]), ways(&[2, 3, 4], &["tcp"], &["auto"])].concat();
    let ways = ways(&[2, 3, 4], &["touch", "contested", "copies", "tcp"], &["rc", "sc"]);
    lines_equal_native("litmus/", &["-i", "5000"], &[ways, apart].concat(), Duration::from_secs(600));
}

#[test]
fn each_of_eight_nodes_has_room_for_thirty_gigabytes() {
    let way = Way { nodes: 8, fabric: "shm", consistency: "rc" };
    let ran =
        run_under(way, &whole().programs, &[], &["./conform/sparse_heap", "-i", "30", "-p", "8"], LIMIT);
    assert_eq!(
        (ran.output.as_str(), ran.status.and_then(|status| status.code())),
        ("PASS sparse_heap\n", Some(0))
    );
}

/// A statement of a filter of system calls.
fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code.try_into().unwrap(), jt: 0, jf: 0, k }
}

/// Has the kernel refuse a system call to a command, as some containers do; if `only` names one of its arguments and a value, only with that.
fn without(command: &mut Command, call: libc::c_long, only: Option<(u32, libc::c_int)>) -> &mut Command {
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let end = |verdict| statement(libc::BPF_RET | libc::BPF_K, verdict);
    let is =
        |value, jf| libc::sock_filter { jf, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value) };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // The number of the system call is the first word of what the filter looks at; its arguments of 8 bytes begin at 16.
    let mut filter = vec![load(0), is(call.try_into().unwrap(), if only.is_some() { 3 } else { 1 })];
    if let Some((argument, value)) = only {
        filter.extend([load(16 + 8 * argument), is(value.try_into().unwrap(), 1)]);
    }
    filter.extend([end(refused), end(libc::SECCOMP_RET_ALLOW)]);
    let len = filter.len().try_into().unwrap();
    let install = move || {
        let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
        // SAFETY: the kernel copies the filter, which lives as long as the call.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: only makes two system calls.
    unsafe { command.pre_exec(install) }
}

#[test]
fn code_that_cannot_be_changed_is_said_to_be() {
    let changed = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let mut command = whole().run(&whole().apps, &["-n", "2", "--stats", "--", "./omp-cg"]);
    let ran = run(without(&mut command, libc::SYS_mprotect, Some((2, changed))), LIMIT);
    let why = "the system does not let the program's code be changed; say --consistency sc";
    assert!(ran.errors.contains(why), "{}", ran.errors);
    assert_eq!(ran.status.and_then(|status| status.code()), Some(125));
    let mut command =
        whole().run(&whole().apps, &["-n", "2", "--consistency", "sc", "--stats", "--", "./omp-cg"]);
    let ran = run(without(&mut command, libc::SYS_mprotect, Some((2, changed))), LIMIT);
    assert!(ran.status.is_some_and(|status| status.success()), "{}", ran.errors);
    assert!(ran.errors.contains(" 0 executed under a lock"), "{}", ran.errors);
}

#[test]
fn a_program_that_changes_its_code_is_told_where() {
    let folder = Folder::new();
    folder.compile("changes_itself");
    let native = run(Command::new("./changes_itself").current_dir(&*folder), LIMIT);
    assert_eq!(native.output, "2 of 2 threads have run changed code\n");
    let ran = run(&mut whole().run(&folder, &["-n", "2", "--", "./changes_itself"]), LIMIT);
    assert_eq!(ran.output, "1 of 2 threads have run changed code\n");
    let sentence = "mprotect() makes code of the program writable: other nodes go on with that code as it is";
    assert_eq!(ran.errors.matches(sentence).count(), 1, "{}", ran.errors);
}

#[test]
fn code_that_a_program_makes_is_said_not_to_be_searched() {
    let folder = Folder::new();
    folder.compile("makes_code");
    let sentence = "the program makes code while it runs, which is not searched for atomic instructions";
    for (consistency, said) in [("auto", 1), ("rc", 0), ("sc", 0)] {
        let options = ["-n", "2", "--consistency", consistency, "--", "./makes_code"];
        let ran = run(&mut whole().run(&folder, &options), LIMIT);
        assert!(ran.status.is_some_and(|status| status.success()), "{}", ran.errors);
        assert_eq!(ran.errors.matches(sentence).count(), said, "{consistency}: {}", ran.errors);
        assert!(consistency != "sc" || ran.output == "20000\n", "{}", ran.output);
    }
}

#[test]
fn programs_run_where_userfaultfd_is_refused() {
    let whole = whole();
    let programs = [
        (&whole.programs, "./conform/globals"),
        (&whole.programs, "./conform/segv_handler"),
        (&whole.programs, "./conform/sigaltstack"),
        (&whole.programs, "./conform/anon_mmap"),
        (&whole.programs, "./conform/subprocess"),
        (&whole.programs, "./conform/dlopen_first"),
        (&whole.programs, "./conform/dlopen_locals"),
        (&whole.programs, "./conform/executable_memory"),
        (&whole.programs, "./conform/many_threads"),
        (&whole.programs, "./cxx/containers"),
        (&whole.programs, "./litmus/two_way_merge"),
        (&whole.apps, "./sor"),
    ];
    let mut wrong = Wrong::default();
    for (folder, program) in programs {
        let words = [program, "-p", "4"];
        let native = run(Command::new(program).args(&words[1..]).current_dir(folder), LIMIT);
        for way in ways(&[2, 3], &["shm"], &["rc", "sc"]) {
            let nodes = way.nodes.to_string();
            let options = ["-n", &nodes, "--consistency", way.consistency, "--"];
            let mut command = whole.run(folder, &[&options[..], &words].concat());
            let ran = run(without(&mut command, libc::SYS_userfaultfd, None), LIMIT);
            assert!(ran.errors.contains("userfaultfd is refused"), "{}", ran.errors);
            wrong.note(difference(way, &words, &native, &ran));
        }
    }
    wrong.none();
}

#[test]
fn auto_knows_which_programs_have_atomics() {
    let said = |folder: &Path, program: &str| {
        run(&mut whole().run(folder, &["-n", "2", "--stats", "--", program]), LIMIT).errors
    };
    let sor = said(&whole().apps, "./sor");
    assert!(sor.contains("2 nodes over shm, rc (no inline atomic instruction)"), "{sor}");
    let counter = said(&whole().programs, "./litmus/atomic_counter");
    assert!(
        counter.contains("2 nodes over shm, sc (") && counter.contains("inline atomic instructions"),
        "{counter}"
    );
    let count = counter.lines().find(|line| line.starts_with("atomic instructions: ")).unwrap();
    assert!(count.contains(" found, 0 executed under a lock, "), "{count}");
    let sums = said(&whole().apps, "./omp-cg");
    assert!(sums.contains(", rc (") && sums.contains("executed under a lock, 0 as they are"), "{sums}");
    let waits = said(&whole().programs, "./litmus/plain_waits");
    let why =
        "sc (no inline atomic instruction, but a loop that waits for what other threads write, in function ";
    assert!(waits.contains(why), "{waits}");
    let opens = said(&whole().programs, "./conform/dlopen_plugin");
    let why =
        "2 nodes over shm, sc (no inline atomic instruction, but it opens libraries, which may have some)";
    assert!(opens.contains(why), "{opens}");
}
