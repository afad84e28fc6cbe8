//! The programs, at sizes that take some tenths of a second natively on two processors.

use std::fmt;

/// A program with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppCase {
    /// What `--only` takes.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The executable.
    pub program: &'static str,
    /// What makes it this case, at every size.
    pub kind: &'static [&'static str],
    /// The size that is measured; without these arguments it is small. The number of threads comes beside.
    pub size: &'static [&'static str],
    /// What it has in common with others.
    pub group: Group,
}

/// How programs synchronise, and how finely they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Threads work on parts of their own between barriers.
    Phases,
    /// Locks for small data, task queues, pages that several threads write.
    Fine,
    /// OpenMP.
    OpenMp,
    /// C11 atomics.
    Atomics,
}

impl Group {
    /// All of them, in the order of the table.
    pub(super) const ALL: [Self; 4] = [Self::Phases, Self::Fine, Self::OpenMp, Self::Atomics];
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Phases => "phases",
            Self::Fine => "fine-grained",
            Self::OpenMp => "OpenMP",
            Self::Atomics => "atomics",
        })
    }
}

type Arguments = &'static [&'static str];

/// The arguments of a size that the program itself knows.
const LARGE: Arguments = &["-s", "paper"];

/// All of them, in the order of the table.
pub(super) fn all() -> Vec<AppCase> {
    let simple = |name, what, size, group| AppCase { name, what, program: name, kind: &[], size, group };
    let named = |name, what, program, kind, size, group| AppCase { name, what, program, kind, size, group };
    let phases: [(&str, &str, Arguments); 9] = [
        ("sor", "red-black relaxation, 3072 x 4096", &["-s", "paper", "-i", "40"]),
        ("jacobi", "Jacobi's method, 2048 x 2048", &["-n", "2048", "-i", "100"]),
        ("gauss", "2048 equations", &["-n", "2048"]),
        ("lu", "LU in blocks one after the other, 1536 x 1536", &["-n", "1536", "-b", "32"]),
        ("matmul", "product of matrices, 1024 x 1024", &["-n", "1024"]),
        ("fft3d", "3-D Fourier transforms, 64 x 64 x 64", &["-n", "64", "-i", "30"]),
        ("em3d", "waves on a graph of 64,000 nodes", &["-s", "paper", "-i", "200"]),
        ("pagerank", "PageRank of a graph of 65,536 nodes", &["-s", "paper", "-g", "16"]),
        ("tsp", "shortest tour through 17 cities", &["-s", "paper"]),
    ];
    let fine: [(&str, &str, Arguments); 10] = [
        ("barnes", "tree code with a lock for each cell, 16,384 bodies", &["-n", "16384", "-i", "3"]),
        ("fmm", "adaptive multipole method, 65,536 bodies", &["-s", "paper", "-i", "4"]),
        ("radiosity", "stealing task queues that make tasks, 8 boxes", LARGE),
        ("raytrace", "stealing tiles, a read-only scene of 60,000 balls", LARGE),
        ("volrend", "stealing tiles, ten frames of a cube of 160", LARGE),
        ("water-nsquared", "2,197 molecules, each pair", &["-m", "13", "-i", "4"]),
        ("water-spatial", "4,096 molecules, near pairs", &["-m", "16", "-i", "4"]),
        ("radix", "radix sort of 16 million keys", LARGE),
        ("fft", "six-step Fourier transforms of a million numbers", LARGE),
        ("cholesky", "sparse factorisation of a grid of 448 x 448", LARGE),
    ];
    let openmp: [(&str, &str); 7] = [
        ("omp-adi", "alternating directions, 64 x 64 x 64"),
        ("omp-wavefront", "sweeps by flags and flush, 144 x 144 x 144"),
        ("omp-cg", "conjugate gradients, 30,000 rows"),
        ("omp-multigrid", "multigrid, 128 x 128 x 128"),
        ("omp-fft3d", "3-D Fourier transforms, 128 x 128 x 128"),
        ("omp-sort", "bucket sort of 4 million keys"),
        ("omp-tasks", "recursive tasks, Fibonacci 30 and 11 queens"),
    ];
    let atomics: [(&str, &str); 5] = [
        ("delta-stepping", "shortest ways in a graph of 65,536 nodes"),
        ("components", "connected components of 262,144 nodes"),
        ("betweenness", "betweenness in a graph of 65,536 nodes"),
        ("hashtable", "hash table without locks, 4 million keys"),
        ("deque", "work-stealing deque, a tree of 9 million nodes"),
    ];
    let plain: Arguments = &["-l", "1"];
    let counted: Arguments = &["-r", "1"];
    let more = [
        named(
            "raytrace-counted",
            "ray tracing that counts its rays under one lock",
            "raytrace",
            counted,
            LARGE,
            Group::Fine,
        ),
        named("lu-plain", "LU on a plain array, 1536 x 1536", "lu", plain, &["-n", "1536"], Group::Fine),
        named(
            "ocean-plain",
            "multigrid ocean on plain arrays, 1024 x 1024",
            "ocean",
            &[],
            LARGE,
            Group::Fine,
        ),
        named("ocean-parts", "ocean, each thread's part contiguous", "ocean", plain, LARGE, Group::Fine),
    ];
    let phases = phases.into_iter().map(|(name, what, size)| simple(name, what, size, Group::Phases));
    let fine = fine.into_iter().map(|(name, what, size)| simple(name, what, size, Group::Fine));
    let openmp = openmp.into_iter().map(|(name, what)| simple(name, what, LARGE, Group::OpenMp));
    let atomics = atomics.into_iter().map(|(name, what)| simple(name, what, LARGE, Group::Atomics));
    phases.chain(fine).chain(more).chain(openmp).chain(atomics).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_every_group_has_programs() {
        let all = all();
        assert_eq!(all.iter().map(|case| case.name).collect::<HashSet<_>>().len(), all.len());
        for group in Group::ALL {
            assert!(all.iter().filter(|case| case.group == group).count() > 2, "{group}");
        }
    }
}
