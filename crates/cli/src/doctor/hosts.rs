//! `gondwana doctor --hosts`: checks hosts, and what has to be the same on all of them.

use super::{DoctorOptions, Finding, UNFILTERED, Verdict};
use gondwana_console::failure::Failure;
use gondwana_launcher::hosts::examination::{self, Examined};
use gondwana_launcher::hosts::protocol::HostFacts;
use gondwana_launcher::objects;
use std::time::Duration;

/// Clocks may differ by so much, in microseconds: files and recordings of one run then still have times in the right order
/// for people.
const CLOCK_TOLERANCE: u64 = 1_000_000;

/// The kernel keeps at least so much room for stacks, in bytes: limits below it do not move libraries.
const STACK_GAP: u64 = 128 << 20;

/// What is found out about hosts and the ways between them.
pub(super) fn examine(options: &DoctorOptions) -> Result<Vec<Finding>, Failure> {
    let time = Duration::from_secs(options.host_timeout);
    let program = options.program.as_deref();
    let examined = examination::examine(&options.hosts, &options.launcher, time, program)?;
    let named = program.map(|program| program.to_string_lossy().into_owned());
    let mut findings: Vec<Finding> = examined.iter().flat_map(|host| of_host(host, &examined)).collect();
    let known: Vec<(&str, &HostFacts)> =
        examined.iter().filter_map(|host| Some((host.host.as_str(), host.facts.as_ref().ok()?))).collect();
    if let Some((first, others)) = known.split_first().filter(|(_, others)| !others.is_empty()) {
        findings.push(runtime_library(first, others));
        findings.push(stacks(first, others));
        findings.push(same_objects(named.as_deref(), first, others));
    } else if let [(host, facts)] = &known[..]
        && let Err(why) = &facts.objects
    {
        findings.push(unknown_objects(host, why));
    }
    Ok(findings)
}

fn of_host(Examined { host, facts, clock, unreached }: &Examined, all: &[Examined]) -> Vec<Finding> {
    let name = |what: &str| format!("{host}: {what}");
    let facts = match facts {
        Ok(facts) => facts,
        Err(why) => {
            let mend = "see that gondwana agent can be started there (--launcher says how to reach a host)";
            return vec![Finding::bad(name("agent"), Verdict::Lack, why, mend)];
        }
    };
    let mut findings = vec![Finding::ok(
        name("agent"),
        format!("Gondwana {}, Linux {}", env!("CARGO_PKG_VERSION"), facts.kernel),
    )];
    findings.push(match &facts.library {
        Ok(_) => Finding::ok(name("runtime library"), "found"),
        Err(why) => Finding::bad(name("runtime library"), Verdict::Lack, why, "install Gondwana there"),
    });
    let feature = |what: &str, result: &Result<(), String>, verdict, mend: &str| match result {
        Ok(()) => Finding::ok(name(what), "works"),
        Err(why) => Finding::bad(name(what), verdict, why, mend),
    };
    findings.extend([
        feature(
            "userfaultfd",
            &facts.userfaultfd,
            Verdict::Warn,
            "needs Linux 6.4 or newer, and in a container that the system call is allowed; mprotect is used instead",
        ),
        feature("PAGEMAP_SCAN", &facts.pagemap_scan, Verdict::Warn, "needs Linux 6.7 or newer"),
        feature("memory files", &facts.memory_files, Verdict::Lack, UNFILTERED),
        feature("fixed addresses", &facts.fixed_addresses, Verdict::Lack, UNFILTERED),
    ]);
    findings.push(match &facts.span {
        Ok(bytes) => Finding::ok(name("address space"), format!("a span of {} GiB fits", bytes >> 30)),
        Err(why) => Finding::bad(name("address space"), Verdict::Lack, why, "raise the limits there"),
    });
    findings.push(match clock {
        Some((ahead, wrong)) if ahead.unsigned_abs() > CLOCK_TOLERANCE + wrong => Finding::bad(
            name("clock"),
            Verdict::Warn,
            format!(
                "{:.1} s {} of this computer's",
                seconds(*ahead),
                if *ahead > 0 { "ahead" } else { "behind" }
            ),
            "have all hosts set their clocks by NTP",
        ),
        Some((_, wrong)) => {
            Finding::ok(name("clock"), format!("as here, to {:.3} s", seconds((*wrong).cast_signed())))
        }
        None => Finding::bad(name("clock"), Verdict::Warn, "not told in time", "--host-timeout gives more"),
    });
    findings.push(ways(host, facts, unreached, all));
    findings
}

