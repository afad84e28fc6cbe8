//! `gondwana generate`: manual pages and shell completions, out of the command's own definition.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use gondwana_console::create::{Readers, replace};
use gondwana_console::failure::{CANNOT, Failure, NOT_FOUND, NOT_RUNNABLE, USAGE};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `gondwana generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct GenerateOptions {
    /// The folder for data that does not depend on the computer, such as /usr/local/share
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Where each shell looks for completions, below the folder for data that does not depend on the computer.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/gondwana"),
    (Shell::Zsh, "zsh/site-functions/_gondwana"),
    (Shell::Fish, "fish/vendor_completions.d/gondwana.fish"),
];

/// Writes a manual page for the command and each visible subcommand, and the completions of all shells.
pub(crate) fn generate(command: &Command, options: &GenerateOptions) -> Result<ExitCode, Failure> {
    let mut command = visible(command);
    command.build();
    write_page(&command, &options.folder.join("man/man1"))?;
    for (shell, file) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "gondwana", &mut script);
        write(&options.folder.join(file), &script)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command without hidden subcommands. clap cannot remove subcommands, so a new command gets the others.
fn visible(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let about = command.get_about().cloned().unwrap_or_default();
    Command::new("gondwana")
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommands(shown)
}

/// Writes the pages of a command that is built, and of its subcommands.
fn write_page(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let page = page(command, &name).map_err(|error| Failure::system("writing a manual page", &error))?;
    write(&folder.join(format!("{name}.1")), &page)?;
    command.get_subcommands().try_for_each(|subcommand| write_page(subcommand, folder))
}

fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name).manual("Gondwana");
    let man = man.source(concat!("gondwana ", env!("CARGO_PKG_VERSION")));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        // Its lines are formatted by hand; the library's own section would fill them.
        let mut notes = Roff::new();
        notes.control("SH", ["NOTES"]).control("nf", []);
        text.to_string().lines().for_each(|line| {
            notes.text([roman(line)]);
        });
        notes.control("fi", []).to_writer(&mut page)?;
    }
    let first = name.split('-').next().unwrap_or(name);
    if name == first || name == "gondwana-run" {
        exit_status().to_writer(&mut page)?;
    }
    let mut others = Roff::new();
    others.control("SH", ["SEE ALSO"]);
    if name == first {
        others.text([bold("gondwana"), roman("(7)")]);
    } else {
        others.text([bold(first), roman("(1), "), bold(first), roman("(7)")]);
    }
    others.to_writer(&mut page)?;
    Ok(page)
}

fn exit_status() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]).text([roman(
        "That of the program that was run; a signal that ends the program ends the command as well. Otherwise:",
    )]);
    for (status, meaning) in [
        (USAGE, "The command line makes no sense."),
        (CANNOT, "The run could not begin or go on."),
        (NOT_RUNNABLE, "The program cannot be run this way."),
        (NOT_FOUND, "There is no such program."),
    ] {
        section.control("TP", []).text([bold(status.to_string())]).text([roman(meaning)]);
    }
    section
}

fn write(file: &Path, contents: &[u8]) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .map_err(|error| Failure::system(&format!("making the folder {}", folder.display()), &error))?;
    replace(file, contents, Readers::Usual)
        .map_err(|error| Failure::system(&format!("writing {}", file.display()), &error))
}
