//! How the iterations of a loop are divided. Iterations are numbered from 0; pure arithmetic.

use std::ops::Range;

/// Ways to divide a loop, by the numbers that programs know them by.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Static = 1,
    Dynamic = 2,
    Guided = 3,
    Auto = 4,
}

/// The bit of a schedule's number that says `monotonic`.
const RISING: u32 = 1 << 31;

/// How a loop is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub kind: Kind,
    /// The chunk size; 0 for the default.
    pub chunk: u64,
    /// Each thread gets iterations in rising order.
    pub rising: bool,
}

impl Kind {
    /// A kind by its number.
    pub(super) fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Static,
            2 => Self::Dynamic,
            3 => Self::Guided,
            4 => Self::Auto,
            _ => return None,
        })
    }
}

impl Schedule {
    /// The schedule of `schedule(runtime)` where nobody has said one: what libgomp has, or clang's library.
    pub(super) fn usual(by_clang: bool) -> Self {
        let (kind, chunk) = if by_clang { (Kind::Static, 0) } else { (Kind::Dynamic, 1) };
        Self { kind, chunk, rising: false }
    }

    /// A schedule by its number.
    pub(super) fn of(number: u32, chunk: u64) -> Option<Self> {
        Some(Self { kind: Kind::of(number & !RISING)?, chunk, rising: number & RISING != 0 })
    }

    /// The number that programs know it by.
    pub(super) fn number(self) -> u32 {
        self.kind as u32 | if self.rising { RISING } else { 0 }
    }

    /// True if the iterations are dealt out while the loop runs.
    pub(super) fn is_dealt(self) -> bool {
        matches!(self.kind, Kind::Dynamic | Kind::Guided)
    }

    /// Reads what `OMP_SCHEDULE` may hold, such as `guided,4`. Clang's library knows two more names.
    pub(super) fn parse(text: &str, by_clang: bool) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let (modifier, text) = text.split_once(':').unwrap_or(("", &text));
        let (name, chunk) = text.split_once(',').unwrap_or((text, ""));
        let kind = match name.trim() {
            "static" => Kind::Static,
            "dynamic" => Kind::Dynamic,
            "guided" => Kind::Guided,
            "auto" => Kind::Auto,
            "static_steal" if by_clang => Kind::Dynamic,
            "trapezoidal" if by_clang => Kind::Guided,
            _ => return None,
        };
        let usual = match kind {
            Kind::Static => 0,
            Kind::Auto => u64::from(by_clang),
            Kind::Dynamic | Kind::Guided => 1,
        };
        let chunk = if chunk.is_empty() { usual } else { chunk.trim().parse().ok()? };
        let schedule = Self { kind, chunk, rising: false };
        let keeps = by_clang || schedule.is_dealt();
        Some(Self { rising: modifier.trim() == "monotonic" && keeps, ..schedule })
    }
}

impl std::fmt::Display for Schedule {
    /// As libgomp shows the setting: what is not usual is shown.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, usual) = match self.kind {
            Kind::Static => ("STATIC", 0),
            Kind::Dynamic => ("DYNAMIC", 1),
            Kind::Guided => ("GUIDED", 1),
            Kind::Auto => ("AUTO", 0),
        };
        if self.rising {
            formatter.write_str("MONOTONIC:")?;
        }
        match self.chunk {
            chunk if chunk == usual => formatter.write_str(name),
            chunk => write!(formatter, "{name},{chunk}"),
        }
    }
}

/// A loop: `count` iterations from `start` on, `step` apart, in arithmetic modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loop {
    pub start: u64,
    pub end: u64,
    pub step: u64,
    pub count: u64,
}

impl Loop {
    /// A loop over signed numbers, from `start` to before `end`.
    pub(super) fn signed(start: i64, end: i64, step: i64) -> Self {
        let up = step > 0;
        let any = if up { start < end } else { start > end };
        Self::new(up, start.cast_unsigned(), end.cast_unsigned(), step.cast_unsigned(), any)
    }

    /// A loop over unsigned numbers; `step` is negated if the loop runs down.
    pub(super) fn unsigned(up: bool, start: u64, end: u64, step: u64) -> Self {
        Self::new(up, start, end, step, if up { start < end } else { start > end })
    }

    fn new(up: bool, start: u64, end: u64, step: u64, any: bool) -> Self {
        let (distance, stride) = match up {
            true => (end.wrapping_sub(start), step),
            false => (start.wrapping_sub(end), step.wrapping_neg()),
        };
        let count = if any { (distance - 1) / stride.max(1) + 1 } else { 0 };
        Self { start, end, step, count }
    }

