//! `gondwana doctor`: checks this computer, and prints how to add what it lacks.

mod hosts;

use gondwana_console::failure::Failure;
use gondwana_console::output::{json, print};
use gondwana_console::rlimit;
use gondwana_launcher::capabilities::DEFAULT_SPAN;
use gondwana_launcher::{capabilities, limits, probes};
use gondwana_page::PAGE_SIZE;
use gondwana_topology::Bytes;
use serde::Serialize;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The kernel's default limit on mappings of one process.
const USUAL_MAP_COUNT: u64 = 65_530;

/// The remedy if a container's seccomp filter refuses a system call.
const UNFILTERED: &str = "allow the system call: start the container with --security-opt seccomp=unconfined";

/// Options of `gondwana doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Check these hosts and the ways between them, as name or name=address
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Command that reaches a host, with {host} and {command}
    #[arg(
        long,
        value_name = "TEMPLATE",
        requires = "hosts",
        default_value = gondwana_launcher::hosts::SSH
    )]
    launcher: String,
    /// Timeout in seconds for all hosts to answer
    #[arg(long, value_name = "SECONDS", requires = "hosts", default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    host_timeout: u64,
    /// A program, to check that it and its libraries are the same on all hosts
    #[arg(value_name = "PROGRAM", last = true, requires = "hosts")]
    program: Option<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// As it should be.
    Ok,
    /// Runs work, but slower or smaller.
    Warn,
    /// Runs cannot work.
    Lack,
}

#[derive(Debug, Serialize)]
struct Finding {
    name: Cow<'static, str>,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Finding {
    fn ok(name: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, found: found.into(), mend: None }
    }

    fn bad(
        name: impl Into<Cow<'static, str>>,
        verdict: Verdict,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), verdict, found: found.into(), mend: Some(mend.into()) }
    }
}

