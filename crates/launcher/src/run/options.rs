//! Options of a run.

use clap::builder::PossibleValuesParser;
use gondwana_console::failure::Failure;
use gondwana_control::{CommonAfter, Monitoring, PROTOCOLS, ProtocolInfo, check_filters};
use gondwana_memory::{PAGE_SIZE, RUNTIME_BASE, SPAN_BASE};
use gondwana_monitor::FilterText;
use gondwana_topology::MAX_NODES;
use gondwana_topology::MAX_PROCESSORS;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroU8;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The longest span, in bytes: half of what 32-bit page numbers and the layout of the address space allow, so that
/// the program's own data has numbers too.
pub const MAX_SPAN: u64 = 8 << 40;

/// The shortest span, in bytes: stacks and a little heap.
pub const MIN_SPAN: u64 = 64 << 20;

const _: () =
    assert!(MAX_SPAN <= (RUNTIME_BASE - SPAN_BASE) as u64 && MAX_SPAN / PAGE_SIZE as u64 <= 1 << 31);

/// Options of `gondwana run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunOptions {
    /// Number of nodes [default: one per host, or 2]
    #[arg(short = 'n', long, value_name = "NODES", value_parser = count, allow_negative_numbers = true)]
    nodes: Option<u64>,
    /// Processors of each node: decides when a waiting thread polls, and how many threads `--threads fill` puts on a
    /// node [default: the computer's, divided evenly]
    #[arg(short = 't', long, value_name = "PROCESSORS_PER_NODE", value_parser = count, allow_negative_numbers = true)]
    processors: Option<u64>,
    /// Transport between nodes [default: shm; with --hosts tcp]
    #[arg(long, value_enum)]
    fabric: Option<Fabric>,
    /// Memory consistency
    #[arg(long, value_enum, default_value_t = Consistency::Auto)]
    pub consistency: Consistency,
    /// Coherence protocol [default: the one for the consistency]
    #[arg(long, value_parser = protocols())]
    protocol: Option<String>,
    /// When a page becomes common, so that all nodes map it and the hardware keeps it coherent: as soon as a node touches it (touch), or
    /// when nodes have used it against each other so often; 0: never. Over shm only, and not with --monitor [default: touch; 1 with
    /// several memories (NUMA), --memory or --plan]
    #[arg(long, value_name = "touch|TIMES", value_parser = common_when)]
    pub common_after: Option<CommonWhen>,
    /// Placement of new threads: fill, round-robin, or sets with ; between them, as in node:0;node:1
    #[arg(long, value_name = "POLICY", default_value = "round-robin")]
    pub threads: String,
    /// Placement of the homes of pages: float, local, remote, striped, striped:PAGES, block, or a set as in node:0-1
    #[arg(long, value_name = "POLICY", default_value = "float")]
    pub memory: String,
    /// Plan file (TOML) with the placement of single variables and allocations: see docs/plan-file.md
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Do not start the program if the plan has names that the program lacks
    #[arg(long)]
    pub strict: bool,
    /// Hosts, as in alpha,beta=10.0.0.7 (name=address if the name does not resolve to it); nodes are placed on them
    /// in turn
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Command that runs {command} on {host}, for --hosts
    #[arg(
        long,
        value_name = "TEMPLATE",
        requires = "hosts",
        default_value = crate::hosts::SSH
    )]
    pub launcher: String,
    /// Timeout in seconds for all hosts to answer
    #[arg(long, value_name = "SECONDS", requires = "hosts", default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub host_timeout: u64,
    /// Use TCP without authentication and encryption
    #[arg(long)]
    pub no_encryption: bool,
    /// Bytes of shared address space, for example 64G [default: 4T, or what fits]
    #[arg(long, value_name = "SIZE")]
    span: Option<String>,
    /// Print counters of transactions between nodes on standard error; with a file name, write them there as JSON too
    #[arg(long, value_name = "FILE.json", num_args = 0..=1, require_equals = true)]
    pub stats: Option<Option<PathBuf>>,
    /// Record which data crosses between nodes, which threads touch it and where in the code; `auto` adds filters
    /// that move to the data that crosses most [default file: the program's name with .gwr; an existing file is
    /// renamed to FILE.old]
    #[arg(long, value_name = "FILE|auto[:FILE]", num_args = 0..=1, require_equals = true)]
    pub monitor: Option<Option<OsString>>,
    /// Also count transactions, with a counter for each unit of a range: range=heap|data|all|0xA-0xB, unit=32 to 2M,
    /// kinds=reads+diff.., direction=in|out|both, counter=N, threshold=N|every:N, with commas between them
    #[arg(long, value_name = "FILTER", requires = "monitor")]
    pub monitor_filter: Vec<String>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

