//! Single messages to an `sc` machine.

use gondwana_coherence::{Access, Outcome, Page, Sc, ScMessage, ScOptions, Violation};
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
        take(&mut cluster, &ScMessage::InvalidateAck { page: Page(0), kept: false }, &[]).unwrap();
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
        let (page, requester) = (Page(0), NodeId(2));
        let forward = ScMessage::Forward {
            page,
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
