//! Sharers of a `csm` page that fetch it again after each notice are sent what has changed instead.

use gondwana_coherence::{Access, Csm, CsmOptions, Event, HomeRole, Page};
use gondwana_testbed::scripted::{SIZE, Scripted, Seen};

/// Updates in a row.
const UPDATES: u8 = 3;

fn nodes(count: u16, options: CsmOptions) -> Scripted {
    let mut nodes = Scripted::new(count, 1, |layout| Box::new(Csm::new(layout, options)));
    nodes.memories.iter_mut().for_each(|memory| memory.observed = false);
    nodes
}

fn with_updates() -> CsmOptions {
    CsmOptions { one_sided: false, updates: UPDATES, migrate: false, ..CsmOptions::default() }
}

/// One node writes its byte, and another one reads it after both have synchronised; what the reader was sent.
fn round(nodes: &mut Scripted, writer: usize, reader: usize) -> &'static str {
    nodes.write(writer, 0, 1);
    nodes.release(writer);
    nodes.acquire(reader);
    nodes.read(reader, 0, 1);
    assert_eq!(nodes.memories[reader].read(writer), nodes.memories[writer].read(writer), "it reads old data");
    let told = |(node, event, ..): Seen| match event {
        Event::UpdateReceived { .. } if usize::from(node) == reader => Some("update"),
        Event::NoticeReceived if usize::from(node) == reader => Some("notice"),
        _ => None,
    };
    let seen = nodes.take_seen();
    let count = |is: fn(Event) -> bool| seen.iter().filter(|(_, event, ..)| is(*event)).count();
    let received = count(|event| matches!(event, Event::UpdateReceived { .. }));
    assert_eq!(count(|event| matches!(event, Event::UpdateSent { .. })), received);
    seen.into_iter().find_map(told).unwrap_or("nothing")
}

#[test]
fn after_some_updates_there_is_a_notice() {
    let mut nodes = nodes(2, with_updates());
    let begun = (0..2).map(|_| round(&mut nodes, 0, 1)).collect::<Vec<_>>();
    // From then on the home keeps a twin, which tells what has changed.
    assert_eq!(begun, ["nothing", "notice"]);
    for _ in 0..4 {
        for _ in 0..UPDATES {
            assert_eq!(round(&mut nodes, 0, 1), "update");
        }
        assert_eq!(round(&mut nodes, 0, 1), "notice");
    }
}

/// Releases at which it has not changed make it an ordinary page again.
#[test]
fn a_page_that_the_home_writes_now_and_then_is_updated_too() {
    let mut nodes = nodes(2, CsmOptions { updates: 100, ..with_updates() });
    (0..3).for_each(|_| _ = round(&mut nodes, 0, 1));
    for _ in 0..5 {
        (0..CsmOptions::default().keep + 1).for_each(|_| nodes.release(0));
        assert!(!nodes.memories[0].has_twin(Page(0)));
        assert_eq!(round(&mut nodes, 0, 1), "update");
    }
}

#[test]
fn who_does_not_read_any_more_is_told_nothing_after_the_notice() {
    let mut nodes = nodes(2, with_updates());
    (0..3).for_each(|_| _ = round(&mut nodes, 0, 1));
    let told: Vec<_> = (0..2 * UPDATES)
        .map(|_| {
            nodes.write(0, 0, 1);
            nodes.release(0);
            nodes.acquire(1);
            nodes.take_seen().iter().filter(|(node, ..)| *node == 1).count()
        })
        .collect();
    assert_eq!(told, [1, 1, 2, 0, 0, 0], "two updates are left, and a notice is given up");
}

#[test]
fn diffs_go_on_to_those_who_read_them() {
    let mut nodes = nodes(3, with_updates());
    nodes.read(0, 0, 1);
    let told: Vec<_> = (0..12).map(|_| round(&mut nodes, 1, 2)).collect();
    let periods = told.iter().skip_while(|&&told| told != "update").copied().collect::<Vec<_>>();
    assert_eq!(periods[..4], ["update", "update", "update", "notice"], "{told:?}");
}

