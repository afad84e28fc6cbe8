//! Single messages to an `sc` machine.

use gondwana_coherence::{Access, HomeRole, Outcome, Page, Sc, ScMessage, ScOptions, Violation};
use gondwana_testbed::memory::encoded;
use gondwana_testbed::scripted::{SIZE, Scripted};
use gondwana_topology::NodeId;

/// The node that takes the messages.
const ME: usize = 1;
/// The manager of all pages.
const MANAGER: NodeId = NodeId(0);
const NODES: u16 = 4;

fn cluster() -> Scripted {
    Scripted::new(NODES, 8, |layout| Box::new(Sc::new(layout, ScOptions::default())))
}

fn take(cluster: &mut Scripted, message: &ScMessage, bulk: &[u8]) -> Result<(), Violation> {
    cluster.call(ME, |machine, env| machine.message(MANAGER, &encoded(message), bulk, env))
}

/// Page 0, to be written as soon as `acks` invalidations are acknowledged.
fn pages(acks: u32) -> ScMessage {
    let (first, manager) = (Page(0), MANAGER);
    ScMessage::Pages { first, asked: 1, served: 1, write: true, manager, untouched: false, acks, kept: false }
}

#[test]
fn a_page_is_written_when_every_other_copy_is_gone() {
    let mut cluster = cluster();
    assert_eq!(cluster.fault(ME, 0, Access::Write, 0), Outcome::Wait);
    take(&mut cluster, &pages(u32::from(NODES) - 1), &[0; SIZE]).unwrap();
    for _ in 1..NODES {
        assert_ne!(cluster.memories[ME].access[0], Access::Write);
        take(&mut cluster, &ScMessage::InvalidateAck { first: Page(0), count: 1, kept: false }, &[]).unwrap();
    }
    assert_eq!(cluster.memories[ME].access[0], Access::Write);
}

#[test]
fn more_acknowledgements_than_nodes_are_refused() {
    let refused = |message| Err(Violation::Unexpected { message, page: Page(0) });
    for acks in [u32::from(NODES), i32::MAX.cast_unsigned(), u32::MAX] {
        let mut cluster = cluster();
        assert_eq!(cluster.fault(ME, 0, Access::Write, 0), Outcome::Wait);
        assert_eq!(take(&mut cluster, &pages(acks), &[0; SIZE]), refused("Pages"));

        cluster.finish();
        assert_eq!(cluster.memories[ME].access[0], Access::Write);
        let (first, requester) = (Page(0), NodeId(2));
        let forward = ScMessage::Forward {
            first,
            count: 1,
            asked: 1,
            write: true,
            contents: true,
            acks,
            requester,
            slice: 1,
            kept: false,
        };
        assert_eq!(take(&mut cluster, &forward, &[]), refused("Forward"));
        assert_eq!(cluster.memories[ME].access[0], Access::Write);
    }
}

/// Whoever has seen no page of a run asks for a thousand, because pages that nobody has touched take no room in a message.
#[test]
fn an_answer_has_room_in_one_message() {
    let mut cluster = Scripted::new(2, 300, |layout| Box::new(Sc::new(layout, ScOptions::default())));
    cluster.write(0, 0, 300);
    assert_eq!(cluster.fault(1, 0, Access::Read, 299), Outcome::Wait);
    cluster.finish();
    let read = cluster.memories[1].access.iter().filter(|&&access| access == Access::Read).count();
    assert_eq!(read, 128);
    // What was not in the answer can be asked for again.
    cluster.write(1, 100, 100);
    assert_eq!(cluster.memories[1].access[199], Access::Write);
}

/// Checks that page 0 is managed by node 2 only, and that node 1 reads what was written last.
fn is_placed_on_node_2(cluster: &mut Scripted) {
    let home = |cluster: &mut Scripted, node| cluster.call(node, |machine, _| machine.home_role(Page(0)));
    assert_eq!(home(cluster, 2), HomeRole::Home);
    for node in [0, 1, 3] {
        assert_eq!(home(cluster, node), HomeRole::Elsewhere);
    }
    cluster.read(1, 0, 1);
    assert_eq!(cluster.memories[1].read(3), 1, "what node 3 has written");
}

#[test]
fn a_page_with_copies_has_the_home_that_a_policy_gives_it() {
    let mut cluster = cluster();
    cluster.write(3, 0, 1);
    for reader in [0, 1, 2] {
        cluster.read(reader, 0, 1);
    }
    cluster.place(1, 0, 1, 2);
    cluster.finish();
    is_placed_on_node_2(&mut cluster);
}

/// The former manager passes on what waited for it.
#[test]
fn nodes_that_wait_for_a_page_get_it_from_its_next_manager() {
    let mut cluster = cluster();
    cluster.write(3, 0, 1);
    cluster.read(2, 0, 1);
    cluster.place(0, 0, 1, 2);
    for (node, access) in [(1, Access::Read), (2, Access::Write), (0, Access::Write)] {
        assert_eq!(cluster.fault(node, 0, access, 0), Outcome::Wait);
    }
    cluster.finish();
    let mut resumed: Vec<_> = cluster.resumed.iter().map(|waiter| waiter.0).collect();
    resumed.sort_unstable();
    resumed.dedup();
    assert_eq!(resumed, [0, 1, 2, 3]);
    is_placed_on_node_2(&mut cluster);
}
