//! The `gondwana` command, as its library has it.

use std::process::ExitCode;

fn main() -> ExitCode {
    gondwana_cli::main()
}
