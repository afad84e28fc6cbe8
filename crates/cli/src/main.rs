//! The `gondwana` command: its command line and subcommands.

mod advise;
mod debug;
mod doctor;
mod earlier_plan;
mod exec;
mod generate;
mod monitor;
mod recording_file;
mod report;
mod residence;
mod rset;
mod sim;
mod stack;
mod top;
mod topo;
mod usage;

use clap::{CommandFactory, Parser, Subcommand};
use gondwana_console::{failure, output};
use gondwana_launcher::run::options::RunOptions;
use gondwana_launcher::{hosts, launch, limits};
use std::process::ExitCode;

/// Runs unmodified threaded programs on several nodes as though they were one machine
#[derive(Parser)]
#[command(name = "gondwana", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a threaded program on several nodes
    #[command(
        override_usage = "gondwana run [OPTIONS] [--] PROGRAM [ARGUMENTS]...",
        after_help = "Example: gondwana run -n 4 --stats -- ./my_program its arguments"
    )]
    Run(RunOptions),
    /// Check this computer and print what it lacks
    Doctor(doctor::DoctorOptions),
    /// Measure each mechanism beside the physical bound of this computer
    Bench(gondwana_bench::BenchOptions),
    /// Analyse a recording of a run: which data crossed between nodes, which threads used it, and how
    #[command(
        after_help = "Example: gondwana run -n 4 --monitor=run.gwr -- ./my_program; gondwana report run.gwr"
    )]
    Report(report::ReportOptions),
    /// Run a program on this computer with its threads and memory where you want them
    #[command(
        override_usage = "gondwana exec [OPTIONS] [--] PROGRAM [ARGUMENTS]...",
        after_help = "Example: gondwana exec --rset node:0-1 --threads fill --memory local -- ./my_program"
    )]
    Exec(exec::ExecOptions),
    /// Show the nodes of a machine: processors, caches, memory, distances
    Topo(topo::TopoOptions),
    /// Record a running run
    Monitor(monitor::MonitorOptions),
    /// Show the present rates of a run
    Top(top::TopOptions),
    /// Show what the threads of a run are doing: their stacks, what they wait for, and deadlocks
    #[command(after_help = "Example: gondwana stack 4711")]
    Stack(stack::StackOptions),
    /// Attach the debugger gdb to a node of a run
    Debug(debug::DebugOptions),
    /// Show on which nodes the pages of a running process are
    Where(residence::WhereOptions),
    /// Name sets of processors and memory, and show what they have
    #[command(arg_required_else_help = false)]
    Rset(rset::RsetOptions),
    /// Advise what to change after a run with --monitor, and write a plan for the next one
    Advise(advise::AdviseOptions),
    /// Run a program, built by gondwana cc, on a simulated machine
    #[command(
        override_usage = "gondwana sim --machine NAME|FILE [OPTIONS] [--] PROGRAM [ARGUMENTS]...",
        after_help = "Example: gondwana cc -O2 -pthread my_program.c -o my_program; gondwana sim --machine wildfire-2x8 -- ./my_program"
    )]
    Sim(sim::SimOptions),
    /// Compile and link C for gondwana sim: gcc's arguments
    Cc(sim::CompileOptions),
    /// Compile and link C++ for gondwana sim: g++'s arguments
    #[command(name = "c++")]
    Cxx(sim::CompileOptions),
    /// Start nodes on behalf of a launcher on another computer
    #[command(hide = true)]
    Agent,
    /// Write the manual pages and the completions for shells
    #[command(hide = true)]
    Generate(generate::GenerateOptions),
}

fn main() -> ExitCode {
    // First, before deeper calls need more stack than the limit permits.
    let result = limits::check_stack().and_then(|()| obey());
    result.unwrap_or_else(|failure| {
        output::tell(&failure.to_string());
        ExitCode::from(failure.status)
    })
}

#[inline(never)]
fn obey() -> Result<ExitCode, failure::Failure> {
    match CommandLine::try_parse().map(|line| line.command) {
        Ok(Command::Run(options)) => launch::run(options),
        Ok(Command::Doctor(options)) => doctor::doctor(&options),
        Ok(Command::Bench(options)) => gondwana_bench::bench(&options),
        Ok(Command::Exec(options)) => exec::exec(&options),
        Ok(Command::Report(options)) => report::report(&options),
        Ok(Command::Topo(options)) => topo::topo(&options),
        Ok(Command::Monitor(options)) => monitor::monitor(&options),
        Ok(Command::Top(options)) => top::top(&options),
        Ok(Command::Stack(options)) => stack::stack(&options),
        Ok(Command::Debug(options)) => debug::debug(&options),
        Ok(Command::Where(options)) => residence::show(&options),
        Ok(Command::Rset(options)) => rset::rset(&options),
        Ok(Command::Advise(options)) => advise::advise(&options),
        Ok(Command::Sim(options)) => sim::sim(&options),
        Ok(Command::Cc(options)) => sim::compile("gcc", &options),
        Ok(Command::Cxx(options)) => sim::compile("g++", &options),
        Ok(Command::Agent) => hosts::agent::serve(),
        Ok(Command::Generate(options)) => generate::generate(&CommandLine::command(), &options),
        Err(error) => usage::refused(&error).map(|()| ExitCode::SUCCESS),
    }
}