#[test]
fn unreleased_writes_survive_an_update() {
    let mut nodes = nodes(2, CsmOptions { updates: 100, ..with_updates() });
    (0..3).for_each(|_| _ = round(&mut nodes, 0, 1));
    for value in 1..=3 {
        nodes.write(1, 0, 1);
        assert_eq!(round(&mut nodes, 0, 1), "update");
        assert_eq!(nodes.memories[1].read(1), value);
        nodes.release(1);
        assert_eq!(nodes.memories[0].read(1), value, "the home has both");
        nodes.acquire(0);
    }
}

/// A home that moved with the diff of a writer would not know of the sharer that keeps its copy.
#[test]
fn the_home_does_not_move_while_a_sharer_gets_updates() {
    let mut nodes = nodes(3, CsmOptions { migrate: true, ..with_updates() });
    nodes.write(0, 0, 1);
    let told: Vec<_> = (0..20).map(|_| round(&mut nodes, 1, 2)).collect();
    assert!(told.contains(&"update"), "{told:?}");
    for _ in 0..10 {
        nodes.write(1, 0, 1);
        nodes.release(1);
    }
    let homes: Vec<_> =
        (0..3).filter(|&node| nodes.call(node, |it, _| it.home_role(Page(0))) == HomeRole::Home).collect();
    assert_eq!(homes, [1], "once nobody else reads, it moves");
}

#[test]
fn the_home_moves_where_it_was_asked_to_though_a_sharer_gets_updates() {
    for changes in [true, false] {
        let mut nodes = nodes(3, with_updates());
        nodes.write(0, 0, 1);
        let told: Vec<_> = (0..3).map(|_| round(&mut nodes, 1, 2)).collect();
        assert!(told.contains(&"update"), "{told:?}");
        nodes.place(1, 0, 1, 1);
        nodes.finish();
        if changes {
            nodes.write(1, 0, 1);
        } else {
            nodes.touch(1, 0, 1, Access::Write);
        }
        nodes.release(1);
        assert_eq!(nodes.call(1, |it, _| it.home_role(Page(0))), HomeRole::Home, "changes: {changes}");
    }
}

#[test]
fn a_page_is_served_as_it_was_released() {
    let mut nodes = nodes(2, with_updates());
    (0..2).for_each(|_| _ = round(&mut nodes, 0, 1));
    assert_eq!((0..UPDATES).map(|_| round(&mut nodes, 0, 1)).last(), Some("update"));
    // The next release sends a notice. Meanwhile the home writes on, and sets the byte back.
    nodes.write(0, 0, 1);
    nodes.release(0);
    let released = nodes.memories[0].read(0);
    nodes.memories[0].write(0, released + 7);
    nodes.acquire(1);
    nodes.read(1, 0, 1);
    assert_eq!(nodes.memories[1].read(0), released);
    nodes.memories[0].write(0, released);
    nodes.memories[0].write(SIZE - 1, 9);
    nodes.release(0);
    nodes.acquire(1);
    nodes.read(1, 0, 1);
    assert_eq!((nodes.memories[1].read(0), nodes.memories[1].read(SIZE - 1)), (released, 9));
}

/// A monitor sees at faults who reads.
#[test]
fn while_a_monitor_observes_there_are_none() {
    let mut nodes = nodes(3, with_updates());
    nodes.memories.iter_mut().for_each(|memory| memory.observed = true);
    nodes.write(0, 0, 1);
    for _ in 0..10 {
        assert_ne!(round(&mut nodes, 0, 2), "update");
        assert_ne!(round(&mut nodes, 1, 2), "update");
    }
}

#[test]
fn readers_that_can_read_memory_get_none() {
    let mut nodes = nodes(2, CsmOptions { one_sided: true, ..with_updates() });
    for _ in 0..10 {
        assert_ne!(round(&mut nodes, 0, 1), "update");
    }
}

fn beside_memory() -> CsmOptions {
    CsmOptions { one_sided: true, ..with_updates() }
}

