//! OpenMP's environment variables.

use super::affinity;
use super::allocators::{self, Handle};
use super::schedule::Schedule;
use gondwana_elf::loaded;
use gondwana_node::Node;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Levels of parallel regions that may have several threads each, if the environment does not limit them but allows
/// several.
pub(super) const MOST_LEVELS: u32 = 255;

/// How threads are to be bound to places, by the numbers that programs know the ways by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bind {
    False = 0,
    True = 1,
    Primary = 2,
    Close = 3,
    Spread = 4,
}

impl Bind {
    /// Reads what `OMP_PROC_BIND` may hold: a way for each level, of which the first counts.
    fn parse(text: &str) -> Option<Self> {
        let first = text.split(',').next().unwrap_or("").trim().to_ascii_lowercase();
        Some(match first.as_str() {
            "false" => Self::False,
            "true" => Self::True,
            "primary" | "master" => Self::Primary,
            "close" => Self::Close,
            "spread" => Self::Spread,
            _ => return None,
        })
    }

    /// As settings are shown.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::False => "FALSE",
            Self::True => "TRUE",
            Self::Primary => "MASTER",
            Self::Close => "CLOSE",
            Self::Spread => "SPREAD",
        }
    }
}

/// The settings of the whole run.
pub(super) struct Settings {
    /// The number of threads of a region, by level; the last number is for all deeper levels.
    pub threads: Vec<u32>,
    /// Whether a region may get fewer.
    pub dynamic: bool,
    /// How many levels of regions may have several threads.
    pub levels: u32,
    /// The schedule of `schedule(runtime)`.
    pub schedule: Schedule,
    /// The most threads.
    pub limit: u32,
    /// The largest priority of a task; priorities are hints, and all tasks are served alike.
    pub priority: u32,
    /// Whether `cancel` has an effect.
    pub cancellation: bool,
    /// The wish of `OMP_PROC_BIND`.
    pub bind: Bind,
    /// Places were asked for: the nodes are.
    pub has_places: bool,
    /// Each thread shows where it runs.
    pub display_affinity: bool,
    /// How it does so.
    pub affinity_format: String,
    /// Bytes of each stack, if they are not the system's choice.
    pub stack: Option<usize>,
    /// The default allocator.
    pub allocator: Handle,
    /// The program is one of clang's or Intel's compilers, whose library has other defaults.
    pub by_clang: bool,
}

/// The settings of the whole run.
pub(super) fn get() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        read(&|name| std::env::var(name).ok(), processors(), library() == Some(Library::Clang))
    })
}

/// Bytes of each stack that the program has set; 0 for none.
static STACK: AtomicUsize = AtomicUsize::new(0);

/// How large the stacks of new threads are to be, if anybody has said it.
pub(super) fn stack() -> Option<usize> {
    match STACK.load(Relaxed) {
        0 => get().stack,
        size => Some(size),
    }
}

/// The program says how large they are to be.
pub(super) fn set_stack(size: usize) {
    STACK.store(size, Relaxed);
}

/// The compilers' own libraries, which this one stands in for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    Gcc,
    /// That of clang and of Intel's compilers.
    Clang,
}

/// The library that the program was linked with: the first one that is loaded.
pub(super) fn library() -> Option<Library> {
    loaded::visit(|object| match object.file_name() {
        name if name.starts_with(b"libgomp.so") => ControlFlow::Break(Library::Gcc),
        name if name.starts_with(b"libomp") || name.starts_with(b"libiomp") => {
            ControlFlow::Break(Library::Clang)
        }
        _ => ControlFlow::Continue(()),
    })
}

/// The number of processors of the whole run.
pub(super) fn processors() -> u32 {
    match Node::current() {
        Some(node) => node.processors(),
        None => std::thread::available_parallelism()
            .map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
    }
}

