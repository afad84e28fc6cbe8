//! What the threads of a region are to do, as the thread that begins the region announces it.

use super::kmpc::fork::{self, Call};
use super::league::League;
use super::schedule::{Loop, Schedule};
use super::share::Share;
use super::team::{Controls, Shape, Team};
use gondwana_node::DispatchRing;
use gondwana_page::to_usize;
use libc::c_void;

/// What a thread must know to take part in a region.
#[derive(Clone, Copy)]
pub(super) struct Assignment {
    pub team: *mut Team,
    pub shape: Shape,
    /// The number of the last work-sharing construct of the team before the region, and of teams that had its address before.
    pub sequence: u64,
    /// The team's dispatch buffers, if it has some, and for how many constructs they have been used.
    pub ring: Option<DispatchRing>,
    pub dispatched: u64,
    pub function: usize,
    pub data: usize,
    pub controls: Controls,
    /// Where the thread is that begins the region.
    pub league: League,
    /// The work that the region begins with.
    pub first: Option<Share>,
    /// What the function is to call with which arguments, if it is that of clang's regions.
    pub call: Option<Call>,
}

/// How many words an assignment takes without a call.
const WORDS: usize = 27;

impl Assignment {
    /// As words, for threads of other nodes.
    pub(super) fn words(&self) -> Vec<u64> {
        let Self { team, shape, sequence, ring, dispatched, function, data, controls, league, first, call } =
            *self;
        let Controls { threads, dynamic, levels, schedule, limit, allocator } = controls;
        let (has_first, share) = (first.is_some(), first.unwrap_or_else(|| Share::of_sections(0)));
        let words: [u64; WORDS] = [
            team as u64,
            shape.threads.into(),
            shape.level.into(),
            shape.active.into(),
            shape.tasking.into(),
            sequence,
            ring.map_or(0, DispatchRing::number),
            dispatched,
            function as u64,
            data as u64,
            threads.into(),
            dynamic.into(),
            levels.into(),
            schedule.number().into(),
            schedule.chunk,
            limit.into(),
            allocator as u64,
            i64::from(league.team).cast_unsigned(),
            i64::from(league.teams).cast_unsigned(),
            has_first.into(),
            share.ordered.into(),
            share.schedule.number().into(),
            share.schedule.chunk,
            share.work.start,
            share.work.end,
            share.work.step,
            share.work.count,
        ];
        let call = call.iter().flat_map(Call::words);
        words.into_iter().chain(call).collect()
    }

    /// What [`Assignment::words`] gave.
    pub(super) fn from_words(words: &[u64]) -> Self {
        let parsed = words.split_first_chunk::<WORDS>().and_then(|(words, rest)| match rest {
            [] => Some((words, None)),
            rest => Some((words, Some(<&[u64; fork::WORDS]>::try_from(rest).ok()?))),
        });
        let Some((&words, call)) = parsed else {
            crate::report::fatal("OpenMP: an assignment of another version");
        };
        let [team, threads, level, active, tasking, sequence, ring, dispatched, function, data, rest @ ..] =
            words;
        let [
            next_threads,
            dynamic,
            levels,
            number,
            chunk,
            limit,
            allocator,
            league,
            leagues,
            has_first,
            rest @ ..,
        ] = rest;
        let [ordered, first_number, first_chunk, start, end, step, count] = rest;
        let small = |word: u64| u32::try_from(word).unwrap_or(u32::MAX);
        let signed = |word: u64| i32::try_from(word.cast_signed()).unwrap_or(0);
        let schedule = |number, chunk| Schedule::of(small(number), chunk).unwrap_or(Schedule::usual(false));
        let work = Loop { start, end, step, count };
        let share = Share::of_loop(work, schedule(first_number, first_chunk), ordered != 0);
        Self {
            team: team as *mut Team,
            shape: Shape {
                threads: small(threads),
                level: small(level),
                active: small(active),
                tasking: tasking != 0,
            },
            sequence,
            ring: DispatchRing::from_number(ring),
            dispatched,
            function: to_usize(function),
            data: to_usize(data),
            controls: Controls {
                threads: small(next_threads),
                dynamic: dynamic != 0,
                levels: small(levels),
                schedule: schedule(number, chunk),
                limit: small(limit),
                allocator: to_usize(allocator),
            },
            league: League { team: signed(league), teams: signed(leagues) },
            first: (has_first != 0).then_some(share),
            call: call.map(Call::from_words),
        }
    }

    /// The team has dispatch buffers, which have been used for so many constructs, or none.
    pub(super) fn use_ring(&mut self, ring: Option<(DispatchRing, u64)>) {
        (self.ring, self.dispatched) = (ring.map(|(ring, _)| ring), ring.map_or(0, |(_, used)| used));
    }

    /// The function that the compiler has made of the region.
    pub(super) fn body(&self) -> usize {
        self.call.as_ref().map_or(self.function, Call::microtask)
    }

    /// What the function is called with.
    pub(super) fn data(&self) -> *mut c_void {
        self.call.as_ref().map_or(self.data as *mut c_void, |call| std::ptr::from_ref(call).cast_mut().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Kind;
    use super::*;
    use std::ptr::without_provenance_mut;

    #[test]
    fn an_assignment_arrives_as_it_was_sent() {
        let sent = Assignment {
            team: without_provenance_mut(0x1000),
            shape: Shape { threads: 3, level: 2, active: 1, tasking: true },
            sequence: 7 << 32,
            ring: DispatchRing::from_number(3),
            dispatched: 70,
            function: 0x2000,
            data: 0x3000,
            controls: Controls {
                threads: 4,
                dynamic: true,
                levels: 5,
                schedule: Schedule { kind: Kind::Guided, chunk: 6, rising: true },
                limit: 9,
                allocator: 0x4000,
            },
            league: League { team: -1, teams: 8 },
            first: Some(Share::of_loop(
                Loop::signed(10, -10, -3),
                Schedule { kind: Kind::Auto, chunk: 9, rising: false },
                true,
            )),
            call: Some(Call::from_words(&std::array::from_fn(|index| index as u64))),
        };
        assert_eq!(Assignment::from_words(&sent.words()).words(), sent.words());
        assert_eq!(sent.words().len(), WORDS + fork::WORDS);
        let sent = Assignment { first: None, call: None, ..sent };
        let came = Assignment::from_words(&sent.words());
        assert!(came.first.is_none());
        assert_eq!(came.words(), sent.words());
        assert_eq!((came.shape.threads, came.league.team, came.controls.levels), (3, -1, 5));
    }
}