/// Checks this computer, or some hosts; the exit status is 1 if runs cannot work.
pub(crate) fn doctor(options: &DoctorOptions) -> Result<ExitCode, Failure> {
    let findings = if options.hosts.is_empty() { examine() } else { hosts::examine(options)? };
    let fit = findings.iter().all(|finding| finding.verdict != Verdict::Lack);
    let report = serde_json::json!({ "runs_work": fit, "findings": findings });
    print(&if options.json { json(&report) } else { render(&findings) })?;
    Ok(if fit { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn render(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { name, verdict, found, mend } in findings {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Lack => "LACK",
        };
        let mend = mend.as_ref().map(|mend| format!("; {mend}")).unwrap_or_default();
        text += &format!("{verdict:<4}  {name:<width$}  {found}{mend}\n");
    }
    text
}

fn examine() -> Vec<Finding> {
    vec![
        library(),
        userfaultfd(),
        pagemap_scan(),
        memory_files(),
        span(),
        map_count(),
        fixed_addresses(),
        open_files(),
        overcommit(),
        stacks(),
        processes(),
        container(),
        memory_limit(),
        processors(),
    ]
}

fn library() -> Finding {
    match capabilities::runtime_library() {
        Ok(path) => Finding::ok("runtime library", path.display().to_string()),
        Err(failure) => Finding::bad("runtime library", Verdict::Lack, "not found", failure.message),
    }
}

fn userfaultfd() -> Finding {
    match probes::userfaultfd() {
        Ok(()) => Finding::ok("userfaultfd", "missing, minor and write-protect faults, in SIGBUS mode"),
        Err(why) => {
            let mend = if std::path::Path::new("/.dockerenv").exists() || probes::seccomp_mode() == Some(2) {
                UNFILTERED
            } else {
                "needs Linux 6.4 or newer with CONFIG_USERFAULTFD"
            };
            let found = format!("{why}: mprotect is used instead, which takes twice as long for each fault");
            Finding::bad("userfaultfd", Verdict::Warn, found, mend)
        }
    }
}

fn pagemap_scan() -> Finding {
    match probes::pagemap_scan() {
        Ok(()) => Finding::ok("PAGEMAP_SCAN", "written pages can be listed in bulk"),
        Err(error) => Finding::bad(
            "PAGEMAP_SCAN",
            Verdict::Warn,
            format!("not there ({error}): written pages are found by faults"),
            "needs Linux 6.7 or newer",
        ),
    }
}

fn span() -> Finding {
    let gib = |bytes: u64| bytes >> 30;
    let mend = "raise the limits: ulimit -v unlimited; ulimit -f unlimited";
    match capabilities::choose_span(None, limits::beside_span(2, 0)) {
        Ok(DEFAULT_SPAN) => Finding::ok("address space", format!("a span of {} GiB fits", gib(DEFAULT_SPAN))),
        Ok(smaller) => Finding::bad(
            "address space",
            Verdict::Warn,
            format!("only {} of {} GiB fit: {}", gib(smaller), gib(DEFAULT_SPAN), why_not(DEFAULT_SPAN)),
            mend,
        ),
        Err(_) => Finding::bad("address space", Verdict::Lack, why_not(capabilities::LEAST_SPAN), mend),
    }
}

fn memory_files() -> Finding {
    let name = "memory files";
    match (probes::memory_files(), rlimit::limit(libc::RLIMIT_FSIZE)) {
        (Err(error), _) => {
            Finding::bad(name, Verdict::Lack, format!("memfd_create is refused: {error}"), UNFILTERED)
        }
        (Ok(()), u64::MAX) => Finding::ok(name, "of any size (memfd_create)"),
        (Ok(()), limit) if limit >= DEFAULT_SPAN => Finding::ok(name, format!("up to {} GiB", limit >> 30)),
        (Ok(()), limit) => {
            let found = format!("only up to {} MiB: no span is longer", limit >> 20);
            Finding::bad(name, Verdict::Warn, found, "ulimit -f unlimited")
        }
    }
}

fn why_not(bytes: u64) -> String {
    probes::span(bytes).err().unwrap_or_default()
}

fn map_count() -> Finding {
    let name = "max_map_count";
    let mend = format!("sysctl vm.max_map_count={}", 16 * USUAL_MAP_COUNT);
    match probes::number_in("/proc/sys/vm/max_map_count") {
        None => Finding::bad(name, Verdict::Warn, "unknown", "mount /proc"),
        Some(count) if count < USUAL_MAP_COUNT => {
            Finding::bad(name, Verdict::Warn, format!("{count}, less than usual"), mend)
        }
        // Each run of pages with its own protection is a mapping.
        Some(count) if count < 16 * USUAL_MAP_COUNT && probes::userfaultfd().is_err() => Finding::bad(
            name,
            Verdict::Warn,
            format!(
                "{count}: with mprotect, scattered accesses fail beyond {} MiB",
                (count * PAGE_SIZE as u64) >> 20
            ),
            mend,
        ),
        Some(count) => Finding::ok(name, count.to_string()),
    }
}

fn fixed_addresses() -> Finding {
    match probes::fixed_addresses() {
        Ok(()) => Finding::ok("fixed addresses", "address space randomisation can be turned off for a run"),
        Err(error) => Finding::bad(
            "fixed addresses",
            Verdict::Lack,
            format!("address space randomisation cannot be turned off: {error}"),
            "start the container with --security-opt seccomp=unconfined, or sysctl kernel.randomize_va_space=0",
        ),
    }
}

fn open_files() -> Finding {
    let limit = rlimit::limit(libc::RLIMIT_NOFILE);
    if limit < 256 {
        let found = format!("{limit}: our descriptors get in the way of the program's");
        return Finding::bad("open files", Verdict::Warn, found, "ulimit -n 1024");
    }
    Finding::ok("open files", if limit == u64::MAX { "no limit".to_owned() } else { limit.to_string() })
}

fn overcommit() -> Finding {
    match probes::number_in("/proc/sys/vm/overcommit_memory") {
        Some(2) => Finding::bad(
            "overcommit",
            Verdict::Warn,
            "strict: programs that reserve much more than they use may be refused memory",
            "sysctl vm.overcommit_memory=0",
        ),
        Some(mode) => Finding::ok("overcommit", format!("mode {mode}: sparse reservations are free")),
        None => Finding::bad("overcommit", Verdict::Warn, "unknown", "mount /proc"),
    }
}

fn container() -> Finding {
    match probes::seccomp_mode() {
        Some(0) => Finding::ok("system call filter", "none"),
        Some(mode) => Finding::ok(
            "system call filter",
            format!("on (mode {mode}), as in containers: if something is refused above, this may be why"),
        ),
        None => Finding::bad("system call filter", Verdict::Warn, "unknown", "mount /proc"),
    }
}

fn memory_limit() -> Finding {
    // Of either version, and of all groups around this process.
    match gondwana_host::cgroup::limits(Path::new("/")).memory {
        Some(Bytes(bytes)) => {
            Finding::ok("memory limit", format!("{} MiB by control group, all nodes together", bytes >> 20))
        }
        None => Finding::ok("memory limit", "none by control group"),
    }
}

fn stacks() -> Finding {
    Finding::ok("stacks", limits::stacks_found())
}

fn processes() -> Finding {
    match limits::processes_found() {
        Ok(found) => Finding::ok("processes", found),
        Err(why) => Finding::bad("processes", Verdict::Lack, why, "ulimit -u 4096"),
    }
}

fn processors() -> Finding {
    match probes::processors() {
        1 => Finding::bad(
            "processors",
            Verdict::Warn,
            "1: nodes take turns",
            "two or more are needed for any gain in speed",
        ),
        count => Finding::ok("processors", count.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_one_line_with_its_mend() {
        let text = render(&[
            Finding::ok("processors", "2"),
            Finding::bad("userfaultfd", Verdict::Warn, "refused", "allow it"),
        ]);
        assert_eq!(text, "ok    processors   2\nwarn  userfaultfd  refused; allow it\n");
    }

    #[test]
    fn all_findings_have_different_names_and_bad_ones_a_mend() {
        let findings = examine();
        let mut names: Vec<_> = findings.iter().map(|finding| finding.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), findings.len());
        for finding in findings {
            assert_eq!(finding.mend.is_none(), finding.verdict == Verdict::Ok, "{finding:?}");
        }
    }
}