/// Parses the variables; invalid ones are ignored, as in the compiler's own runtime.
fn read(variable: &dyn Fn(&str) -> Option<String>, processors: u32, by_clang: bool) -> Settings {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok().filter(|&number| number > 0);
    let truth = |name: &str| Some(variable(name)?.trim().eq_ignore_ascii_case("true"));
    let threads = variable("OMP_NUM_THREADS").and_then(|list| {
        let numbers = list.split(',').map(|one| one.trim().parse().ok().filter(|&number: &u32| number > 0));
        numbers.collect::<Option<Vec<_>>>()
    });
    let several = threads.as_ref().is_some_and(|list| list.len() > 1);
    let nested = truth("OMP_NESTED").unwrap_or(several);
    let said = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
    let places = said("OMP_PLACES").or_else(|| said("GOMP_CPU_AFFINITY")).is_some();
    let usual = if places { Bind::True } else { Bind::False };
    let bind = variable("OMP_PROC_BIND").and_then(|text| Bind::parse(&text)).unwrap_or(usual);
    Settings {
        bind,
        has_places: bind != Bind::False,
        display_affinity: truth("OMP_DISPLAY_AFFINITY").unwrap_or(false),
        affinity_format: said("OMP_AFFINITY_FORMAT").unwrap_or_else(|| affinity::usual(by_clang).to_owned()),
        threads: threads.unwrap_or_else(|| vec![processors]),
        dynamic: truth("OMP_DYNAMIC").unwrap_or(false),
        levels: variable("OMP_MAX_ACTIVE_LEVELS")
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(if nested { MOST_LEVELS } else { 1 }),
        schedule: variable("OMP_SCHEDULE")
            .and_then(|text| Schedule::parse(&text, by_clang))
            .unwrap_or(Schedule::usual(by_clang)),
        limit: number("OMP_THREAD_LIMIT").unwrap_or(u32::MAX),
        priority: number("OMP_MAX_TASK_PRIORITY").unwrap_or(0),
        cancellation: truth("OMP_CANCELLATION").unwrap_or(false),
        stack: variable("OMP_STACKSIZE").and_then(|text| bytes(&text)),
        allocator: variable("OMP_ALLOCATOR")
            .and_then(|text| allocators::parse(&text))
            .unwrap_or(allocators::USUAL),
        by_clang,
    }
}

/// A size, in kilobytes without a unit.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].trim() {
        "b" => 0,
        "" | "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.trim().parse::<usize>().ok()?.checked_shl(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &'static [(&str, &str)]) -> Settings {
        let find = |name: &str| variables.iter().find(|(other, _)| *other == name);
        read(&|name| find(name).map(|(_, value)| (*value).to_owned()), 6, false)
    }

    #[test]
    fn without_variables_each_processor_has_a_thread() {
        let settings = with(&[]);
        assert_eq!((settings.threads, settings.levels, settings.stack), (vec![6], 1, None));
        assert!(!settings.cancellation && with(&[("OMP_CANCELLATION", " TRUE")]).cancellation);
    }

    #[test]
    fn a_list_of_numbers_allows_nesting() {
        let settings =
            with(&[("OMP_NUM_THREADS", "4, 2"), ("OMP_STACKSIZE", "2M"), ("OMP_MAX_TASK_PRIORITY", "5")]);
        assert_eq!(settings.priority, 5);
        assert_eq!((settings.threads, settings.levels), (vec![4, 2], MOST_LEVELS));
        assert_eq!(settings.stack, Some(2 << 20));
    }

    #[test]
    fn places_are_asked_for_unless_threads_are_not_to_be_bound() {
        let bind = |variables| {
            let settings = with(variables);
            (settings.bind, settings.has_places)
        };
        assert_eq!(bind(&[]), (Bind::False, false));
        assert_eq!(bind(&[("OMP_PLACES", "cores")]), (Bind::True, true));
        assert_eq!(bind(&[("OMP_PROC_BIND", "Spread, close")]), (Bind::Spread, true));
        assert_eq!(bind(&[("OMP_PLACES", "cores"), ("OMP_PROC_BIND", "false")]), (Bind::False, false));
    }

    #[test]
    fn nonsense_is_as_if_unsaid() {
        let settings =
            with(&[("OMP_NUM_THREADS", "4,x"), ("OMP_STACKSIZE", "big"), ("OMP_SCHEDULE", "fair")]);
        assert_eq!((settings.threads, settings.stack), (vec![6], None));
        assert_eq!(settings.schedule, Schedule::usual(false));
    }
}
