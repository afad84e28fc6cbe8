//! Iterations of dynamic loops that this node has claimed of the team's manager, and that its threads have not taken yet. A claim
//! is a message; where iterations are short, a node claims many at a time.

use super::sync;
use gondwana_locks::lock;
use gondwana_node::{Claim, Construct, Part};
use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Where what was claimed at a time is used up sooner, twice as much is claimed the next time; where it lasts eight times as
/// long, half.
const SHORT: Duration = Duration::from_micros(25);

/// For each thread of the team, the iterations that are left are at least so many claims, so that all threads end at the same time.
const CLAIMS: u64 = 2;

/// So many constructs are known at most, unless iterations of more are left.
const MOST: usize = 64;

/// The loop that a thread is in.
pub(super) struct Chunks {
    pub construct: Construct,
    /// All threads of the team are past the constructs up to this one.
    pub settled: u64,
    /// The iterations of the loop.
    pub total: u64,
    /// The least that a thread takes at a time.
    pub chunk: u64,
    /// It takes at least one of so many equal shares of what is left.
    pub shares: u64,
    /// How many threads the team has.
    pub threads: u64,
    /// The node may claim more than the thread takes.
    pub ahead: bool,
    /// The thread takes iterations from here on only: they come to each in order.
    pub after: u64,
    /// The thread's part, if it may take iterations in any order.
    pub part: Option<Part>,
}

/// What this node knows of a construct.
struct Claimed {
    construct: Construct,
    /// What no thread has taken, and of threads with parts the number of the one that claimed it.
    ranges: Vec<(Option<u32>, Range<u64>)>,
    /// The first iteration that was not claimed when this node claimed last. In a loop with parts, 0 until none were left.
    next: u64,
    /// The threads whose parts have been claimed.
    helpers: Vec<u32>,
    /// How many chunks it claims at a time.
    batch: u64,
    /// When it claimed last.
    since: Option<Instant>,
    /// It got less than it claimed, because few were left.
    cut: bool,
    /// It was cancelled: what is left may be lost.
    abandoned: bool,
}

static CLAIMED: Mutex<Vec<Claimed>> = Mutex::new(vec![]);

/// The next iterations of the calling thread; `None` if there are none.
pub(super) fn next(chunks: &Chunks) -> Option<Range<u64>> {
    let claim = match with(chunks, |claimed| claimed.take(chunks)) {
        Ok(taken) => return taken,
        Err(claim) => claim,
    };
    // Other threads of this node may take or claim meanwhile.
    let range = sync::claim(chunks.construct, chunks.settled, claim);
    with(chunks, |claimed| claimed.add(chunks, &claim, range))
}

/// A construct was cancelled.
pub(super) fn abandon(construct: Construct) {
    if let Some(claimed) = lock(&CLAIMED).iter_mut().find(|claimed| claimed.construct == construct) {
        claimed.abandoned = true;
    }
}

fn with<R>(chunks: &Chunks, act: impl FnOnce(&mut Claimed) -> R) -> R {
    let Chunks { construct, settled, .. } = *chunks;
    let mut all = lock(&CLAIMED);
    let place = all.iter().position(|claimed| claimed.construct == construct).unwrap_or_else(|| {
        let of_team = |claimed: &&Claimed| claimed.construct.team == construct.team;
        // Mostly one loop of a team is like the one before.
        let batch = all.iter().rfind(of_team).map_or(1, |last| last.batch);
        all.retain(|claimed| !of_team(&claimed) || claimed.construct.number > settled);
        if all.len() >= MOST {
            // Of teams that have ended; of others what they lose is asked again.
            all.retain(|claimed| !claimed.ranges.is_empty() && !claimed.abandoned);
        }
        all.push(Claimed::new(construct, batch));
        all.len() - 1
    });
    act(&mut all[place])
}

impl Claimed {
    fn new(construct: Construct, batch: u64) -> Self {
        Self {
            construct,
            ranges: vec![],
            next: 0,
            helpers: vec![],
            batch,
            since: None,
            cut: false,
            abandoned: false,
        }
    }

