//! Scripts: the command that the system would execute in their place.

use crate::program::locate;
use gondwana_console::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// What the system reads of a file to find its interpreter.
const FIRST: u64 = 256;

/// How often an interpreter may be a script itself.
const NESTED: usize = 4;

/// What they run are other programs, whose nodes nobody has asked for.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"];

/// A command, of which the first word is a program: with its interpreter in front of it, if it is a script, and that one's if that is
/// one. `env` is replaced by what it looks for. Scripts for shells, and those for which `env` is to do more, stay as they are.
///
/// # Errors
/// If the program or an interpreter is not there or may not be executed.
pub(crate) fn interpreted(mut command: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    for _ in 0..NESTED {
        let Some(name) = command.first() else { break };
        let path = locate(name)?;
        let start = start(&path);
        let Some(interpreter) = start.as_deref().and_then(first_line).and_then(interpreter) else { break };
        let rest = command.split_off(1);
        command = [interpreter, vec![path.into()], rest].concat();
    }
    Ok(command)
}

/// What a file begins with. Whether it can be read is told later.
fn start(path: &Path) -> Option<Vec<u8>> {
    let mut start = vec![];
    File::open(path).ok()?.take(FIRST).read_to_end(&mut start).ok()?;
    Some(start)
}

/// The first line of a script that begins with these bytes, without what makes it one; `None` for anything else.
pub(crate) fn first_line(start: &[u8]) -> Option<&[u8]> {
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    Some(line.trim_ascii())
}

/// The interpreter of such a line, and what it gets before the script: all of the rest as one word.
fn interpreter(line: &[u8]) -> Option<Vec<OsString>> {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (name, argument) = (&line[..end], line[end..].trim_ascii_start());
    let words = match base(name) {
        b"env" => looked_for(argument)?,
        _ => [name, argument].into_iter().filter(|word| !word.is_empty()).collect(),
    };
    let name = base(words.first()?);
    let is_shell = SHELLS.iter().any(|shell| shell.as_bytes() == name);
    (!is_shell).then(|| words.into_iter().map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// The command that `env` executes with this argument; `None` if it does something else, too.
fn looked_for(argument: &[u8]) -> Option<Vec<&[u8]>> {
    let words: Vec<&[u8]> = match argument.strip_prefix(b"-S") {
        // In quotes there may be blanks, and variables.
        Some(list) if list.iter().any(|byte| b"\"'\\$#".contains(byte)) => return None,
        Some(list) => list.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect(),
        None => vec![argument],
    };
    let name = words.first()?;
    let is_name = !name.is_empty() && name[0] != b'-' && !name.contains(&b'=');
    is_name.then_some(words)
}

fn base(path: &[u8]) -> &[u8] {
    Path::new(OsStr::from_bytes(path)).file_name().map_or(b"", OsStrExt::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(line: &str, wanted: Option<&[&str]>) {
        let found = interpreter(line.as_bytes());
        let wanted = wanted.map(|words| words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found, wanted, "{line}");
    }

    #[test]
    fn an_interpreter_has_one_argument() {
        is("/usr/bin/python3", Some(&["/usr/bin/python3"]));
        is("/usr/bin/perl -w -T", Some(&["/usr/bin/perl", "-w -T"]));
        is("bin/x\t  a  b", Some(&["bin/x", "a  b"]));
        is("", None);
    }

    #[test]
    fn env_is_replaced_by_what_it_looks_for() {
        is("/usr/bin/env python3", Some(&["python3"]));
        is("/usr/bin/env -S python3 -u -X dev", Some(&["python3", "-u", "-X", "dev"]));
        is("/usr/bin/env", None);
        is("/usr/bin/env -i python3", None);
        is("/usr/bin/env -S A=1 python3", None);
        is("/usr/bin/env -S python3 '-c x'", None);
        is("/usr/bin/env A=1", None);
    }

    #[test]
    fn shells_are_left_alone() {
        is("/bin/sh", None);
        is("/bin/bash -e", None);
        is("/usr/bin/env bash", None);
        is("/usr/bin/env -S zsh -f", None);
    }
}
