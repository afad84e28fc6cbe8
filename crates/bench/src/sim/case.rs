//! The programs that are simulated.

/// A program, its size and the machine that it runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimCase {
    /// How the table calls it.
    pub name: &'static str,
    /// Its executable.
    pub program: &'static str,
    /// Its text, if it is none of the workloads.
    pub source: Option<&'static str>,
    /// One of the machines that come with Gondwana.
    pub machine: &'static str,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// Its arguments for a run of milliseconds.
    pub small: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
}

impl SimCase {
    /// The workload to build, if it is one.
    pub(super) fn workload(&self) -> Option<&'static str> {
        self.source.is_none().then_some(self.program)
    }
}

/// All of them, in the order of the table.
pub(super) fn all() -> Vec<SimCase> {
    let parallel = |name, program, arguments, small, what| SimCase {
        name,
        program,
        source: None,
        machine: "wildfire-2x8",
        arguments,
        small,
        what,
    };
    vec![
        SimCase {
            name: "chase",
            program: "chase",
            source: Some(include_str!("../../../../tests/simulated/chase.c")),
            machine: "e6000-16",
            arguments: &["300"],
            small: &["1"],
            what: "pointers are followed in the first cache, by one thread",
        },
        SimCase {
            name: "lu-serial",
            program: "lu",
            source: None,
            machine: "e6000-16",
            arguments: &["-p", "1", "-n", "512"],
            small: &["-p", "1", "-n", "64"],
            what: "LU in blocks of a matrix of 512 x 512, by one thread",
        },
        parallel(
            "lu",
            "lu",
            &["-p", "16", "-n", "512"],
            &["-p", "4", "-n", "64"],
            "the same by 16 threads on two nodes",
        ),
        parallel(
            "sor",
            "sor",
            &["-p", "16", "-i", "40"],
            &["-p", "4", "-n", "64", "-i", "2"],
            "40 iterations of red-black SOR on the workload's grid, by 16 threads on two nodes",
        ),
        parallel(
            "fft",
            "fft",
            &["-p", "16", "-m", "16"],
            &["-p", "4", "-m", "8"],
            "FFT of 65,536 complex numbers, by 16 threads on two nodes",
        ),
        parallel(
            "radix",
            "radix",
            &["-p", "16", "-n", "262144"],
            &["-p", "4", "-n", "2048"],
            "radix sort of 262,144 keys, by 16 threads on two nodes",
        ),
    ]
}
