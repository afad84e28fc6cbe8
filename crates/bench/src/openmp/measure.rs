//! Running the program that measures constructs.

use crate::child::{self, STUCK};
use crate::programs::{OnNodes, Programs};
use crate::samples::Samples;
use gondwana_launcher::run::options::Fabric;

/// One way to run the program.
pub(super) struct Way {
    /// `None`: natively.
    pub fabric: Option<Fabric>,
    /// Nanoseconds by construct.
    pub samples: Samples,
    /// Why it was not measured.
    pub failed: Option<String>,
}

/// Measures natively and on nodes, by turns.
pub(super) fn measure(programs: &Programs, nodes: u16, fabrics: &[Fabric], rounds: usize) -> Vec<Way> {
    let fabrics = std::iter::once(None).chain(fabrics.iter().copied().map(Some));
    let mut ways: Vec<Way> =
        fabrics.map(|fabric| Way { fabric, samples: Samples::default(), failed: None }).collect();
    for round in 1..=rounds {
        eprintln!("gondwana: constructs of OpenMP: {round} of {rounds}");
        for way in ways.iter_mut().filter(|way| way.failed.is_none()) {
            way.failed = run(programs, nodes, way).err();
        }
    }
    ways
}

fn run(programs: &Programs, nodes: u16, way: &mut Way) -> Result<(), String> {
    let on = way.fabric.map(|fabric| OnNodes { fabric: Some(fabric.name()), ..OnNodes::new(nodes) });
    let mut command = programs.command("openmp", &[], false, on)?;
    command.env("OMP_NUM_THREADS", nodes.to_string());
    let ran = child::run(&mut command, programs.folder(), STUCK)?;
    match way.samples.add_lines(&ran.stdout) {
        true => Ok(()),
        false => Err("printed something else than figures".to_owned()),
    }
}
