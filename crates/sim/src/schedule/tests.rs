use super::*;
use crate::system_parts::SchedulerPolicy;

/// 10 ms.
const SLICE: Time = 10_000_000_000;

fn schedule(processors: usize) -> Schedule {
    Schedule::new(&SchedulerPart::default(), vec![0; processors], 0)
}

/// Two nodes of two processors; changing takes 5 ns.
fn with(policy: SchedulerPolicy) -> Schedule {
    let part = SchedulerPart { policy, switch: 5, imbalance: 1, period: 1, ..SchedulerPart::default() };
    Schedule::new(&part, vec![0, 0, 1, 1], 0)
}

#[test]
fn the_processor_with_the_least_time_runs() {
    let mut schedule = schedule(3);
    schedule.wake(1, 1, 50, None);
    schedule.wake(2, 2, 20, None);
    assert_eq!(schedule.next_time(), 20);
    schedule.leave(100, false);
    assert_eq!(schedule.choose(), Next::Run(2, 2, 20));
    schedule.leave(60, false);
    assert_eq!(schedule.choose(), Next::Run(1, 1, 50));
    schedule.stop(70, None);
    assert_eq!(schedule.choose(), Next::Run(2, 2, 60));
    schedule.stop(90, None);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 100));
    schedule.stop(110, None);
    assert_eq!(schedule.choose(), Next::Nobody);
}

#[test]
fn time_is_over_when_no_thread_is_before_its_end() {
    let mut schedule = schedule(2);
    schedule.wake(1, 1, Turn::LAST + 1, None);
    schedule.leave(Turn::LAST - 1, false);
    assert_eq!(schedule.choose(), Next::Run(0, 0, Turn::LAST - 1));
    schedule.stop(Turn::LAST, None);
    assert_eq!(schedule.choose(), Next::Over);
}

#[test]
fn threads_take_turns_on_a_processor() {
    let mut schedule = schedule(1);
    schedule.wake(1, 0, 5, None);
    schedule.leave(10, false);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 10), "its time is not up");
    assert!(!schedule.shares(10) && schedule.shares(SLICE));
    schedule.leave(SLICE, false);
    assert_eq!(schedule.choose(), Next::Run(1, 0, SLICE));
    schedule.leave(SLICE + 1, true);
    assert_eq!(schedule.choose(), Next::Run(0, 0, SLICE + 1));
    schedule.stop(SLICE + 2, None);
    assert_eq!(schedule.choose(), Next::Run(1, 0, SLICE + 2));
}

#[test]
fn a_deadline_comes_when_nobody_is_before_it() {
    let mut schedule = schedule(2);
    schedule.wake(1, 1, 10, None);
    schedule.stop(0, Some(40));
    assert_eq!(schedule.choose(), Next::Run(1, 1, 10));
    schedule.leave(50, false);
    assert_eq!(schedule.choose(), Next::TimedOut(0, 40));
    schedule.wake(0, 0, 40, None);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 40));
    schedule.stop(45, Some(90));
    schedule.wake(0, 0, 46, Some(90));
    assert_eq!(schedule.choose(), Next::Run(0, 0, 46), "the deadline is gone");
}

#[test]
fn a_thread_that_waits_gets_another_processor() {
    let mut schedule = with(SchedulerPolicy::Affinity);
    schedule.wake(1, 0, 100, None);
    schedule.leave(200, false);
    assert_eq!(schedule.choose(), Next::Run(1, 1, 100), "its own one is in use");
    schedule.stop(150, None);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 200));
    schedule.wake(1, 1, 250, None);
    schedule.wake(2, 1, 260, None);
    schedule.wake(3, 1, 270, None);
    schedule.wake(4, 1, 280, None);
    assert!(schedule.can_run(4, 1) && schedule.can_run(3, 1) && !schedule.can_run(5, 1));
    schedule.stop(300, None);
    // Thread 4 waits for all; processor 0 changes to it.
    let chosen: Vec<Next> = (0..4)
        .map(|_| {
            let next = schedule.choose();
            if let Next::Run(_, _, time) = next {
                schedule.stop(time, None);
            }
            next
        })
        .collect();
    let expected = [(1, 1, 250), (2, 2, 260), (3, 3, 270), (4, 0, 300 + 5000)];
    assert_eq!(chosen, expected.map(|(thread, processor, time)| Next::Run(thread, processor, time)));
    assert_eq!((schedule.choose(), schedule.done().switches), (Next::Nobody, 1));
}