/// Two nodes that can read each other's memory write one page and meet at a barrier; the home, node 0, writes so many `bytes`, or
/// none. What the other one is told, and how many copies it takes.
fn exchange(nodes: &mut Scripted, bytes: usize) -> (&'static str, u64) {
    let copies = |nodes: &mut Scripted| nodes.call(1, |machine, _| machine.counters().page_transfers);
    let before = copies(nodes);
    if bytes > 0 {
        nodes.write(0, 0, 1);
    }
    for address in [2, 3].into_iter().take(bytes.saturating_sub(1)) {
        let old = nodes.memories[0].read(address);
        nodes.memories[0].write(address, old + 1);
    }
    nodes.write(1, 0, 1);
    (0..2).for_each(|node| nodes.arrive(node));
    (0..2).for_each(|node| nodes.acquire(node));
    (0..2).for_each(|node| nodes.read(node, 0, 1));
    let frames = [0, 1].map(|node| (0..SIZE).map(|at| nodes.memories[node].read(at)).collect::<Vec<_>>());
    assert_eq!(frames[0], frames[1], "one has old data");
    let told = nodes.take_seen().into_iter().find_map(|(node, event, ..)| match event {
        Event::UpdateReceived { .. } if node == 1 => Some("update"),
        Event::NoticeReceived if node == 1 => Some("notice"),
        _ => None,
    });
    (told.unwrap_or("nothing"), copies(nodes) - before)
}

#[test]
fn what_both_write_between_barriers_is_exchanged() {
    let mut nodes = nodes(2, beside_memory());
    let told: Vec<_> = (0..20).map(|_| exchange(&mut nodes, 1)).collect();
    let first = told.iter().position(|&told| told == ("update", 0)).expect("there are updates");
    assert!(first < 5, "{told:?}");
    assert!(told[first..].iter().all(|&told| told == ("update", 0)), "diffs show who uses them: {told:?}");
}

#[test]
fn what_is_longer_than_half_a_page_is_read_instead() {
    let mut nodes = nodes(2, beside_memory());
    (0..20).for_each(|_| _ = exchange(&mut nodes, 1));
    for _ in 0..10 {
        assert_eq!(exchange(&mut nodes, 3), ("notice", 1));
    }
    assert_eq!((0..5).map(|_| exchange(&mut nodes, 1)).last(), Some(("update", 0)));
}

#[test]
fn who_does_not_write_any_more_reads_again() {
    let mut nodes = nodes(2, beside_memory());
    (0..20).for_each(|_| _ = exchange(&mut nodes, 1));
    let alone = |nodes: &mut Scripted| {
        nodes.write(0, 0, 1);
        nodes.arrive(0);
        nodes.acquire(1);
        nodes.read(1, 0, 1);
        assert_eq!(nodes.memories[1].read(0), nodes.memories[0].read(0));
        nodes.take_seen().iter().filter(|(_, event, ..)| matches!(event, Event::UpdateSent { .. })).count()
    };
    let updates: Vec<_> = (0..12).map(|_| alone(&mut nodes)).collect();
    assert_eq!(updates[usize::from(UPDATES)..], [0; 9], "{updates:?}");
}

#[test]
fn a_byte_that_is_set_back_while_a_copy_is_taken_is_corrected() {
    let mut nodes = nodes(2, beside_memory());
    (0..20).for_each(|_| _ = exchange(&mut nodes, 1));
    for value in 100..110 {
        // More than half of the page, so that the other node copies it itself, while the home writes on.
        (0..SIZE).filter(|&at| at != 1).for_each(|at| nodes.memories[0].write(at, value));
        nodes.arrive(0);
        nodes.memories[0].write(3, 1);
        nodes.acquire(1);
        nodes.read(1, 0, 1);
        nodes.memories[0].write(3, value);
        nodes.write(1, 0, 1);
        (0..2).for_each(|node| nodes.arrive(node));
        (0..2).for_each(|node| nodes.acquire(node));
        nodes.read(1, 0, 1);
        assert_eq!(nodes.memories[1].read(3), value);
    }
}
