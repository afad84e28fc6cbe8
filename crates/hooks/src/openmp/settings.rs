//! What the environment says, and what a thread may change of it.

use std::env;

/// How iterations are dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Static,
    Dynamic,
    Guided,
}

/// A schedule: its kind, and the iterations of a chunk; 0 if not given.
pub(super) type Schedule = (Kind, u64);

/// Internal control variables of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Controls {
    pub threads: usize,
    pub schedule: Schedule,
    /// Regions with more than one thread that may be in each other.
    pub levels: usize,
    pub dynamic: bool,
}

/// What they are at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub controls: Controls,
}

impl Settings {
    /// As the environment says; a thread on each processor otherwise.
    pub(super) fn read(processors: usize) -> Self {
        let variable = |name: &str| env::var(name).ok();
        let number =
            |name: &str| variable(name).and_then(|text| text.split(',').next()?.trim().parse::<usize>().ok());
        let is_true =
            |name: &str| variable(name).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
        let levels = number("OMP_MAX_ACTIVE_LEVELS");
        Self {
            controls: Controls {
                threads: number("OMP_NUM_THREADS").filter(|threads| *threads > 0).unwrap_or(processors),
                schedule: variable("OMP_SCHEDULE")
                    .and_then(|text| schedule(&text))
                    .unwrap_or((Kind::Dynamic, 1)),
                levels: levels.unwrap_or(if is_true("OMP_NESTED") { usize::MAX } else { 1 }),
                dynamic: is_true("OMP_DYNAMIC"),
            },
        }
    }
}

/// A schedule as a text, such as `guided,4`. A modifier before a colon changes nothing: chunks are dealt out in order.
fn schedule(text: &str) -> Option<Schedule> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.split_once(':').map_or(text.as_str(), |(_, text)| text.trim());
    let (kind, chunk) = text.split_once(',').map_or((text, None), |(kind, chunk)| (kind, Some(chunk)));
    let chunk = chunk.map_or(Some(0), |chunk| chunk.trim().parse().ok())?;
    match kind.trim() {
        "static" | "auto" => Some((Kind::Static, chunk)),
        "dynamic" => Some((Kind::Dynamic, chunk)),
        "guided" => Some((Kind::Guided, chunk)),
        _ => None,
    }
}
