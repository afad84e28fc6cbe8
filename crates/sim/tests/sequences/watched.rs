//! What a monitor sees, event by event.

use crate::{Simulated, replication};
use gondwana_monitor::Direction::{In, Out};
use gondwana_monitor::{Direction, Kind};
use gondwana_sim::AtHome;

type Seen = (u8, Kind, Direction, u64, u16, u32);

impl Simulated {
    fn watched(mut self) -> Self {
        self.0.watch();
        self
    }

    /// Node, kind, direction, address, peer and bytes of each transaction since the last call.
    fn seen(&mut self) -> Vec<Seen> {
        let all = self.0.seen().into_iter();
        all.map(|(node, it)| (node, it.kind, it.direction, it.address, it.peer, it.bytes)).collect()
    }
}

#[test]
fn nothing_is_seen_within_a_node() {
    let mut machine = Simulated::new().watched();
    machine.write(0, 0);
    machine.read(1, 4);
    machine.write(1, 4);
    assert_eq!(machine.seen(), []);
}

#[test]
fn fetches_upgrades_and_what_the_others_suffer() {
    let mut machine = Simulated::new().watched();
    machine.read(0, 0);
    machine.read(2, 4);
    assert_eq!(machine.seen(), [(1, Kind::ColdRead, Out, 4, 0, 64)], "the home's memory supplies");
    machine.write(4, 8);
    let lost = |node, kind| (node, kind, In, 0, 2, 0);
    assert_eq!(
        machine.seen(),
        [
            lost(0, Kind::Invalidation),
            lost(1, Kind::Notice),
            lost(1, Kind::Invalidation),
            (2, Kind::ColdWrite, Out, 8, 0, 64),
        ]
    );
    machine.read(3, 12);
    let recall = (2, Kind::Recall, In, 0, 1, 0);
    assert_eq!(machine.seen(), [recall, (1, Kind::Read, Out, 12, 0, 64)], "another processor had lost it");
    machine.write(3, 12);
    let lost = |kind| (2, kind, In, 0, 1, 0);
    let upgrade = (1, Kind::Upgrade, Out, 12, 0, 64);
    assert_eq!(machine.seen(), [lost(Kind::Notice), lost(Kind::Invalidation), upgrade]);
    // The home has lost it, and gets it from the owner.
    machine.read(1, 0);
    assert_eq!(machine.seen(), [(1, Kind::Recall, In, 0, 0, 0), (0, Kind::Read, Out, 0, 1, 64)]);
    machine.write(1, 0);
    let lost = |kind| (1, kind, In, 0, 0, 0);
    let upgrade = (0, Kind::Upgrade, Out, 0, 1, 64);
    assert_eq!(machine.seen(), [lost(Kind::Notice), lost(Kind::Invalidation), upgrade]);
    assert_eq!(machine.causes().iter().sum::<u64>(), 5);
}

#[test]
fn lines_that_make_room_are_written_back_and_come_again() {
    let mut machine = Simulated::new().watched();
    // Lines 0, 2 and 4 are in one set of two ways; their home is node 0.
    machine.read(0, 0);
    for address in [0, 128, 256] {
        machine.write(2, address);
    }
    let cold = |address| (1, Kind::ColdWrite, Out, address, 0, 64);
    let home_lost = (0, Kind::Invalidation, In, 0, 1, 0);
    let back = (1, Kind::Diff, Out, 0, 0, 64);
    assert_eq!(machine.seen(), [home_lost, cold(0), cold(128), back, cold(256)].map(|seen| seen));
    machine.read(2, 0);
    let seen = machine.seen();
    assert!(seen.contains(&(1, Kind::ExcessRead, Out, 0, 0, 64)), "{seen:?}");
    assert!(seen.contains(&(1, Kind::Diff, Out, 128, 0, 64)), "{seen:?}");
}

#[test]
fn written_words_are_those_of_each_node() {
    let mut machine = Simulated::new().watched();
    // Before another node has the lines.
    machine.write(0, 4);
    machine.write(0, 4096 + 248);
    machine.write(2, 8);
    machine.read(0, 0);
    machine.write(3, 4);
    machine.read(2, 4096 + 252);
    machine.write(0, 4096 + 252);
    machine.write(0, 8192);
    machine.write(1, 12);
    let written = machine.0.written();
    assert_eq!(written.keys().copied().collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 0)]);
    let mut expected = [0; 16];
    expected[0] = 0b1000;
    assert_eq!(written[&(0, 0)], expected);
    assert_eq!(written[&(0, 1)][0], 1 << 63);
    assert_eq!(written[&(1, 0)][0], 0b110);
}

