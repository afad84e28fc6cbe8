//! `gondwana where`: the nodes that hold the pages of a running process.

mod range;
mod strip;
mod tables;

use gondwana_console::failure::Failure;
use gondwana_console::output::{json, print};
use gondwana_host::pages::{self, Found};
use gondwana_host::process::{self, Mapping};
use gondwana_page::PAGE_SIZE;
use range::AddressRange;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use strip::Strip;

/// Options of `gondwana where`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WhereOptions {
    /// The process
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: u32,
    /// Count the pages of these addresses only: START-END or START+LENGTH, in hexadecimal digits
    range: Option<AddressRange>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the nodes of a process's pages.
pub(crate) fn show(options: &WhereOptions) -> Result<ExitCode, Failure> {
    let options = &WhereOptions { pid: crate::exec::program_of(options.pid), ..options.clone() };
    match &options.range {
        Some(range) => addresses(options, range.pages(PAGE_SIZE)),
        None => mappings(options),
    }
}

/// All mappings, as the kernel counts them.
fn mappings(options: &WhereOptions) -> Result<ExitCode, Failure> {
    let mappings =
        process::mappings(Path::new("/"), options.pid).map_err(|error| match error.source.kind() {
            std::io::ErrorKind::NotFound if error.path.ends_with("numa_maps") => {
                Failure::cannot("this kernel is built without NUMA and does not count pages by node")
            }
            _ => refusal(options.pid, &error.source),
        })?;
    let used: Vec<Mapping> = mappings.into_iter().filter(|mapping| !mapping.bytes.is_empty()).collect();
    if options.json {
        return print(&json(&serde_json::json!({ "process": options.pid, "mappings": used })));
    }
    let strips = used.iter().map(|mapping| strip(options.pid, mapping.addresses.clone()));
    // The numbers are worth showing without the pictures.
    let strips: Vec<String> =
        strips.map(|strip| strip.map(|strip| strip.to_string()).unwrap_or_default()).collect();
    let parts = [tables::kinds(&used), tables::heaps(&used), tables::mappings(&used, &strips)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    print(&parts.join("\n"))
}

/// The most pages that are sampled for a strip.
const LOOKED_AT: usize = strip::CELLS * 64;

/// A strip for some addresses, from pages at equal distances if there are many.
fn strip(pid: u32, addresses: Range<usize>) -> Result<Strip, Failure> {
    let page = PAGE_SIZE;
    let step = (addresses.len() / page).div_ceil(LOOKED_AT).max(1) * page;
    let looked_at: Vec<usize> = addresses.clone().step_by(step).collect();
    let nodes = pages::nodes_of(id(pid), &looked_at).map_err(|error| refusal(pid, &error))?;
    let mut strip = Strip::new(addresses);
    looked_at.into_iter().zip(nodes).for_each(|(address, node)| strip.add(address, node));
    Ok(strip)
}

/// Some addresses, page by page.
fn addresses(options: &WhereOptions, addresses: Range<usize>) -> Result<ExitCode, Failure> {
    let (mut found, mut strip) = (Found::default(), Strip::new(addresses.clone()));
    let counted = pages::nodes(id(options.pid), addresses.clone(), |address, node| {
        found.add(node);
        strip.add(address, node);
    });
    counted.map_err(|error| refusal(options.pid, &error))?;
    if options.json {
        let report = serde_json::json!({
            "process": options.pid,
            "addresses": addresses,
            "pages": found.pages,
            "absent": found.absent,
        });
        return print(&json(&report));
    }
    print(&format!("{}\n{strip}\n", tables::pages(&found)))
}

fn id(pid: u32) -> libc::pid_t {
    libc::pid_t::try_from(pid).expect("the option has been checked")
}

/// Why a process does not show its pages.
fn refusal(pid: u32, error: &std::io::Error) -> Failure {
    let message = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ESRCH) => format!("there is no process {pid}"),
        Some(libc::EPERM | libc::EACCES) => format!(
            "the kernel does not show the pages of process {pid} to this user: it must be the owner's, and \
             kernel.yama.ptrace_scope or the lack of CAP_SYS_PTRACE may forbid it even then"
        ),
        Some(libc::ENOSYS) => "this kernel is built without NUMA and does not count pages by node".to_owned(),
        _ => format!("the pages of process {pid} cannot be counted: {error}"),
    };
    Failure::cannot(message)
}
