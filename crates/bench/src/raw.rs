//! What carries messages between nodes, by itself.

use gondwana_fabric::raw::{RoundTrip, ping_pong};
use gondwana_fabric::{DEFAULT_RING_BYTES, SegmentError, ShmFabric, ShmSegment, socket};
use gondwana_launcher::run::options::Fabric;
use gondwana_topology::NodeId;
use std::time::Duration;

/// Round trips in one measurement.
const ROUNDS: usize = 5_000;

/// Round trips before it, which touch the memory for the first time.
const WARM_UP: usize = 500;

/// Median and minimum of raw round trips on this computer: a short request, and an answer of `bulk_bytes` bytes. Both ends are
/// awake.
pub(crate) fn round_trip(fabric: Fabric, bulk_bytes: usize) -> Result<RoundTrip, String> {
    let trip = match fabric {
        Fabric::Shm => over_rings(bulk_bytes).map_err(|error| error.to_string())?,
        Fabric::Tcp => socket::round_trip(bulk_bytes, WARM_UP + ROUNDS).map_err(|error| error.to_string())?,
    };
    trip.ok_or_else(|| "no rounds".to_owned())
}

fn over_rings(bulk_bytes: usize) -> Result<Option<RoundTrip>, SegmentError> {
    let segment = ShmSegment::create(2, DEFAULT_RING_BYTES)?;
    let asker = ShmFabric::attach(&segment, NodeId(0), 2)?;
    let answerer = ShmFabric::attach(&segment, NodeId(1), 2)?;
    let _cold = ping_pong(&asker, &answerer, bulk_bytes, WARM_UP);
    Ok(ping_pong(&asker, &answerer, bulk_bytes, ROUNDS))
}

/// The time that so many bytes take over a socket.
pub(crate) fn stream(bytes: usize) -> Result<Duration, String> {
    socket::stream(bytes).map_err(|error| error.to_string())
}
