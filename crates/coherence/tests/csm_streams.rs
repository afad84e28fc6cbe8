//! Pages of a long stream come in groups, and the next ones are asked for while a thread waits for one of them.

use gondwana_coherence::{Access, Csm, CsmMessage, CsmOptions, Encoded, Outcome};
use gondwana_testbed::scripted::Scripted;

/// Three nodes, of which node 0 has touched the first half of the pages and node 2 the others.
fn nodes(pages: u32) -> Scripted {
    let options = CsmOptions { one_sided: false, migrate: false, ..CsmOptions::default() };
    let mut nodes = Scripted::new(3, pages, |layout| Box::new(Csm::new(layout, options)));
    nodes.write(0, 0, pages / 2);
    nodes.write(2, pages / 2, pages / 2);
    nodes.resumed.clear();
    nodes
}

/// The first page and the number of pages of each request of node 1 that is under way.
fn asked(nodes: &Scripted) -> Vec<(u32, u32)> {
    let fetch = |message: &[u8]| match CsmMessage::decode(message) {
        Some(CsmMessage::Fetch { first, count, .. }) => Some((first.0, count)),
        _ => None,
    };
    let sent = nodes.under_way.iter().filter(|letter| letter.from == 1);
    sent.filter_map(|letter| fetch(&letter.message)).collect()
}

#[test]
fn a_stream_is_asked_for_in_groups() {
    let mut nodes = nodes(600);
    assert_eq!(nodes.fault(1, 0, Access::Read, 99), Outcome::Wait);
    assert_eq!(asked(&nodes), [(0, 32), (32, 32), (64, 32), (96, 4)]);
    (0..4).for_each(|_| assert!(nodes.deliver() && nodes.resumed.is_empty()));
    nodes.deliver();
    assert_eq!(nodes.resumed.len(), 1, "the thread goes on with the first group");
    assert_eq!(nodes.memories[1].access[32], Access::None);
    nodes.finish();
    assert!((0..100).all(|page| nodes.memories[1].access[page] == Access::Read));
    assert_eq!(nodes.memories[1].access[100], Access::None);
}

#[test]
fn a_thread_that_overtakes_a_stream_asks_for_what_follows() {
    let mut nodes = nodes(600);
    let _ = nodes.fault(1, 0, Access::Read, 127);
    nodes.under_way.clear();
    let _ = nodes.fault(1, 40, Access::Read, 127);
    assert_eq!(asked(&nodes), [(128, 32), (160, 8)]);
    let _ = nodes.fault(1, 41, Access::Read, 20);
    assert_eq!(asked(&nodes).len(), 2, "a short stream is expected to end");
}

/// What another node has, a stream that one node has made does not go on to.
#[test]
fn a_stream_ends_where_the_home_changes() {
    let mut nodes = nodes(200);
    nodes.read(1, 150, 1);
    let _ = nodes.fault(1, 20, Access::Read, 127);
    let _ = nodes.fault(1, 30, Access::Read, 127);
    let end = asked(&nodes).into_iter().map(|(first, count)| first + count).max();
    assert!(end.is_some_and(|end| end <= 150), "{end:?}");
}
