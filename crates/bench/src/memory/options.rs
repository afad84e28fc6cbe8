//! What the user can say about a measurement of memory.

use gondwana_topology::Bytes;
use std::path::PathBuf;

/// Options of `gondwana bench memory`.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryOptions {
    /// Measure the nodes of a run on this computer instead of the computer's own nodes
    #[arg(long)]
    pub cluster: bool,
    /// The computer's nodes to be measured, as in 0-1,3; with --cluster how many nodes the run has [default: all; 2]
    #[arg(short = 'n', long, value_name = "NODES")]
    pub nodes: Option<String>,
    /// Memory to work on, as in 64MiB [default: four times the last-level caches of a node]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// The most threads on a node [default: one for each processor; with --cluster the node's share of them]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
    /// Write the measurements as JSON too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the ratios of remote to local memory, and of several threads to one
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
