//! What is run with the monitor and without it.

/// A program, and which time of it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonitorCase {
    /// What `--only` takes.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The executable.
    pub program: &'static str,
    /// Its arguments; workloads also get the number of threads, one for each node.
    pub arguments: &'static [&'static str],
    /// What counts.
    pub time: Time,
}

/// Which time of a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// All of it: the program is a workload.
    Whole,
    /// The median of the times that the program prints under this name.
    Printed(&'static str),
}

impl MonitorCase {
    /// True for whole workloads, false for a mechanism by itself.
    pub(super) fn is_workload(&self) -> bool {
        self.time == Time::Whole
    }
}

/// All of them: first what the monitor sees, one by one, then programs as people have them.
pub(super) fn all() -> Vec<MonitorCase> {
    let mechanism = |name, what, program, arguments| MonitorCase {
        name,
        what,
        program,
        arguments,
        time: Time::Printed(if program == "release" { program } else { name }),
    };
    let workload =
        |name, what, arguments| MonitorCase { name, what, program: name, arguments, time: Time::Whole };
    vec![
        mechanism("read-miss", "read of a page homed on the other node", "pages", &[]),
        mechanism("write-miss", "first write to a page that is present and shared", "pages", &[]),
        mechanism("release-words", "release of a page with every other word changed", "release", &["words"]),
        mechanism("lock-hand-over", "lock of a mutex that the other node had last", "locks", &[]),
        mechanism("allocation", "malloc and free of 64 bytes", "allocate", &[]),
        // A second or two each on two processors. Of a short run beginning and end are more than 1 %; of a long one
        // there are fewer pairs in the same time, and the computer's mood changes between the two.
        workload("sor", "3072 x 4096, 150 iterations", &["-s", "paper", "-i", "150"]),
        workload("jacobi", "2048 x 2048, 300 iterations", &["-n", "2048", "-i", "300"]),
        workload("lu", "2048 x 2048, blocks of 32", &["-n", "2048", "-b", "32"]),
        workload("gauss", "2048 equations", &["-n", "2048"]),
        workload("matmul", "1792 x 1792", &["-n", "1792"]),
        workload("fft3d", "64 x 64 x 64, 100 steps", &["-n", "64", "-i", "100"]),
        workload("em3d", "64,000 nodes, 800 iterations", &["-s", "paper", "-i", "800"]),
        workload("tsp", "17 cities", &["-s", "paper"]),
        workload("water-nsquared", "2,744 molecules, 20 steps", &["-m", "14", "-i", "20"]),
        workload("water-spatial", "4,096 molecules, 20 steps", &["-m", "16", "-i", "20"]),
        workload("barnes", "16,384 bodies, 12 steps", &["-n", "16384", "-i", "12"]),
        workload("fmm", "65,536 bodies, 15 steps", &["-s", "paper", "-i", "15"]),
        workload("pagerank", "a random graph of 262,144 nodes", &["-s", "paper", "-g", "18"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_times_are_what_the_programs_print() {
        let all = all();
        assert_eq!(all.iter().map(|case| case.name).collect::<HashSet<_>>().len(), all.len());
        let printed: Vec<_> = all.iter().filter(|case| !case.is_workload()).map(|case| case.time).collect();
        let names = ["read-miss", "write-miss", "release", "lock-hand-over", "allocation"];
        assert_eq!(printed, names.map(Time::Printed));
    }
}