fn protocols() -> PossibleValuesParser {
    PossibleValuesParser::new(PROTOCOLS.iter().map(|protocol| protocol.name))
}

/// When pages become common; never if that is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonWhen(pub Option<CommonAfter>);

fn common_when(text: &str) -> Result<CommonWhen, String> {
    if text == "touch" {
        return Ok(CommonWhen(Some(CommonAfter::Touch)));
    }
    let times: u8 =
        text.parse().map_err(|_| "touch is expected, or a number of times up to 255".to_owned())?;
    Ok(CommonWhen(NonZeroU8::new(times).map(CommonAfter::Times)))
}

fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a whole number is expected, such as 4".to_owned())
}

/// The transport between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Fabric {
    /// Shared memory, on one computer.
    Shm,
    /// TCP, authenticated and encrypted.
    Tcp,
}

impl Fabric {
    /// Its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Tcp => "tcp",
        }
    }
}

/// The memory consistency of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Consistency {
    /// sc if the program or a library of its own has inline atomic instructions, otherwise rc, over tcp with plain loads and stores in
    /// order.
    Auto,
    /// Release consistency: for programs without data races. The faster one.
    Rc,
    /// Release consistency, and sequential consistency where threads synchronise by atomic instructions: for programs without data races
    /// in the sense of C11.
    C11,
    /// Sequential consistency: for all programs.
    Sc,
}

impl RunOptions {
    /// The protocol that was requested by its name, if one was.
    pub fn protocol(&self) -> Result<Option<&'static ProtocolInfo>, Failure> {
        let Some(name) = &self.protocol else { return Ok(None) };
        let named = |protocol: &&&ProtocolInfo| protocol.name == name;
        let protocol = PROTOCOLS.iter().find(named).expect("clap accepts no other names");
        let gives = protocol.consistency;
        let wanted = match self.consistency {
            Consistency::Auto => gives,
            Consistency::Rc => gondwana_control::Consistency::Rc,
            Consistency::C11 => gondwana_control::Consistency::C11,
            Consistency::Sc => gondwana_control::Consistency::Sc,
        };
        if gives != wanted {
            let (gives, wanted) = (gives.name(), wanted.name());
            return Err(Failure::usage(format!(
                "--protocol {name} gives {gives}, but --consistency asks for {wanted}; leave one of them out"
            )));
        }
        Ok(Some(protocol))
    }

    /// True if the consistency is left to the program's code.
    pub fn chooses_consistency(&self) -> bool {
        self.consistency == Consistency::Auto && self.protocol.is_none()
    }

    /// The name of the program, unless it looks like a mistyped option.
    pub fn program_name(&self) -> Result<&OsStr, Failure> {
        let name = &self.program[0];
        if name.is_empty() {
            return Err(Failure::usage("the name of the program is empty"));
        }
        if name.as_encoded_bytes().starts_with(b"-") {
            let name = name.display();
            return Err(Failure::usage(format!(
                "there is no option {name} (gondwana run --help lists them; ./{name} would name a program)"
            )));
        }
        Ok(name)
    }

    /// How many nodes to start.
    pub fn nodes(&self) -> Result<u16, Failure> {
        let default = if self.hosts.is_empty() { 2 } else { self.hosts.len() as u64 };
        let nodes = self.nodes.unwrap_or(default);
        match u16::try_from(nodes) {
            Ok(0) => Err(Failure::usage("a run needs at least one node: -n 1 or more")),
            Ok(fits) if usize::from(fits) <= MAX_NODES => Ok(fits),
            _ => Err(Failure::usage(format!("{nodes} nodes are too many: the limit is {MAX_NODES}"))),
        }
    }

    /// The number of processors of each node, if the user has given it.
    pub fn processors(&self) -> Result<Option<u16>, Failure> {
        let Some(count) = self.processors else { return Ok(None) };
        let fits = |count: &u16| (1..=MAX_PROCESSORS).contains(&usize::from(*count));
        match u16::try_from(count).ok().filter(fits) {
            Some(count) => Ok(Some(count)),
            None => Err(Failure::usage(format!(
                "a node cannot use {count} processors: -t takes 1 to {MAX_PROCESSORS}"
            ))),
        }
    }

    /// The transport between nodes.
    pub fn fabric(&self) -> Result<Fabric, Failure> {
        match (self.fabric, self.hosts.is_empty()) {
            (Some(Fabric::Shm), false) => Err(Failure::usage(
                "different hosts share no memory: leave out --fabric shm, or leave out --hosts",
            )),
            (fabric, true) => Ok(fabric.unwrap_or(Fabric::Shm)),
            (_, false) => Ok(Fabric::Tcp),
        }
    }

    /// What to record, if anything.
    pub fn monitoring(&self) -> Result<Option<Monitoring>, Failure> {
        let Some(asked) = &self.monitor else { return Ok(None) };
        let auto = asked
            .as_ref()
            .is_some_and(|word| word == "auto" || word.as_encoded_bytes().starts_with(b"auto:"));
        let filters = parse_filters("--monitor-filter", &self.monitor_filter)?;
        Ok(Some(Monitoring { auto, filters }))
    }

    /// The file to record in, if requested.
    pub fn recording(&self, program: &OsStr) -> Option<PathBuf> {
        let asked = self.monitor.as_ref()?.as_deref().filter(|word| *word != "auto");
        let file = asked.map(|word| match word.as_encoded_bytes().strip_prefix(b"auto:") {
            Some(file) => PathBuf::from(OsStr::from_bytes(file)),
            None => PathBuf::from(word),
        });
        Some(file.unwrap_or_else(|| default_recording(program)))
    }

    /// Length of the span in bytes, if the user has given it.
    pub fn span(&self) -> Result<Option<u64>, Failure> {
        let Some(text) = &self.span else { return Ok(None) };
        let bytes = parse_size(text).ok_or_else(|| {
            Failure::usage(format!("--span \"{text}\" is not a size: write for example 64G or 512M"))
        })?;
        if !(MIN_SPAN..=MAX_SPAN).contains(&bytes) {
            return Err(Failure::usage(format!("--span {text} is out of range: 64M to 8T")));
        }
        Ok(Some(bytes.next_multiple_of(PAGE_SIZE as u64)))
    }
}