#[test]
fn threads_of_a_node_take_turns_on_its_processors() {
    let mut schedule = with(SchedulerPolicy::Static);
    schedule.wake(1, 1, 0, None);
    schedule.wake(2, 0, 0, None);
    assert!(!schedule.shares(SLICE - 1) && schedule.shares(SLICE));
    schedule.leave(SLICE, false);
    assert_eq!(schedule.choose(), Next::Run(1, 1, 0));
    schedule.leave(SLICE + 10, false);
    assert_eq!(schedule.choose(), Next::Run(2, 0, SLICE + 5000));
    schedule.count_move(0, 1);
    schedule.count_move(1, 2);
    schedule.count_move(2, 2);
    assert_eq!(schedule.done(), Scheduling { switches: 2, moved: 1, moved_nodes: 1 });
}

#[test]
fn a_bound_thread_stays() {
    let mut schedule = with(SchedulerPolicy::Float);
    schedule.bind(1);
    assert_eq!(schedule.start(1, 0, 0), 0);
    schedule.wake(1, 0, 10, None);
    schedule.wake(2, 0, 20, None);
    schedule.leave(30, true);
    assert_eq!(schedule.choose(), Next::Run(2, 1, 20));
    schedule.stop(40, None);
    assert_eq!(schedule.choose(), Next::Run(1, 0, 30 + 5000));
}

#[test]
fn a_thread_moves_when_loads_are_compared() {
    let mut schedule = with(SchedulerPolicy::Dynamic);
    for thread in [1, 2] {
        schedule.wake(thread, 1, 0, None);
    }
    schedule.leave(500, false);
    assert_eq!(schedule.choose(), Next::Run(1, 1, 0));
    schedule.leave(2000, false);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 500), "not yet");
    schedule.leave(1500, false);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 1500), "thread 2 is on processor 2 now");
    schedule.leave(1600, false);
    assert_eq!(schedule.choose(), Next::Run(2, 2, 1500));
}

#[test]
fn a_thread_leaves_a_processor_that_it_may_not_have() {
    let mut schedule = schedule(3);
    schedule.allow(1, Allowed::new([1, 2]));
    assert_eq!((schedule.start(1, 0, 0), schedule.start(1, 2, 0)), (1, 2));
    assert!(schedule.must_leave(1, 0) && !schedule.must_leave(1, 1) && !schedule.must_leave(2, 0));
    schedule.wake(1, 1, 0, None);
    assert_eq!(schedule.start(1, 0, 0), 2, "the first has a thread");
    schedule.wake(2, 1, 5, None);
    assert!(schedule.withdraw(2, 1) && !schedule.withdraw(2, 1), "it waited");
    assert!(!schedule.withdraw(1, 1), "it runs");
}

#[test]
fn idle_times_are_those_of_the_processors_without_threads() {
    let mut schedule = schedule(2);
    schedule.wake(1, 1, 50, None);
    schedule.stop(70, Some(100));
    assert_eq!(schedule.choose(), Next::Run(1, 1, 50));
    schedule.stop(80, None);
    assert_eq!(schedule.choose(), Next::TimedOut(0, 100));
    schedule.wake(0, 0, 100, None);
    assert_eq!(schedule.choose(), Next::Run(0, 0, 100));
    let times = schedule.idle_times(120);
    assert_eq!(times, [IdleTimes { idle: 50 + 30 + 40, asleep: 30 + 20 }]);
}
