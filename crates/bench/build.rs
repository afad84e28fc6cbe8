//! Compiles the programs that `gondwana bench` runs: they become part of the command, so that whoever has it can measure
//! without a compiler.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    // Asked for at run time: a checkout that has been moved keeps the compiled build script of its old place.
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let sources = manifest.join("../../bench/programs");
    println!("cargo::rerun-if-changed={}", sources.display());
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let compiler =
        cc::Build::new().opt_level(2).debug(false).warnings(true).extra_warnings(true).get_compiler();
    for entry in fs::read_dir(&sources).expect("the programs' folder is part of the repository") {
        let source = entry.expect("folders can be read").path();
        if source.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let name = source.file_stem().expect("it has an extension");
        let mut command = compiler.to_command();
        command.args(["-std=c11", "-D_GNU_SOURCE", "-pthread"]);
        command.args((name == "openmp").then_some("-fopenmp"));
        command.arg("-o").arg(Path::new(&out).join(name)).arg(&source);
        let status = command.status();
        assert!(status.is_ok_and(|status| status.success()), "{command:?} has failed");
    }
}
