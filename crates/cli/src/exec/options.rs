//! Options of `gondwana exec`.

use std::ffi::OsString;

/// Options of `gondwana exec`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecOptions {
    /// Processors and memory for the program, as in node:0-1 or cpu:0-7&node:0 [default: all that it may use]
    #[arg(long, value_name = "RSET")]
    pub rset: Option<String>,
    /// Where its threads go: fill, round-robin, or sets with ; between them [default: anywhere in the set]
    #[arg(long, value_name = "POLICY")]
    pub threads: Option<String>,
    /// Placement of its memory: float, local, remote, striped, block, or a set [default: float]
    #[arg(long, value_name = "POLICY")]
    pub memory: Option<String>,
    /// Where some of its allocations go: WHICH=POLICY or WHICH=POLICY@RSET, as in '>=1M=striped:4', '<64K=local@node:0-1',
    /// 'read_table=node:1', 'libz.so!deflateInit2_+0x1f&>=64K=block'; the first rule that fits counts
    #[arg(long, value_name = "RULE")]
    pub malloc: Vec<String>,
    /// Touch the memory of --malloc at its allocation
    #[arg(long)]
    pub prefault: bool,
    /// Keep the memory of --malloc, without that all of the program's, from being swapped out
    #[arg(long)]
    pub lock: bool,
    /// Have the pages of large allocations under --malloc cycle through the colours of the level 2 cache
    #[arg(long)]
    pub colours: bool,
    /// Do not start the program unless the requested placement is achieved exactly
    #[arg(long)]
    pub strict: bool,
    /// Print the requested and the actual placement on standard error
    #[arg(long)]
    pub report: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

impl ExecOptions {
    /// True if any option needs the discovery of this computer.
    pub(crate) fn asks_for_anything(&self) -> bool {
        self.rset.is_some()
            || self.threads.is_some()
            || self.memory.is_some()
            || !self.malloc.is_empty()
            || self.prefault
            || self.lock
            || self.colours
    }
}