    /// Takes a chunk of what was claimed; if there is none, what to claim.
    fn take(&mut self, chunks: &Chunks) -> Result<Option<Range<u64>>, Claim> {
        // The first one: what a thread has left is where it has come to, so that one thread at least can take it.
        let number = chunks.part.map(|part| part.number);
        let helps = number.is_none_or(|number| self.helpers.contains(&number));
        let fits = |(_, (owner, range)): &(usize, &(Option<u32>, Range<u64>))| {
            range.start >= chunks.after && (helps || *owner == number)
        };
        let first = self.ranges.iter().enumerate().filter(fits).min_by_key(|(_, (_, range))| range.start);
        if let Some((place, _)) = first {
            let range = &mut self.ranges[place].1;
            let taken = range.start..range.end.min(range.start + chunks.chunk);
            range.start = taken.end;
            if range.is_empty() {
                self.ranges.remove(place);
            }
            return Ok(Some(taken));
        }
        if self.next >= chunks.total {
            return Ok(None);
        }
        let batch = if chunks.ahead { self.next_batch(chunks) } else { 1 };
        let least = chunks.chunk.saturating_mul(batch);
        Err(Claim { total: chunks.total, least, shares: chunks.shares, part: chunks.part })
    }

    /// How many chunks to claim now.
    fn next_batch(&mut self, chunks: &Chunks) -> u64 {
        let now = Instant::now();
        let lasted = self.since.replace(now).map(|since| now - since);
        let left = chunks.total - self.next;
        let most = match chunks.part {
            None => left / chunks.chunk / (CLAIMS * chunks.threads),
            // Its manager gives no more than half of what is left of a part.
            Some(_) => left / chunks.chunk / 2,
        };
        match lasted {
            // What is few because few are left says nothing of the next loop.
            Some(lasted) if lasted < SHORT && self.batch <= most && !self.cut => self.batch *= 2,
            Some(lasted) if lasted > 8 * SHORT => self.batch = (self.batch / 2).max(1),
            _ => {}
        }
        self.batch.min(most).max(1)
    }