/// A page moves: what nodes have written goes home before, its contents come to the new home, and nodes have had nothing of it.
#[test]
fn pages_that_move_are_seen() {
    let mut machine = replication::machine("").watched();
    machine.write(0, 0);
    machine.write(4, 64);
    replication::excess(&mut machine, 3);
    machine.seen();
    replication::daemon(&mut machine, 5);
    let back = (2, Kind::Diff, Out, 64, 0, 64);
    let moved = (1, Kind::Prefetched, Out, 0, 0, 1024);
    assert_eq!(machine.seen(), [back, moved]);
    machine.read(2, 0);
    assert_eq!(machine.seen(), [], "it is the home");
    machine.read(0, 0);
    machine.read(4, 64);
    let cold = |node, address| (node, Kind::ColdRead, Out, address, 1, 64);
    assert_eq!(machine.seen(), [cold(0, 0), cold(2, 64)]);
    let used = machine.0.used_at_home();
    assert_eq!(used.keys().copied().collect::<Vec<_>>(), [(0, 0), (1, 0)]);
    assert_eq!((used[&(0, 0)].writes, used[&(1, 0)]), (1, AtHome { reads: 1, ..AtHome::default() }));
}

/// What a replica gives to its node crosses nowhere, and a node that has a replica loses a copy.
#[test]
fn what_replicas_have_is_a_copy() {
    let mut machine = replication::machine("migrations = 0").watched();
    machine.read(0, 0);
    replication::excess(&mut machine, 2);
    replication::daemon(&mut machine, 0);
    machine.seen();
    machine.read(2, 0);
    assert_eq!(machine.seen(), [(1, Kind::ExcessRead, Out, 0, 0, 64)], "the system took it from the caches");
    machine.read(3, 0);
    // The replica alone has it.
    for processor in [2, 3] {
        for line in [2, 4] {
            machine.read(processor, line * 64);
        }
    }
    machine.seen();
    machine.write(0, 0);
    let lost = |kind| (1, kind, In, 0, 0, 0);
    let upgrade = (0, Kind::Upgrade, Out, 0, 1, 0);
    assert_eq!(machine.seen(), [lost(Kind::Notice), lost(Kind::Invalidation), upgrade]);
}

#[test]
fn what_homes_use_themselves_is_known() {
    let mut machine = Simulated::new().watched();
    machine.write(0, 0);
    machine.read(1, 64);
    machine.read(0, 4);
    machine.read(2, 4096);
    // Lines 0, 2 and 4 are in one set of two ways: the first one, which was written, goes.
    machine.write(0, 128);
    machine.write(0, 256);
    machine.write(3, 0);
    let used = machine.0.used_at_home();
    let first = AtHome { reads: 1, writes: 3, written_back: 1 };
    assert_eq!(
        used.into_iter().collect::<Vec<_>>(),
        [((0, 0), first), ((1, 1), AtHome { reads: 1, ..AtHome::default() })]
    );
}

#[test]
fn watching_changes_no_count_and_no_time() {
    let run = |mut machine: Simulated| {
        let mut times = vec![];
        for step in 0..2000_u64 {
            let processor = usize::try_from(step * 7 % 6).unwrap();
            let address = step * step * 52 % 2048 / 4 * 4;
            times.push(if step % 3 == 0 {
                machine.write(processor, address)
            } else {
                machine.read(processor, address)
            });
        }
        (times, machine.counters())
    };
    let (plain, watched) = (run(Simulated::new()), run(Simulated::new().watched()));
    assert_eq!(plain, watched);
}

#[test]
fn each_miss_of_another_node_is_one_fetch() {
    let mut machine = Simulated::new().watched();
    for step in 0..3000_u64 {
        let processor = usize::try_from(step * 5 % 6).unwrap();
        let address = step * step * 36 % 8192 / 4 * 4;
        if step % 4 == 0 {
            machine.write(processor, address)
        } else {
            machine.read(processor, address)
        };
    }
    let seen = machine.seen();
    let count = |is: &dyn Fn(Kind) -> bool| seen.iter().filter(|seen| is(seen.1)).count() as u64;
    let counters = machine.counters();
    let remote: u64 = counters.supplied[2..5].iter().sum();
    let waited = count(&|kind| kind.is_fetch() || kind == Kind::Upgrade);
    assert!(remote > 500 && counters.remote_upgrades > 5, "{counters:?}");
    assert_eq!(waited, remote + counters.remote_upgrades);
    assert_eq!(count(&|kind| kind == Kind::Diff), counters.written_back[1]);
    assert!(count(&|kind| kind == Kind::Invalidation) > 0);
}
