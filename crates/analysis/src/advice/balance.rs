//! Advice for constructs of OpenMP whose threads wait for one of them.

use super::{Advice, AdviceKind, percent};
use crate::{Analysis, Construct};
use gondwana_plan::Traffic;

/// Waiting that is less than this share of the time of all threads in constructs is left out.
const LEAST_SHARE: f64 = 0.05;

/// The slowest thread works at least so many times as long as the average of all.
const LEAST_EXCESS: f64 = 1.2;

/// The differences between the threads explain at least this share of the waiting; the rest is what a barrier and its exchange of
/// data cost, or another thread is the slowest each time.
const LEAST_EXPLAINED: f64 = 0.5;

/// Where all other threads together work no more than this share of the slowest one's time, it works alone.
const ALONE: f64 = 0.1;

/// The most constructs that are advised about.
const MOST: usize = 3;

/// Advice for the constructs at which threads waited longest, if the sums of their work show why.
pub(super) fn advise(analysis: &Analysis) -> impl Iterator<Item = Advice> {
    let spent = |construct: &Construct| construct.worked() + construct.waited();
    let all: f64 = analysis.constructs.iter().map(spent).sum();
    let stands_out = move |construct: &&Construct| {
        construct.waited() >= LEAST_SHARE * all && construct.uneven() >= LEAST_EXPLAINED * construct.waited()
    };
    analysis
        .constructs
        .iter()
        .filter(stands_out)
        .filter_map(move |construct| about(construct, all))
        .take(MOST)
}

fn about(construct: &Construct, all: f64) -> Option<Advice> {
    let slowest = construct.slowest()?;
    let others = construct.worked() - slowest.worked;
    let average = construct.worked() / construct.threads.len() as f64;
    if construct.threads.len() < 2 || slowest.worked < LEAST_EXCESS * average {
        return None;
    }
    let what = if construct.region { "region" } else { "construct" };
    let reason = format!(
        "threads waited {:.3} s ({} of their time in constructs) at the barrier that ends this {what}; thread {} on node {} worked \
         {:.3} s, the average of {} threads is {average:.3} s",
        construct.waited(),
        percent(construct.waited(), all),
        slowest.number,
        slowest.node,
        slowest.worked,
        construct.threads.len(),
    );
    let change = if others <= ALONE * slowest.worked {
        "one thread does nearly all of this work: divide it among the threads, or let the others go on (nowait)"
    } else if construct.dealt {
        "the work is dealt out while it runs and its pieces are too large: give the loop a smaller chunk, or divide sections"
    } else {
        "divide the iterations by their work: schedule(dynamic) with chunks of a millisecond or more, or schedule(static, 1) where the \
         work grows or falls along the loop"
    };
    Some(Advice {
        area: construct.name(),
        kind: AdviceKind::Balance,
        reason,
        saving: Traffic::default(),
        entries: vec![],
        change: change.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConstructThread;

    fn construct(work: &[f64], waited: f64, dealt: bool) -> Analysis {
        let threads = work.iter().zip(0..).map(|(&worked, number)| ConstructThread {
            number,
            node: u16::try_from(number % 2).unwrap(),
            executions: 10,
            worked,
            longest: worked / 5.0,
            waited: waited / work.len() as f64,
        });
        let threads = threads.collect();
        let (place, function) = ("a.c:7".to_owned(), "main".to_owned());
        let construct = Construct { place, function, region: false, dealt, executions: 10, threads };
        Analysis { constructs: vec![construct], ..Analysis::default() }
    }

    fn changes(analysis: &Analysis) -> Vec<String> {
        advise(analysis).map(|advice| advice.change).collect()
    }

    #[test]
    fn uneven_work_is_to_be_divided_anew() {
        let advice: Vec<_> = advise(&construct(&[1.0, 2.0, 3.0, 6.0], 12.0, false)).collect();
        assert_eq!(advice.len(), 1);
        assert_eq!((&advice[0].area[..], advice[0].kind), ("a.c:7 (main)", AdviceKind::Balance));
        let expected = "threads waited 12.000 s (50 % of their time in constructs) at the barrier that ends this construct; thread 3 \
            on node 1 worked 6.000 s, the average of 4 threads is 3.000 s";
        assert_eq!(advice[0].reason, expected);
        assert!(advice[0].change.contains("schedule(dynamic)"));
        assert!(changes(&construct(&[1.0, 2.0, 3.0, 6.0], 12.0, true))[0].contains("smaller chunk"));
        assert!(changes(&construct(&[0.1, 0.1, 0.1, 6.0], 18.0, false))[0].contains("one thread"));
    }

    #[test]
    fn what_is_not_certain_is_not_advised() {
        // Even work; hardly any waiting; more waiting than the work explains; one thread.
        let others = [
            construct(&[3.0, 3.0, 3.1], 2.0, false),
            construct(&[3.0, 3.0, 4.5], 0.1, false),
            construct(&[3.0, 3.0, 4.5], 20.0, false),
            construct(&[3.0], 3.0, false),
            Analysis::default(),
        ];
        assert!(others.iter().all(|analysis| changes(analysis).is_empty()));
    }
}