    /// Iterations were claimed, of which the calling thread takes its part.
    fn add(&mut self, chunks: &Chunks, claim: &Claim, range: Range<u64>) -> Option<Range<u64>> {
        if chunks.part.is_none() || range.end == chunks.total {
            self.next = self.next.max(range.end);
        }
        if range.is_empty() {
            return None;
        }
        let number = chunks.part.map(|part| part.number);
        if let Some(part) = chunks.part {
            self.cut = range.end - range.start < claim.least;
            if !part.range(chunks.total).contains(&range.start) && !self.helpers.contains(&part.number) {
                self.helpers.push(part.number);
            }
        }
        let taken =
            if chunks.ahead { range.start..range.end.min(range.start + chunks.chunk) } else { range.clone() };
        if taken.end < range.end {
            self.ranges.push((number, taken.end..range.end));
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_node::Object;

    fn chunks(total: u64, chunk: u64) -> Chunks {
        let construct = Construct { team: Object(8), number: 1 };
        Chunks {
            construct,
            settled: 0,
            total,
            chunk,
            shares: u64::MAX,
            threads: 2,
            ahead: true,
            after: 0,
            part: None,
        }
    }

    /// What some threads of a node claim when nobody else does.
    fn add(claimed: &mut Claimed, chunks: &Chunks, range: Range<u64>) -> Option<Range<u64>> {
        let claim =
            Claim { total: chunks.total, least: range.end - range.start, shares: 1, part: chunks.part };
        claimed.add(chunks, &claim, range)
    }

    /// Takes all iterations of a loop as the only node; how often it claims.
    fn run(chunks: &Chunks, wait: Duration) -> usize {
        let (mut claimed, mut free, mut expected, mut claims) =
            (Claimed::new(chunks.construct, 1), 0_i64, 0, 0);
        loop {
            let taken = claimed.take(chunks).unwrap_or_else(|claim| {
                claims += 1;
                let range = claim.range(free);
                free = range.end.cast_signed();
                claimed.add(chunks, &claim, range)
            });
            claimed.since = Some(Instant::now().checked_sub(wait).unwrap());
            let Some(taken) = taken else { break };
            assert_eq!(taken.start, expected);
            assert!(taken.end - taken.start <= chunks.chunk);
            expected = taken.end;
        }
        assert_eq!(expected, chunks.total);
        claims
    }

    #[test]
    fn many_short_iterations_are_claimed_at_a_time() {
        assert!(run(&chunks(10_000, 3), Duration::ZERO) < 60);
        assert_eq!(run(&chunks(0, 3), Duration::ZERO), 0);
        assert_eq!(run(&chunks(7, 100), Duration::ZERO), 1);
    }

    #[test]
    fn threads_that_claim_parts_at_the_same_time_claim_no_more_than_there_is() {
        let part = Some(Part { number: 0, of: 2 });
        let chunks = Chunks { part, ..chunks(1000, 1) };
        let mut claimed = Claimed::new(chunks.construct, 1);
        for _ in 0..200 {
            claimed.since = Some(Instant::now());
            let claim = claimed.take(&chunks).unwrap_err();
            assert!((1..=500).contains(&claim.least), "{}", claim.least);
        }
    }

    #[test]
    fn long_iterations_are_claimed_one_by_one() {
        assert_eq!(run(&chunks(100, 1), 10 * SHORT), 100);
    }

    #[test]
    fn a_thread_gets_iterations_in_order() {
        let mut claimed = Claimed::new(Construct { team: Object(8), number: 1 }, 1);
        let late = Chunks { after: 20, ..chunks(100, 1) };
        assert_eq!(add(&mut claimed, &chunks(100, 1), 10..12), Some(10..11));
        assert!(claimed.take(&late).is_err(), "11 is before 20");
        assert_eq!(claimed.take(&chunks(100, 1)), Ok(Some(11..12)));
    }

    #[test]
    fn what_a_slow_thread_has_claimed_is_taken_by_it_at_least() {
        let mut claimed = Claimed::new(Construct { team: Object(8), number: 1 }, 1);
        // Another thread has claimed after this one, and was faster.
        assert_eq!(add(&mut claimed, &chunks(14, 1), 12..14), Some(12..13));
        assert_eq!(add(&mut claimed, &chunks(14, 1), 10..12), Some(10..11));
        assert_eq!(claimed.take(&Chunks { after: 11, ..chunks(14, 1) }), Ok(Some(11..12)));
        assert_eq!(claimed.take(&Chunks { after: 13, ..chunks(14, 1) }), Ok(Some(13..14)));
        assert_eq!(claimed.take(&Chunks { after: 14, ..chunks(14, 1) }), Ok(None));
    }

    #[test]
    fn a_thread_takes_of_others_when_it_has_done_its_part() {
        let mut claimed = Claimed::new(Construct { team: Object(8), number: 1 }, 1);
        let of = |number| Chunks { part: Some(Part { number, of: 2 }), ..chunks(100, 1) };
        assert_eq!(add(&mut claimed, &of(0), 0..3), Some(0..1));
        assert!(claimed.take(&of(1)).is_err(), "its own part may have some left");
        assert_eq!(add(&mut claimed, &of(1), 98..99), Some(98..99));
        assert!(claimed.take(&of(1)).is_err());
        // Nobody else has any of its part.
        assert_eq!(add(&mut claimed, &of(1), 40..41), Some(40..41));
        assert_eq!(claimed.take(&of(1)), Ok(Some(1..2)));
        assert_eq!(claimed.take(&of(0)), Ok(Some(2..3)));
        assert!(claimed.take(&of(0)).is_err());
        assert_eq!(add(&mut claimed, &of(0), 100..100), None);
        assert_eq!((claimed.take(&of(0)), claimed.take(&of(1))), (Ok(None), Ok(None)));
    }
}
