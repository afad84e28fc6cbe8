//! Which shared libraries a program loads when it starts.
//!
//! The dynamic loader itself is asked: it alone knows how all its search paths, caches and variables combine.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The only loader whose programs are accepted.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// The libraries of a program, as paths; those that the loader cannot find are left out, since it will complain
/// better than we can.
pub fn of(program: &Path) -> io::Result<Vec<PathBuf>> {
    let program = program.canonicalize()?;
    let output = Command::new(LOADER)
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    Ok(parse(&output.stdout))
}

/// Reads lines such as `libm.so.6 => /lib/libm.so.6 (0x00007f...)` and `/opt/libx.so (0x00007f...)`.
fn parse(listing: &[u8]) -> Vec<PathBuf> {
    let path = |line: &[u8]| {
        let line = line.trim_ascii();
        let end = line.windows(4).rposition(|window| window == b" (0x")?;
        let start = line[..end].windows(4).position(|window| window == b" => ").map_or(0, |arrow| arrow + 4);
        let path = Path::new(std::ffi::OsStr::from_bytes(&line[start..end]));
        path.is_absolute().then(|| path.to_owned())
    };
    listing.split(|&byte| byte == b'\n').filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_loaders_listing() {
        let listing = b"\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f01)\n\
            \t./own.so => /home/a b/own.so (0x00007f02)\n\
            \tlibgone.so => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n";
        let paths = ["/lib/x86_64-linux-gnu/libm.so.6", "/home/a b/own.so", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(parse(listing), paths.map(PathBuf::from));
    }
}
