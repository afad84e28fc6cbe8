//! Where the calling thread is: in which team, at which piece of work, in which task.

use super::common::Common;
use super::league::League;
use super::reduction::Reductions;
use super::share::Share;
use super::sync;
use super::team::{Controls, Shape, Team};
use gondwana_node::{DispatchRing, Node};
use gondwana_tasks::Scope;
use std::cell::Cell;
use std::ops::Range;
use std::ptr::null_mut;
use std::time::Instant;

/// The OpenMP state of a thread, private to it.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// Null for a thread outside all regions that has not used it yet.
    pub team: *mut Team,
    pub shape: Shape,
    pub number: u32,
    pub controls: Controls,
    /// What they were when the region began.
    pub region_controls: Controls,
    pub league: League,
    /// The number of work-sharing constructs that the thread has met in its region.
    pub sequence: u64,
    /// What it was at the last barrier: no thread of the team is in those constructs any more.
    pub settled: u64,
    /// The dispatch buffers of its team, and how many of these constructs have had one, in all regions with the ring.
    pub ring: Option<DispatchRing>,
    pub dispatched: u64,
    /// What that was at the last barrier.
    pub dispatched_settled: u64,
    /// What its epoch was when the region began; 0 outside all regions.
    pub begun: u64,
    /// The part of the team's life, from one barrier to the next, in which it is. It is larger than those of earlier teams at the same
    /// address.
    pub epoch: u64,
    /// The function of the region.
    pub region: usize,
    /// Where the end of the last construct without a barrier returned to since the last barrier, if that is recorded; else 0.
    pub ended: usize,
    /// When it passed the last barrier, or came into the region, if that is recorded.
    pub since: Option<Instant>,
    /// Since then it has met work that is dealt out while it runs.
    pub dealt: bool,
    /// The piece of work that the thread is in.
    pub share: Option<Share>,
    /// The number of chunks that it has got of a static loop.
    pub trip: u64,
    /// Its last chunk of a loop whose iterations it got.
    pub chunk: (u64, u64),
    /// It is the turn of that chunk's ordered parts.
    pub has_turn: bool,
    /// Where it is among tasks.
    pub scope: Scope,
    /// The task is final: its children run at once.
    pub last: bool,
    /// Its number among the tasks of this thread, once it has asked for one by [`task`]; else 0.
    pub task: u64,
    /// The reductions in which the thread can take part, in shared memory; null for none.
    pub reductions: *mut Reductions,
    /// What the threads have in common in the piece of work that the thread is in; null for nothing.
    pub common: *mut Common,
}

thread_local! {
    static CONTEXT: Cell<Option<Context>> = const { Cell::new(None) };
}

/// The calling thread's context.
pub(super) fn get() -> Context {
    CONTEXT.get().unwrap_or_else(|| {
        let context = Context::new(null_mut(), Shape::ALONE, 0, Controls::at(0));
        CONTEXT.set(Some(context));
        context
    })
}

/// Replaces the calling thread's state.
pub(super) fn set(context: Context) {
    CONTEXT.set(Some(context));
}

/// Changes the calling thread's context.
pub(super) fn update(change: impl FnOnce(&mut Context)) {
    let mut context = get();
    change(&mut context);
    set(context);
}

/// The calling thread's team: itself alone outside all regions.
pub(super) fn team() -> *mut Team {
    let context = get();
    if !context.team.is_null() {
        return context.team;
    }
    let team = sync::create(Team::initial());
    set(Context { team, ..context });
    team
}

/// The number of the calling thread's task, which no other task of this thread has or had.
pub(super) fn task() -> u64 {
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    if get().task == 0 {
        LAST.set(LAST.get() + 1);
        update(|context| context.task = LAST.get());
    }
    get().task
}

impl Context {
    /// The context in which a thread begins a region.
    pub(super) fn new(team: *mut Team, shape: Shape, number: u32, controls: Controls) -> Self {
        Self {
            team,
            shape,
            number,
            controls,
            region_controls: controls,
            league: League::ALONE,
            sequence: 0,
            settled: 0,
            ring: None,
            dispatched: 0,
            dispatched_settled: 0,
            begun: 0,
            epoch: 0,
            region: 0,
            ended: 0,
            since: None,
            dealt: false,
            share: None,
            trip: 0,
            chunk: (0, 0),
            has_turn: false,
            scope: Scope::OUTSIDE,
            last: false,
            task: 0,
            reductions: null_mut(),
            common: null_mut(),
        }
    }

    /// The thread enters the next construct.
    pub(super) fn enter(&mut self, share: Share) {
        self.sequence += 1;
        // All threads of the team find the same: they pass the same barriers between the same constructs.
        let has_room = self.dispatched - self.dispatched_settled < DispatchRing::BUFFERS;
        let ring = self.ring.filter(|_| has_room && share.fits_buffer());
        let buffer = ring.map(|_| self.dispatched);
        if let (Some(node), Some(ring)) = (Node::current(), ring) {
            node.enter_dispatched(ring, self.dispatched, self.number, self.threads());
            self.dispatched += 1;
        }
        self.share = Some(Share { number: self.sequence, buffer, ..share });
        self.dealt |= share.is_dealt() && share.work.count > 1;
        (self.trip, self.chunk, self.has_turn) = (0, (0, 0), false);
    }

    /// The thread has passed a barrier of its team: no thread is in a construct before that any more. All may be in the one that they are in:
    /// compilers put a barrier at the beginning of a construct whose variable is both `firstprivate` and `lastprivate`.
    pub(super) fn settle(&mut self) {
        let inside = u64::from(self.share.is_some());
        let dispatched = u64::from(self.share.is_some_and(|share| share.buffer.is_some()));
        (self.settled, self.dispatched_settled) = (self.sequence - inside, self.dispatched - dispatched);
        self.epoch += 1;
    }

    /// How many threads the team has.
    pub(super) fn threads(&self) -> u32 {
        self.shape.threads
    }

    /// The nesting depth of regions; the second number counts only regions with several threads.
    pub(super) fn levels(&self) -> (u32, u32) {
        (self.shape.level, self.shape.active)
    }

    /// The thread's latest iterations of an ordered loop, as a range.
    pub(super) fn iterations(&self) -> Range<u64> {
        self.chunk.0..self.chunk.1
    }
}