/// The file to record a program in if the user has named none.
pub fn default_recording(program: &OsStr) -> PathBuf {
    let mut name = Path::new(program).file_name().unwrap_or(program).to_owned();
    name.push(".gwr");
    name.into()
}

/// Reads filters that the user has given with an option.
pub fn parse_filters(option: &str, texts: &[String]) -> Result<Vec<FilterText>, Failure> {
    let failed =
        |text: &str, error: &dyn std::fmt::Display| Failure::usage(format!("{option} {text}: {error}"));
    let mut filters: Vec<FilterText> = vec![];
    for text in texts {
        filters.push(text.parse().map_err(|error| failed(text, &error))?);
        check_filters(&filters).map_err(|error| failed(text, &error))?;
    }
    Ok(filters)
}

/// Reads a number of bytes with an optional binary unit: `K`, `M`, `G`, `T`, also followed by `B` or `iB`.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: RunOptions,
    }

    fn parse(words: &[&str]) -> RunOptions {
        Line::try_parse_from(std::iter::once("run").chain(words.iter().copied())).unwrap().options
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("64G"), Some(64 << 30));
        assert_eq!(parse_size("1tib"), Some(1 << 40));
        for wrong in ["", "G", "1.5G", "-1", "64Q", "20000000T"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_programs_own_options_are_left_alone() {
        let options = parse(&["-n", "4", "prog", "-n", "7", "--stats"]);
        assert_eq!(options.program, ["prog", "-n", "7", "--stats"]);
        assert_eq!(options.nodes(), Ok(4));
        assert_eq!(options.stats, None);
        let options = parse(&["--stats", "--", "prog", "--", "x"]);
        assert_eq!(options.program, ["prog", "--", "x"]);
        assert_eq!(options.stats, Some(None));
        let options = parse(&["--stats=a.json", "prog"]);
        assert_eq!(options.stats, Some(Some(PathBuf::from("a.json"))));
    }

    #[test]
    fn counts_out_of_range_are_refused() {
        for wrong in ["0", "257", "4294967297"] {
            assert!(parse(&["-n", wrong, "prog"]).nodes().is_err(), "{wrong}");
        }
        assert_eq!(parse(&["-n", "256", "prog"]).nodes(), Ok(256));
        assert!(parse(&["-t", "0", "prog"]).processors().is_err());
        assert!(parse(&["--span", "9T", "prog"]).span().is_err());
        assert!(parse(&["--span", "lots", "prog"]).span().is_err());
        assert_eq!(parse(&["--span", "67108865", "prog"]).span(), Ok(Some((64 << 20) + 4096)));
    }

    #[test]
    fn hosts_decide_count_and_fabric() {
        let options = parse(&["--hosts", "a,b,c", "prog"]);
        assert_eq!(options.nodes(), Ok(3));
        assert_eq!(options.fabric(), Ok(Fabric::Tcp));
        assert!(parse(&["--hosts", "a,b", "--fabric", "shm", "prog"]).fabric().is_err());
        assert_eq!(parse(&["prog"]).fabric(), Ok(Fabric::Shm));
    }
}
