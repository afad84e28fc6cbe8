//! What is measured, beside which bound, and how good it should be.

use super::programs::{OnNodes, Programs};
use super::samples::Samples;
use super::{child, raw};
use gondwana_console::columns;
use gondwana_launcher::run::options::Fabric;
use std::fmt;

/// The name under which each runner notes how long its process took from start to end.
const WALL: &str = "wall";

/// The name under which workloads' own times are noted: of the part that threads work on, without what comes before and
/// after it.
const WORK: &str = "work";

/// Something that runs and leaves samples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Runner {
    /// A program, natively or on nodes.
    Program {
        /// The executable.
        name: &'static str,
        /// Its arguments.
        arguments: &'static [&'static str],
        /// A workload, not a program made for measuring: what it prints is its result.
        app: bool,
        /// On how many nodes, and how they talk; `None`: natively.
        on: Option<(u16, Fabric)>,
        /// Nothing becomes common to the nodes: what is measured is how it is copied.
        copies: bool,
    },
    /// Raw round trips with answers of so many bytes: over the rings, or over a socket with encryption.
    RoundTrip(Fabric, usize),
    /// So many bytes over a raw socket with encryption.
    Stream(usize),
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { name, arguments, on, copies, .. } => {
                write!(f, "{name}")?;
                arguments.iter().try_for_each(|argument| write!(f, " {argument}"))?;
                match on {
                    Some((nodes, fabric)) => {
                        write!(f, " on {nodes} nodes over {}", fabric.name())?;
                        if *copies { write!(f, ", nothing common") } else { Ok(()) }
                    }
                    None => write!(f, ", natively"),
                }
            }
            Self::RoundTrip(fabric, bytes) => {
                write!(f, "raw round trip over {}, {bytes} bytes", fabric.name())
            }
            Self::Stream(bytes) => write!(f, "{bytes} bytes over a raw socket"),
        }
    }
}

impl Runner {
    /// The workload that it runs, if that is what it does.
    pub(crate) fn app(&self) -> Option<&'static str> {
        match self {
            Self::Program { name, app: true, .. } => Some(name),
            _ => None,
        }
    }

    /// True for a workload that has been over soon.
    pub(crate) fn is_short(&self, so_far: Option<&Result<Samples, String>>) -> bool {
        const SOON: u64 = 300_000_000;
        let Some(Ok(samples)) = so_far.filter(|_| self.app().is_some()) else { return false };
        samples.summary(WALL).is_some_and(|wall| wall.median < SOON)
    }

    /// Runs once and adds what was measured.
    pub(crate) fn run(&self, programs: &Programs, samples: &mut Samples) -> Result<(), String> {
        match self {
            Self::RoundTrip(fabric, bytes) => {
                let trip = raw::round_trip(*fabric, *bytes)?;
                samples.add_time(WALL, trip.median);
                Ok(())
            }
            Self::Stream(bytes) => {
                samples.add_time(WALL, raw::stream(*bytes)?);
                Ok(())
            }
            Self::Program { name, arguments, app, on, copies } => {
                let on = on.map(|(nodes, fabric)| OnNodes {
                    fabric: Some(fabric.name()),
                    copies: *copies,
                    ..OnNodes::new(nodes)
                });
                let mut command = programs.command(name, arguments, *app, on)?;
                let finished = child::run(&mut command, programs.folder(), child::STUCK)?;
                samples.add_time(WALL, finished.wall);
                let measured = match app {
                    true => own_time(&finished.stderr).map(|work| samples.add(WORK, work)).is_some(),
                    false => samples.add_lines(&finished.stdout),
                };
                if measured { Ok(()) } else { Err("printed something that is not a measurement".to_owned()) }
            }
        }
    }
}

/// What a workload says of its own time, in nanoseconds.
pub(crate) fn own_time(said: &str) -> Option<u64> {
    let seconds: f64 = said.lines().find_map(|line| line.strip_prefix("time: "))?.parse().ok()?;
    Some(columns::to_whole(seconds * 1e9))
}