    /// The values from which and before which some iterations run.
    pub(super) fn values(&self, iterations: &Range<u64>) -> (u64, u64) {
        let value = |number: u64| self.start.wrapping_add(self.step.wrapping_mul(number));
        let end = if iterations.end == self.count { self.end } else { value(iterations.end) };
        (value(iterations.start), end)
    }
}

/// The chunk `trip` of thread `number` of `threads` in a static loop.
pub(super) fn fixed(count: u64, chunk: u64, threads: u64, number: u64, trip: u64) -> Option<Range<u64>> {
    let range = if chunk > 0 {
        let start = trip.checked_mul(threads)?.checked_add(number)?.checked_mul(chunk)?;
        start..start.saturating_add(chunk).min(count)
    } else {
        let (each, more) = (count / threads, count % threads);
        let start = number * each + number.min(more);
        if trip > 0 { 0..0 } else { start..start + each + u64::from(number < more) }
    };
    (range.start < range.end).then_some(range)
}

/// How many of the iterations that are left the next thread gets.
pub(super) fn next(kind: Kind, left: u64, chunk: u64, threads: u64) -> u64 {
    let chunk = chunk.max(1);
    if kind == Kind::Guided { left.div_ceil(threads).max(chunk).min(left) } else { chunk.min(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_counted_as_a_loop_would() {
        for (start, end, step) in [(0, 10, 3), (0, 9, 3), (5, 5, 1), (7, -8, -2), (-9, 9, 1), (3, 0, 1)] {
            let mut values = vec![];
            let mut at = start;
            while if step > 0 { at < end } else { at > end } {
                values.push(at);
                at += step;
            }
            assert_eq!(Loop::signed(start, end, step).count, values.len() as u64, "{start} {end} {step}");
        }
        assert_eq!(Loop::signed(i64::MIN, i64::MAX, 1).count, u64::MAX);
        assert_eq!(Loop::unsigned(false, 10, 0, 3u64.wrapping_neg()).count, 4);
    }

    #[test]
    fn the_last_values_end_where_the_loop_does() {
        let all = Loop::signed(0, 10, 3);
        assert_eq!(all.values(&(0..2)), (0, 6));
        assert_eq!(all.values(&(2..4)), (6, 10));
    }

    #[test]
    fn static_loops_deal_out_each_iteration_once() {
        for (count, chunk, threads) in [(10, 0, 4), (3, 0, 4), (10, 3, 2), (100, 7, 3), (0, 0, 2)] {
            let mut all = vec![];
            for number in 0..threads {
                for trip in 0.. {
                    let Some(range) = fixed(count, chunk, threads, number, trip) else { break };
                    all.extend(range);
                }
            }
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn guided_loops_deal_out_less_and_less() {
        let mut left = 100;
        let mut sizes = vec![];
        while left > 0 {
            sizes.push(next(Kind::Guided, left, 4, 4));
            left -= sizes[sizes.len() - 1];
        }
        assert_eq!(&sizes[..3], [25, 19, 14]);
        assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.iter().rev().skip(1).all(|&size| size >= 4));
    }

    #[test]
    fn schedules_are_read() {
        let schedule = |kind, chunk, rising| Some(Schedule { kind, chunk, rising });
        assert_eq!(Schedule::parse("guided,4", false), schedule(Kind::Guided, 4, false));
        assert_eq!(Schedule::parse("monotonic:STATIC", false), schedule(Kind::Static, 0, false));
        assert_eq!(Schedule::parse("Monotonic : dynamic", false), schedule(Kind::Dynamic, 1, true));
        assert_eq!(Schedule::parse("nonmonotonic:dynamic", false), schedule(Kind::Dynamic, 1, false));
        assert_eq!(Schedule::parse("dynamic,x", false), None);
        assert_eq!(Schedule::parse("auto", true), schedule(Kind::Auto, 1, false));
        assert_eq!(Schedule::parse("monotonic:static,5", true), schedule(Kind::Static, 5, true));
        assert_eq!(Schedule::parse("static_steal,5", true), schedule(Kind::Dynamic, 5, false));
        assert_eq!(Schedule::parse("static_steal,5", false), None);
        let shown = |text| Schedule::parse(text, false).map(|schedule| schedule.to_string());
        assert_eq!(shown("guided,4").as_deref(), Some("GUIDED,4"));
        assert_eq!(shown("dynamic").as_deref(), Some("DYNAMIC"));
        assert_eq!(shown("monotonic:dynamic,4").as_deref(), Some("MONOTONIC:DYNAMIC,4"));
        assert_eq!(Schedule::of(0x8000_0002, 5), schedule(Kind::Dynamic, 5, true));
        assert_eq!(Schedule::of(0x8000_0002, 5).map(Schedule::number), Some(0x8000_0002));
        assert_eq!(Schedule::of(5, 5), None);
    }
}
