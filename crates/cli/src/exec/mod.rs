//! `gondwana exec`: an unmodified program on this computer, inside a resource set.
//!
//! The command binds itself, checks the result, and executes the program, or stays as its parent if memory is bound
//! to certain nodes: affinity and memory policy survive. Policies that differ between threads or allocations are
//! applied by a small preloaded library.

mod asked;
mod bound;
mod linkage;
mod locking;
mod options;
mod parent;
mod preload;
mod rules;

pub(crate) use options::ExecOptions;
pub(crate) use parent::program_of;

use asked::Wanted;
use bound::Bound;
use gondwana_console::failure::Failure;
use gondwana_host::pages::Found;
use gondwana_host::{Asked, Binding, Extras, MALLOC_VARIABLE, Reporter, THREADS_VARIABLE, UnmetRequest};
use gondwana_rset::MemoryPolicy;
use preload::Loadable;
use rules::Rules;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Executes the program, or stays as its parent if some of its memory is bound to certain nodes.
pub(crate) fn exec(options: &ExecOptions) -> Result<ExitCode, Failure> {
    let name = &options.program[0];
    let mut command = Command::new(name);
    command.args(&options.program[1..]);
    let mut bound = None;
    if options.asks_for_anything() {
        let remarks;
        (remarks, bound) = options.prepare(&mut command)?;
        for remark in &remarks {
            eprintln!("gondwana: {remark}");
        }
        if options.strict && !remarks.is_empty() {
            return Err(Failure::cannot("the program was not started, because of --strict"));
        }
    }
    let error = match bound {
        None => command.exec(),
        Some(bound) => match parent::stay_with(&mut command, &bound) {
            Ok(code) => return Ok(code),
            Err(error) => error,
        },
    };
    let shown = name.display();
    Err(match error.kind() {
        std::io::ErrorKind::NotFound => Failure::not_found(format!("{shown}: no such program")),
        _ => Failure::not_runnable(format!("{shown} cannot be run: {error}")),
    })
}

impl ExecOptions {
    /// Binds this process and passes the rest to the program; returns the unmet requests, and the bindings of memory.
    fn prepare(&self, command: &mut Command) -> Result<(Vec<UnmetRequest>, Option<Bound>), Failure> {
        let Wanted { machine, registry, rset, mut asked } = self.wanted()?;
        let mut remarks = std::mem::take(&mut asked.remarks);
        if !self.strict {
            remarks.extend(go_around_full_nodes(&mut asked, &rset));
        }
        let is_loaded =
            asked.threads.is_some() || asked.regions.is_some() || !self.malloc.is_empty() || self.lock;
        let loadable = if is_loaded { Some(Loadable::find(&self.program[0])?) } else { None };
        let program = loadable.as_ref().and_then(|found| Some(found.as_ref().ok()?.program.as_path()));
        let mut rules = Rules::parse(&self.malloc, program, &machine, &registry, &rset)?;
        if let Some(policy) = asked.regions {
            rules.add_for_large(policy);
            remarks.push(UnmetRequest::Other(only_for_regions(policy, program.is_some())));
        }
        if rules.is_empty() && (self.prefault || self.colours) {
            return Err(Failure::usage(
                "--prefault and --colours are for the memory of --malloc, which is missing",
            ));
        }
        let bound = if is_first() { None } else { Bound::find(&asked, &rules, self.strict) };
        match loadable {
            None => {}
            Some(Err(remark)) => remarks.push(remark),
            Some(Ok(loadable)) => {
                if let Some(threads) = &asked.threads {
                    loadable.tell(command, THREADS_VARIABLE, threads.to_string());
                    remarks.extend(threads.bindings().flat_map(|binding: Binding| binding.apply()));
                }
                let colours = if self.colours { gondwana_host::colours(&machine) } else { None };
                if self.colours && colours.is_none() {
                    remarks.push(UnmetRequest::Other(
                        "pages cannot be coloured: this computer does not show a level 2 cache with colours"
                            .to_owned(),
                    ));
                }
                let lock = self.lock && (!rules.is_empty() || locking::is_unlimited());
                if self.lock && !lock {
                    remarks.push(UnmetRequest::Other(locking::LIMITED.to_owned()));
                }
                let extras = Extras {
                    prefault: self.prefault,
                    lock,
                    small_pages: false,
                    colours,
                    strict: self.strict,
                };
                remarks.extend(rules.try_out(extras));
                if lock || !rules.is_empty() {
                    let own = std::process::id();
                    let program = bound.as_ref().map_or(Reporter::Process(own), |_| Reporter::ChildOf(own));
                    let plan = rules.plan(self.report.then_some(program), extras);
                    loadable.tell(command, MALLOC_VARIABLE, plan.to_string());
                }
            }
        }
        // Last, because the program starts with this binding.
        let tried = asked.process.try_out();
        // A node that is reported to overflow need not be reported as full.
        for remark in tried.remarks {
            if !is_said(&remark, &remarks) {
                remarks.push(remark);
            }
        }
        remarks.dedup();
        if self.report {
            report(&asked, tried.found.as_ref());
        }
        Ok((remarks, bound))
    }
}

/// True for the first process of a container: its children end with it, and it would have to reap orphans. So it
/// executes the program in any case.
fn is_first() -> bool {
    std::process::id() == 1
}

/// Adds memory nodes if the requested ones are full.
fn go_around_full_nodes(asked: &mut Asked, rset: &gondwana_rset::RSet) -> Vec<UnmetRequest> {
    let around = |binding: &Binding| binding.around_full_nodes(rset.memory());
    let mut remarks: Vec<UnmetRequest> = asked
        .threads
        .iter()
        .flat_map(|threads| threads.bindings())
        .filter_map(|binding| around(&binding).1)
        .collect();
    asked.threads = asked.threads.as_ref().map(|threads| threads.map(|binding| around(binding).0));
    let (process, remark) = around(&asked.process);
    asked.process = process;
    remarks.extend(remark);
    remarks
}

/// True if another remark includes this one.
fn is_said(remark: &UnmetRequest, others: &[UnmetRequest]) -> bool {
    let UnmetRequest::Full { nodes } = remark else { return false };
    others.iter().any(|other| matches!(other, UnmetRequest::Overflowing { nodes: full, .. } if full == nodes))
}

/// The remark that a policy applies to regions of memory only.
fn only_for_regions(policy: MemoryPolicy, is_redirected: bool) -> String {
    let what = match policy {
        MemoryPolicy::Striped(stride) => format!("stripes of {stride} pages"),
        _ => "blocks".to_owned(),
    };
    let rest = match policy {
        MemoryPolicy::Striped(_) => "is striped page by page",
        _ => "floats in the set",
    };
    if is_redirected {
        format!("{what} are for allocations of 128 KiB and more: the rest of the program's memory {rest}")
    } else {
        format!("{what} cannot be had for a whole program: its memory {rest}")
    }
}

/// Prints the requested and the actual placement.
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
