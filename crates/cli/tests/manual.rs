//! Installed manual pages and completions for shells: one page for each subcommand that `--help` names.

mod common;

use common::c_api::{prefix, succeed};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn share() -> PathBuf {
    prefix().join("share")
}

/// The subcommands that the help of a command names.
fn subcommands(of: &[&str]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gondwana"));
    let help = String::from_utf8(succeed(command.args(of).arg("--help")).stdout).unwrap();
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The names of all pages that there should be.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::from(["gondwana".to_owned()]);
    for name in subcommands(&[]) {
        names.extend(subcommands(&[&name]).iter().map(|verb| format!("gondwana-{name}-{verb}")));
        names.insert(format!("gondwana-{name}"));
    }
    names
}

/// True if the program can be started; otherwise prints that a check is left out.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("{program} is not installed: what it would check is left out");
    }
    found
}

#[test]
fn each_subcommand_has_a_page() {
    let pages = fs::read_dir(share().join("man/man1")).unwrap();
    let pages: BTreeSet<String> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let names = names();
    assert!(names.len() > 10 && names.contains("gondwana-rset-make"), "{names:?}");
    assert_eq!(pages, names.iter().map(|name| format!("{name}.1")).collect());
}

#[test]
fn pages_have_the_options_of_the_help() {
    let page = fs::read_to_string(share().join("man/man1/gondwana-run.1")).unwrap().replace("\\-", "-");
    for text in [".TH gondwana-run 1", "--monitor-filter", "--stats", "EXIT STATUS", "gondwana run -n 4"] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn the_formatter_finds_nothing_to_warn_of() {
    if !has("groff") {
        return;
    }
    for name in names() {
        let page = share().join(format!("man/man1/{name}.1"));
        let mut groff = Command::new("groff");
        let output = succeed(groff.args(["-man", "-Tutf8", "-P-cbou", "-ww"]).arg(&page));
        assert!(output.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("SYNOPSIS"), "{name}");
    }
}

/// Bash's completions of the last of these words behind `gondwana`.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(format!(
        "source {}; COMP_WORDS=(gondwana {words}); COMP_CWORD={count}; COMPREPLY=(); \
         _gondwana gondwana '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words = words.join(" "),
        count = words.len(),
        last = words[words.len() - 1],
        before = words.get(words.len().wrapping_sub(2)).unwrap_or(&"gondwana"),
    ));
    String::from_utf8(succeed(&mut bash).stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_subcommands_and_options() {
    let script = share().join("bash-completion/completions/gondwana");
    assert_eq!(completed(&script, &["re"]), ["report"]);
    assert_eq!(completed(&script, &["run", "--monitor-"]), ["--monitor-filter"]);
    assert_eq!(completed(&script, &["rset", "ma"]), ["make"]);
    assert!(completed(&script, &["ag"]).concat().is_empty(), "a hidden command is offered");
}

#[test]
fn the_other_shells_can_read_their_completions() {
    for (shell, file) in
        [("zsh", "zsh/site-functions/_gondwana"), ("fish", "fish/vendor_completions.d/gondwana.fish")]
    {
        let script = share().join(file);
        let text = fs::read_to_string(&script).unwrap();
        assert!(text.contains("monitor-filter") && !text.contains("agent"), "{shell}");
        if has(shell) {
            succeed(Command::new(shell).arg("-n").arg(&script));
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gondwana"));
    let output = command.args(["generate", "/dev/null/share"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.starts_with("gondwana: making the folder /dev/null/share"), "{said}");
    assert_eq!(said.matches('\n').count(), 1, "{said}");
}