fn seconds(micros: i64) -> f64 {
    Duration::from_micros(micros.unsigned_abs()).as_secs_f64()
}

/// The ways from a host to the others.
fn ways(host: &str, facts: &HostFacts, unreached: &[(usize, String)], all: &[Examined]) -> Finding {
    let name = format!("{host}: ways to others");
    let mend = "let hosts connect to each other at any port, or name other addresses, as in host=10.0.0.1";
    let listens = match &facts.listens {
        Ok(listens) => listens,
        Err(why) => return Finding::bad(name, Verdict::Lack, why, mend),
    };
    if unreached.is_empty() {
        return Finding::ok(name, format!("all reached; it listens at {}", listens.ip()));
    }
    let each = unreached.iter().map(|(other, why)| format!("{} is not reached ({why})", all[*other].host));
    Finding::bad(name, Verdict::Lack, each.collect::<Vec<_>>().join(", "), mend)
}

fn runtime_library(first: &(&str, &HostFacts), others: &[(&str, &HostFacts)]) -> Finding {
    let name = "same runtime library";
    let (one, facts) = first;
    let differs = |(_, other): &&(&str, &HostFacts)| matches!((&facts.library, &other.library), (Ok(here), Ok(there)) if here != there);
    match others.iter().find(differs) {
        None => Finding::ok(name, "on all hosts"),
        Some((other, _)) => Finding::bad(
            name,
            Verdict::Lack,
            format!("libgondwana.so on host {other} is not the same file as on host {one}"),
            "install the same build of Gondwana on all hosts",
        ),
    }
}

/// Libraries are mapped below the room for the stack.
fn stacks(first: &(&str, &HostFacts), others: &[(&str, &HostFacts)]) -> Finding {
    let name = "same stack limit";
    let (one, facts) = first;
    let shown = |bytes: u64| match bytes {
        u64::MAX => "no limit".to_owned(),
        bytes => format!("{} KiB", bytes >> 10),
    };
    match others.iter().find(|(_, other)| other.stack_limit != facts.stack_limit) {
        None => Finding::ok(name, shown(facts.stack_limit)),
        Some((host, other)) => {
            let moves = facts.stack_limit.max(other.stack_limit) > STACK_GAP;
            Finding::bad(
                name,
                if moves { Verdict::Lack } else { Verdict::Warn },
                format!(
                    "{} on host {one}, {} on host {host}",
                    shown(facts.stack_limit),
                    shown(other.stack_limit)
                ),
                "give all hosts the same (ulimit -s)",
            )
        }
    }
}

fn same_objects(program: Option<&str>, first: &(&str, &HostFacts), others: &[(&str, &HostFacts)]) -> Finding {
    let name = "same files";
    let (one, facts) = first;
    let unknown =
        |(host, facts): &(&str, &HostFacts)| Some(unknown_objects(host, facts.objects.as_ref().err()?));
    if let Some(finding) = std::iter::once(first).chain(others).find_map(unknown) {
        return finding;
    }
    let here = facts.objects.as_deref().unwrap_or_default();
    for (host, other) in others {
        let there = other.objects.as_deref().unwrap_or_default();
        let own = program.and_then(|_| Some((here.first()?, there.first()?)));
        if let Some((here, _)) = own.filter(|(here, there)| here.identity != there.identity) {
            let found =
                format!("{} on host {host} is not the same file as on host {one}", here.path.display());
            return Finding::bad(name, Verdict::Lack, found, "copy it to all hosts");
        }
        if let Some(found) = objects::difference(here, there) {
            let sentence = found.sentence(one, host);
            let (found, mend) = sentence.rsplit_once(": ").unwrap_or((&sentence, "make them the same"));
            return Finding::bad(name, Verdict::Lack, found, mend);
        }
    }
    let what = match program {
        Some(program) => format!("{program} and what is loaded with it"),
        None => "the C library and the loader; name a program (-- PROGRAM) for all that it needs".to_owned(),
    };
    Finding::ok(name, format!("{} files: {what}", here.len().max(1) - usize::from(program.is_none())))
}

fn unknown_objects(host: &str, why: &str) -> Finding {
    Finding::bad("same files", Verdict::Lack, format!("host {host}: {why}"), "copy it to all hosts")
}