/// Samples of one name that one runner leaves.
#[derive(Clone, Debug)]
pub(crate) struct FigureSeries {
    /// Who leaves them.
    pub runner: Runner,
    /// Their name.
    pub name: &'static str,
}

/// How good a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// At most so many times the bound.
    Times(f64),
    /// At least such a part of the bound's speed.
    Speed(f64),
    /// At most so many nanoseconds.
    AtMost(u64),
    /// None of its own: shown for comparison of speeds.
    None,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// What is measured.
    pub what: &'static str,
    /// Where the values come from.
    pub measured: FigureSeries,
    /// What the computer itself could do: the sum of these. Empty if nothing compares.
    pub bound: Vec<FigureSeries>,
    /// The bound in words.
    pub bound_what: &'static str,
    /// How good it should be.
    pub target: Target,
}

impl Figure {
    /// Everybody who runs for this figure, the bound first.
    pub(crate) fn runners(&self) -> impl Iterator<Item = Runner> {
        self.bound.iter().chain([&self.measured]).map(|series| series.runner.clone())
    }
}

fn native(runner: &'static str, name: &'static str) -> FigureSeries {
    let runner = Runner::Program { name: runner, arguments: &[], app: false, on: None, copies: false };
    FigureSeries { runner, name }
}

fn app(name: &'static str, arguments: &'static [&'static str], on: Option<(u16, Fabric)>) -> FigureSeries {
    FigureSeries { runner: Runner::Program { name, arguments, app: true, on, copies: false }, name: WORK }
}

fn whole(app: FigureSeries) -> FigureSeries {
    FigureSeries { name: WALL, ..app }
}

/// All figures of nodes that talk like this, in the order of the table.
pub(crate) fn all(fabric: Fabric) -> Vec<Figure> {
    let on = OnFabric(fabric);
    let mut all = on.pages();
    all.extend(on.synchronisation());
    all.extend(on.objects());
    all.extend(on.sharing());
    all.extend(on.releases());
    all.push(Figure {
        name: "start",
        what: "an empty program, from start to end",
        measured: on.two("empty", WALL),
        bound: vec![native("empty", WALL)],
        bound_what: "natively",
        target: Target::AtMost(100_000_000),
    });
    all.extend(on.workloads());
    all
}

/// What is measured of nodes that talk like this.
#[derive(Clone, Copy)]
struct OnFabric(Fabric);

impl OnFabric {
    fn two(self, name: &'static str, series: &'static str) -> FigureSeries {
        let on = Some((2, self.0));
        let runner = Runner::Program { name, arguments: &[], app: false, on, copies: false };
        FigureSeries { runner, name: series }
    }

    /// Of what nodes copy or send, and would have in common otherwise.
    fn two_copying(
        self,
        name: &'static str,
        arguments: &'static [&'static str],
        series: &'static str,
    ) -> FigureSeries {
        let on = Some((2, self.0));
        let runner = Runner::Program { name, arguments, app: false, on, copies: true };
        FigureSeries { runner, name: series }
    }

    fn round_trip(self, bytes: usize) -> FigureSeries {
        FigureSeries { runner: Runner::RoundTrip(self.0, bytes), name: WALL }
    }

    /// One of two things for shared memory and for TCP.
    fn either<T>(self, shm: T, tcp: T) -> T {
        match self.0 {
            Fabric::Shm => shm,
            Fabric::Tcp => tcp,
        }
    }

    fn pages(self) -> Vec<Figure> {
        let miss = || vec![native("faults", "local-fault"), self.round_trip(4096)];
        let miss_what = "a fault resolved locally + a raw round trip with 4 KiB";
        vec![
            Figure {
                name: "read-miss",
                what: "read of a page homed on the other node",
                measured: self.two_copying("pages", &[], "read-miss"),
                bound: miss(),
                bound_what: miss_what,
                target: Target::Times(1.5),
            },
            Figure {
                name: "write-miss",
                what: "first write to a page that is present and shared",
                measured: self.two_copying("pages", &[], "write-miss"),
                bound: vec![native("faults", "local-twin")],
                bound_what: "a fault resolved locally by copying the page",
                target: Target::Times(1.3),
            },
            Figure {
                name: "busy-read-miss",
                what: "the same read while the home's processor computes",
                measured: self.two_copying("pages", &[], "busy-read-miss"),
                bound: miss(),
                bound_what: miss_what,
                target: Target::AtMost(1_000_000),
            },
            Figure {
                name: "sequential-read",
                what: "256 MiB homed on the other node, read in order",
                measured: self.two_copying("stream", &[], "sequential-read"),
                bound: vec![self.either(
                    native("copy", "process-copy"),
                    FigureSeries { runner: Runner::Stream(256 << 20), name: WALL },
                )],
                bound_what: self
                    .either("a copy out of another process, read as it arrives", "as much over a raw socket"),
                target: Target::Speed(self.either(0.5, 0.7)),
            },
        ]
    }

    fn synchronisation(self) -> Vec<Figure> {
        let trips = Target::Times(self.either(2.0, 1.3));
        vec![
            Figure {
                name: "lock-again",
                what: "lock and unlock of a mutex that was here last",
                measured: self.two("locks", "lock-again"),
                bound: vec![native("locks", "lock-again")],
                bound_what: "natively",
                target: Target::AtMost(60),
            },
            Figure {
                name: "lock-many",
                what: "a million times the same, with 1,000 mutexes that come from the other node",
                measured: self.two("locks", "lock-many"),
                bound: vec![native("locks", "lock-many")],
                bound_what: "natively",
                target: Target::Times(self.either(2.0, 3.0)),
            },
            Figure {
                name: "lock-hand-over",
                what: "lock of a mutex that the other node had last, nothing dirty",
                measured: self.two("locks", "lock-hand-over"),
                bound: vec![self.round_trip(0)],
                bound_what: "a raw round trip",
                target: trips,
            },
            Figure {
                name: "token-hand-over",
                what: "the same by its token, as between computers",
                measured: self.two_copying("locks", &[], "lock-hand-over"),
                bound: vec![self.round_trip(0)],
                bound_what: "a raw round trip",
                target: trips,
            },
            Figure {
                name: "barrier",
                what: "barrier of two nodes, nothing dirty",
                measured: self.two("barrier", "barrier"),
                bound: vec![self.round_trip(0)],
                bound_what: "a raw round trip",
                target: trips,
            },
        ]
    }

    /// What rests where it is used, or passes between nodes.
    fn objects(self) -> Vec<Figure> {
        let wakes = |name, what, target| Figure {
            name,
            what,
            measured: self.two("objects", name),
            bound: vec![self.round_trip(0)],
            bound_what: "a raw round trip, twice a message",
            target,
        };
        vec![
            Figure {
                name: "rwlock-pairs",
                what: "lock for reading and unlock, by both nodes at a time",
                measured: self.two("objects", "rwlock-pairs"),
                bound: vec![native("objects", "rwlock-pairs")],
                bound_what: "natively",
                target: Target::Times(2.0),
            },
            wakes("semaphore-turn", "semaphore that the other node waits for", Target::None),
            wakes("condition-turn", "signal to a thread of the other node, with the mutex", Target::None),
            Figure {
                name: "queue-item",
                what: "8 bytes through a queue of 16 with a mutex and two conditions",
                measured: self.two("objects", "queue-item"),
                bound: vec![native("objects", "queue-item")],
                bound_what: "natively",
                target: self.either(Target::AtMost(4_000), Target::None),
            },
        ]
    }

    fn sharing(self) -> Vec<Figure> {
        let sharing = |name, what, target| Figure {
            name,
            what,
            measured: self.two("sharing", name),
            bound: vec![native("sharing", name)],
            bound_what: "natively",
            target: self.either(Target::AtMost(target), Target::None),
        };
        vec![
            sharing(
                "sharing-hand-over",
                "lock that the other node unlocks, and 64 bytes that it has written",
                4_000,
            ),
            sharing(
                "sharing-barrier",
                "barrier and read of 16 pages that the other node has written, a page",
                2_000,
            ),
            sharing("sharing-words", "write of every other word of 256 pages by each node, a page", 4_000),
        ]
    }

    fn releases(self) -> Vec<Figure> {
        let release = |name, what, pattern, target| Figure {
            name,
            what,
            measured: self.two_copying("release", pattern, "release"),
            bound: vec![self.round_trip(0)],
            bound_what: "a raw round trip, which 1,000 pages may share",
            target: Target::AtMost(target),
        };
        vec![
            release("release-bytes", "release of a page with 64 bytes changed", &["bytes"], 2_500),
            release("release-words", "release of a page with every other word changed", &["words"], 5_000),
            release("release-doubles", "release of a page with every double changed", &["doubles"], 5_000),
        ]
    }

    fn workloads(self) -> Vec<Figure> {
        type Arguments = &'static [&'static str];
        let on = |nodes| Some((nodes, self.0));
        let sizes: [([&str; 2], &str, &str, Arguments); 7] = [
            (["app-sor", "whole-sor"], "sor 3072 x 4096, 100 iterations", "sor", &["-p", "2", "-s", "paper"]),
            (["app-matmul", "whole-matmul"], "matmul 1024", "matmul", &["-p", "2", "-s", "paper"]),
            (["app-lu", "whole-lu"], "lu 2048, block 32", "lu", &["-p", "2", "-s", "paper"]),
            (
                ["app-lu-1024", "whole-lu-1024"],
                "lu 1024, block 32",
                "lu",
                &["-p", "2", "-n", "1024", "-b", "32"],
            ),
            (["app-gauss", "whole-gauss"], "gauss 2048", "gauss", &["-p", "2", "-s", "paper"]),
            (["app-tsp", "whole-tsp"], "tsp, 17 cities", "tsp", &["-p", "2", "-s", "paper"]),
            (
                ["app-jacobi", "whole-jacobi"],
                "jacobi 2048, 20 iterations",
                "jacobi",
                &["-p", "2", "-s", "paper"],
            ),
        ];
        let works = sizes.map(|([name, _], what, program, arguments)| Figure {
            name,
            what,
            measured: app(program, arguments, on(2)),
            bound: vec![app(program, arguments, None)],
            bound_what: "natively with as many threads",
            target: Target::Speed(0.85),
        });
        let wholes = sizes.map(|([_, name], _, program, arguments)| Figure {
            name,
            what: "the same from the start of the command to its end",
            measured: whole(app(program, arguments, on(2))),
            bound: vec![whole(app(program, arguments, None))],
            bound_what: "natively with as many threads",
            target: Target::None,
        });
        let crowd = Figure {
            name: "crowd-sor",
            what: "sor 3072 x 4096 on 8 nodes, whatever the number of processors",
            measured: app("sor", &["-p", "8", "-s", "paper"], on(8)),
            bound: vec![app("sor", &["-p", "2", "-s", "paper"], on(2))],
            bound_what: "the same on 2 nodes",
            target: Target::Times(3.0),
        };
        works.into_iter().chain([crowd]).chain(wholes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_bounds_come_first() {
        for fabric in [Fabric::Shm, Fabric::Tcp] {
            let all = all(fabric);
            assert_eq!(all.iter().map(|figure| figure.name).collect::<HashSet<_>>().len(), all.len());
            for figure in &all {
                assert_eq!(figure.runners().last(), Some(figure.measured.runner.clone()), "{}", figure.name);
            }
        }
    }
}
