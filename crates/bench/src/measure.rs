//! Measures the mechanisms by turns.

use crate::figures::{Figure, Runner};
use crate::programs::Programs;
use crate::samples::Samples;
use std::collections::HashMap;

/// How often each time what is over soon: a moment in which the computer serves others is most of it.
const TURNS: usize = 5;

/// What each runner has measured, or why it has not.
pub(crate) type Results = HashMap<Runner, Result<Samples, String>>;

/// Measures what the figures need, so many times.
pub(crate) fn measure(chosen: &[Figure], programs: &Programs, repetitions: usize) -> Results {
    // The bounds of a figure come directly before it; what several figures share runs once in each repetition.
    let mut order: Vec<Runner> = Vec::new();
    for runner in chosen.iter().flat_map(Figure::runners) {
        if !order.contains(&runner) {
            order.push(runner);
        }
    }
    let turns = if repetitions > 1 { TURNS } else { 1 };
    let mut results = Results::new();
    for repetition in 1..=repetitions {
        for runner in &order {
            eprintln!("gondwana: {repetition} of {repetitions}: {runner}");
            run_once(runner, programs, &mut results);
        }
        // By turns, like everything.
        let short: Vec<_> = order.iter().filter(|runner| runner.is_short(results.get(runner))).collect();
        for _ in 1..turns {
            short.iter().for_each(|runner| run_once(runner, programs, &mut results));
        }
    }
    results
}

fn run_once(runner: &Runner, programs: &Programs, results: &mut Results) {
    let so_far = results.entry(runner.clone()).or_insert_with(|| Ok(Samples::default()));
    // What has failed once is not tried again: it may have taken its time.
    if let Ok(samples) = so_far
        && let Err(why) = runner.run(programs, samples)
    {
        *so_far = Err(format!("{runner}: {why}"));
    }
}
