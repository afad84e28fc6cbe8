//! Programs that say what they have at which addresses.

use gondwana_recording::ImageRecord;
use gondwana_symbols::{File, Symbols};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that goes away with this value; one that stays as long as the tests run remains in cargo's.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("symbols-{number}"));
        // What an earlier run has left.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder.canonicalize().unwrap())
    }

    /// Runs a tool in the folder.
    pub(crate) fn call(&self, tool: &str, arguments: &[&str]) {
        let output = Command::new(tool).args(arguments).current_dir(&self.0).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    }

    /// Compiles one of the programs into a file of this name, with options that are separated by spaces.
    pub(crate) fn compile(&self, source: &str, name: &str, options: &str) -> PathBuf {
        let compiler = if source.ends_with(".cc") { "g++" } else { "gcc" };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        let source = source.to_str().unwrap();
        let options: Vec<_> = options.split_whitespace().collect();
        self.call(compiler, &[&["-o", name, source], &options[..]].concat());
        self.0.join(name)
    }
}

impl std::ops::Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a program has said.
pub(crate) struct Said {
    /// Its files.
    pub images: Vec<ImageRecord>,
    /// The rest: what it is about, an address, and what there is to say about it.
    pub facts: Vec<(String, u64, Vec<String>)>,
}

impl Said {
    /// Runs a program.
    pub(crate) fn by(program: &Path) -> Self {
        let folder = program.parent().unwrap();
        let output = Command::new(program).env("LD_LIBRARY_PATH", folder).output().unwrap();
        assert!(output.status.success(), "{program:?}: {output:?}");
        let (mut images, mut facts) = (vec![], vec![]);
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let mut fields = line.split('\t').map(str::to_owned);
            let kind = fields.next().unwrap();
            let number = u64::from_str_radix(&fields.next().unwrap(), 16).unwrap();
            let rest: Vec<_> = fields.collect();
            if kind == "image" {
                images.push(image(number, &rest));
            } else {
                facts.push((kind, number, rest));
            }
        }
        assert!(!facts.is_empty());
        Self { images, facts }
    }

    /// The names, and what there was to say about the files.
    pub(crate) fn open(&self) -> (Symbols, Vec<String>) {
        Symbols::open(&self.images)
    }

    /// The facts of a kind.
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (u64, &'a [String])> {
        let of_kind = self.facts.iter().filter(move |(of, _, _)| of == kind);
        of_kind.map(|(_, address, rest)| (*address, &rest[..]))
    }
}

fn image(base: u64, rest: &[String]) -> ImageRecord {
    let [start, end] = [0, 1].map(|index| u64::from_str_radix(&rest[index], 16).unwrap());
    let path = rest[2].clone();
    let build_id = File::open(Path::new(&path)).map(|file| file.build_id().to_vec()).unwrap_or_default();
    ImageRecord { path, base, start, end, build_id }
}
