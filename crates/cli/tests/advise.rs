//! `gondwana advise`: from a recording to a plan, and the run under it.

mod common;

use common::folder::Folder;
use common::whole::{LIMIT, Ran, run, whole};
use std::process::Command;

fn advise(folder: &Folder, options: &[&str]) -> Ran {
    run(Command::new(&whole().gondwana).arg("advise").args(options).current_dir(&**folder), LIMIT)
}

fn code(ran: &Ran) -> i32 {
    ran.status.expect("it ends").code().expect("by itself")
}

#[test]
fn what_is_no_recording_is_refused_in_a_sentence() {
    let folder = Folder::new();
    std::fs::write(folder.join("text"), "version = 1\n").unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    for (file, words) in [
        ("missing.gwr", "missing.gwr: No such file"),
        ("text", "text: this is no recording"),
        ("empty", "empty: this is no recording"),
        (".", ".: "),
    ] {
        let ran = advise(&folder, &[file, "-o", "plan.toml"]);
        assert_eq!((code(&ran), ran.output.as_str()), (125, ""), "{file}");
        assert!(ran.errors.contains(words) && ran.errors.lines().count() == 1, "{file}: {}", ran.errors);
    }
    assert_eq!(code(&advise(&folder, &["text", "--force"])), 2);
    assert!(!folder.join("plan.toml").exists());
}
