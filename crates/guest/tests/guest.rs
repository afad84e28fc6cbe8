//! A small guest from boot to end.

use gondwana_guest::{Guest, Image, Machine, Node, Tools};
use std::io::Write;
use std::path::Path;

#[test]
fn a_guest_answers_until_it_ends() {
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(missing) => {
            // Not through the macros, whose output the test harness hides when tests pass.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the test of emulated computers, because there is {missing}"
            );
            return;
        }
    };
    let machine =
        Machine { nodes: vec![Node { processors: vec![0], memory: 256 }], distances: vec![vec![10]] };
    let mut image = Image::new();
    image.file("/etc/a file", 0o640, "its content\n");
    // A program of this computer, with its libraries.
    image.program(Path::new("/usr/bin/env"), "/bin/dynamic").unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guest-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut guest = Guest::boot(&tools, &machine, image, &folder).unwrap();
    let mut run = |script: &str| guest.run(script).map(|ran| (ran.output, ran.errors, ran.status));
    let answer = |output: &str, errors: &str, status| (output.to_owned(), errors.to_owned(), status);

    assert_eq!(
        run("cat '/etc/a file'\nstat -c %a '/etc/a file'").unwrap(),
        answer("its content\n640\n", "", 0)
    );
    assert_eq!(
        run("echo to >&2; printf '0 0 0\\nno end'; exit 3").unwrap(),
        answer("0 0 0\nno end", "to\n", 3)
    );
    assert_eq!(run("kill -SEGV $$").unwrap().2, 139);
    assert_eq!(run("dynamic echo word").unwrap(), answer("word\n", "", 0));
    // Files stay for the next script, processes do not.
    assert_eq!(run("echo first > kept; cat /dev/zero > /dev/null &").unwrap(), answer("", "", 0));
    assert_eq!(run("cat kept; pidof cat").unwrap(), answer("first\n", "", 1));
    let long = run("head -c 20000 /dev/zero | tr '\\0' x").unwrap().0;
    assert_eq!((long.len(), long.trim_matches('x')), (20_000, ""));
    // The emulator ends with its machine.
    let broken = run("poweroff -f").unwrap_err().to_string();
    assert!(broken.starts_with("the guest has failed") && broken.contains("Power down"), "{broken}");
    assert!(run("true").is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}
