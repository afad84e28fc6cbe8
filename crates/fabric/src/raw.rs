//! Measures a fabric without a protocol above it: the lower bound for protocol figures.

use crate::{Fabric, Polling};
use gondwana_topology::NodeId;
use std::time::{Duration, Instant};

/// Head of a request; any that a protocol sends is at least as long.
const HEAD: [u8; 24] = [0; 24];

/// How long the round trips of one measurement took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The shortest.
    pub min: Duration,
    /// The median.
    pub median: Duration,
}

impl RoundTrip {
    /// Of these times; `None` if there are none.
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        Some(Self { min: *times.first()?, median: times[times.len() / 2] })
    }
}

/// Answers `rounds` requests of [`measure`] with `bulk_bytes` bytes each, spinning between them.
pub fn answer(fabric: &dyn Fabric, bulk_bytes: usize, rounds: usize) {
    let page = vec![0x5a; bulk_bytes];
    let _polling = Polling::begin(fabric);
    let mut answered = 0;
    while answered < rounds {
        let taken = fabric.poll(&mut |from, head, _| {
            fabric.send(from, head, &[(&page).into()]).expect("the answer is as short as the request");
        });
        answered += taken;
        if taken == 0 {
            std::hint::spin_loop();
        }
    }
    // The last answer may be waiting for room.
    while fabric.unsent() > 0 {
        fabric.poll(&mut |_, _, _| {});
    }
}

/// Sends `rounds` short requests to a node that runs [`answer`], each after the answer to the one before, and
/// times them. The answer's bulk data is copied out, as a page would be. Returns `None` for no rounds.
#[must_use]
pub fn measure(fabric: &dyn Fabric, to: NodeId, rounds: usize) -> Option<RoundTrip> {
    let mut page = Vec::new();
    let mut times = Vec::with_capacity(rounds);
    let _polling = Polling::begin(fabric);
    for _ in 0..rounds {
        let start = Instant::now();
        fabric.send(to, &HEAD, &[]).expect("the request is short and the peer exists");
        let copy_out = &mut |_: NodeId, _: &[u8], bulk: &[u8]| {
            page.clear();
            page.extend_from_slice(bulk);
        };
        while fabric.poll(copy_out) == 0 {
            std::hint::spin_loop();
        }
        times.push(start.elapsed());
    }
    RoundTrip::of(times)
}

/// Raw round trips between two fabrics of this process: a short request from `asker`, `bulk_bytes` bytes back.
#[must_use]
pub fn ping_pong(
    asker: &dyn Fabric,
    answerer: &dyn Fabric,
    bulk_bytes: usize,
    rounds: usize,
) -> Option<RoundTrip> {
    std::thread::scope(|scope| {
        scope.spawn(|| answer(answerer, bulk_bytes, rounds));
        measure(asker, answerer.node(), rounds)
    })
}
