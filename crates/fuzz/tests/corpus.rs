//! The targets take what is in their corpora. Whatever fuzzing finds is added there.

use gondwana_fuzz::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn each_target_takes_its_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders: BTreeSet<String> = fs::read_dir(&corpus)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        folders
            .iter()
            .map(String::as_str)
            .eq(TARGETS.iter().map(|target| target.name).collect::<BTreeSet<_>>())
    );
    for target in TARGETS {
        let mut files: Vec<_> =
            fs::read_dir(corpus.join(target.name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let taken = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(taken.is_ok(), "{} does not take {}", target.name, file.display());
            // Something shorter, as of a writer that was killed.
            (target.run)(&bytes[..bytes.len() / 2]);
        }
    }
}
