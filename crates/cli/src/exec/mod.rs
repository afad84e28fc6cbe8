//! `gondwana exec`: an unmodified program on this computer, inside a resource set.
//!
//! The launcher binds itself, tries out what the kernel made of that, and becomes the program: processors and the
//! policy for memory stay. What differs between threads is left to a small library that is loaded into the program.

mod linkage;

use crate::failure::Failure;
use crate::run::{capabilities, check};
use gondwana_host::pages::Found;
use gondwana_host::{Asked, Binding, Remark, THREADS_VARIABLE, Threads, translate};
use gondwana_rset::{MemoryPolicy, RSet, Registry, TextError, ThreadPolicy};
use gondwana_topology::Machine;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The library that binds threads.
const LIBRARY: &str = "libgondwana_affinity.so";

/// Options of `gondwana exec`.
#[derive(Debug, clap::Args)]
pub struct ExecOptions {
    /// Processors and memory for the program, as in node:0-1 or cpu:0-7&node:0 [default: all that it may have]
    #[arg(long, value_name = "RSET")]
    rset: Option<String>,
    /// Where its threads go: fill, round-robin, or sets with ; between them [default: anywhere in the set]
    #[arg(long, value_name = "POLICY")]
    threads: Option<String>,
    /// Where its memory comes from: float, local, remote, striped, block, or a set [default: float]
    #[arg(long, value_name = "POLICY")]
    memory: Option<String>,
    /// Do not start the program unless it has exactly what was asked for
    #[arg(long)]
    strict: bool,
    /// Say on standard error what was asked for and what was found
    #[arg(long)]
    report: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Becomes the program.
pub fn exec(options: &ExecOptions) -> Result<ExitCode, Failure> {
    let name = &options.program[0];
    let mut command = Command::new(name);
    command.args(&options.program[1..]);
    let wanted = options.rset.is_some() || options.threads.is_some() || options.memory.is_some();
    if wanted {
        let mut asked = options.asked()?;
        let mut remarks = std::mem::take(&mut asked.remarks);
        if let Some(threads) = &asked.threads {
            remarks.extend(each_thread(threads, name, &mut command)?);
        }
        // The last one: it is what the program begins with.
        let tried = asked.process.try_out();
        remarks.extend(tried.remarks);
        remarks.dedup();
        if options.report {
            report(&asked, tried.found.as_ref());
        }
        for remark in &remarks {
            eprintln!("gondwana: {remark}");
        }
        if options.strict && !remarks.is_empty() {
            return Err(Failure::cannot("the program was not started, because of --strict"));
        }
    }
    let error = command.exec();
    let shown = name.display();
    Err(match error.kind() {
        std::io::ErrorKind::NotFound => Failure::not_found(format!("{shown}: no such program")),
        _ => Failure::not_runnable(format!("{shown} cannot be run: {error}")),
    })
}

impl ExecOptions {
    /// What the texts mean on this computer.
    fn asked(&self) -> Result<Asked, Failure> {
        let machine = gondwana_host::discover_nodes().map_err(|error| Failure::cannot(error.to_string()))?;
        let registry = crate::rset::named_sets()?;
        let rset = match &self.rset {
            Some(text) => parsed("--rset", text, RSet::parse, &machine, &registry)?,
            None => RSet::allowed(&machine),
        };
        let threads = self.threads.as_deref();
        let threads = threads.map(|text| parsed("--threads", text, ThreadPolicy::parse, &machine, &registry));
        let memory = match &self.memory {
            Some(text) => parsed("--memory", text, MemoryPolicy::parse, &machine, &registry)?,
            None => MemoryPolicy::Float,
        };
        translate(&machine, &rset, threads.transpose()?, memory)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Reads the text of an option.
fn parsed<T>(
    option: &str,
    text: &str,
    parse: impl Fn(&str, &Machine, &Registry) -> Result<T, TextError>,
    machine: &Machine,
    registry: &Registry,
) -> Result<T, Failure> {
    parse(text, machine, registry).map_err(|error| Failure::usage(format!("{option}: {error}")))
}

/// Has the threads of the program bound one by one, and finds out what the kernel will refuse then.
fn each_thread(threads: &Threads, name: &OsStr, command: &mut Command) -> Result<Vec<Remark>, Failure> {
    let program = check::locate(name)?;
    if !linkage::takes_libraries(&program) {
        return Ok(vec![Remark::Other(format!(
            "{} is statically linked: its threads cannot be bound one by one, and are anywhere in the set",
            name.display()
        ))]);
    }
    let library = capabilities::library(LIBRARY, "gondwana-affinity")?.into_os_string();
    let preloaded = match std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        Some(others) => [library, others].join(OsStr::new(":")),
        None => library,
    };
    command.env("LD_PRELOAD", preloaded).env(THREADS_VARIABLE, threads.to_string());
    Ok(threads.bindings().flat_map(|binding: Binding| binding.apply()).collect())
}

/// Says what was asked for and what there is.
fn report(asked: &Asked, found: Option<&Found>) {
    eprintln!("gondwana: asked for processors {}, memory {}", asked.process.processors, asked.process.policy);
    if let Some(threads) = &asked.threads {
        eprintln!("gondwana: asked for threads {threads}");
    }
    match gondwana_host::sys::affinity(0) {
        Ok(processors) => eprintln!("gondwana: found processors {processors}"),
        Err(error) => eprintln!("gondwana: found no processors: {error}"),
    }
    let pages = found.map(|found| {
        let pages = found.pages.iter().map(|(node, pages)| format!("{pages} on node {node}"));
        pages.collect::<Vec<_>>().join(", ")
    });
    eprintln!("gondwana: found pages {}", pages.as_deref().unwrap_or("nowhere: none were tried"));
}
