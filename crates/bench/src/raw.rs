//! The rings between nodes by themselves.

use gondwana_fabric::{DEFAULT_RING_BYTES, SegmentError, ShmFabric, ShmSegment, raw};
use gondwana_topology::NodeId;

/// Round trips in one measurement.
const ROUNDS: usize = 5_000;

/// Round trips before it, which touch the rings for the first time.
const WARM_UP: usize = 500;

/// Median and minimum of raw round trips over the rings of this computer, in nanoseconds: a short request, and an answer
/// of `bulk_bytes` bytes. Both ends are awake.
pub(crate) fn round_trip(bulk_bytes: usize) -> Result<raw::RoundTrip, String> {
    let both = || -> Result<_, SegmentError> {
        let segment = ShmSegment::create(2, DEFAULT_RING_BYTES)?;
        Ok((ShmFabric::attach(&segment, NodeId(0), 2)?, ShmFabric::attach(&segment, NodeId(1), 2)?))
    };
    let (asker, answerer) = both().map_err(|error| error.to_string())?;
    let _cold = raw::ping_pong(&asker, &answerer, bulk_bytes, WARM_UP);
    raw::ping_pong(&asker, &answerer, bulk_bytes, ROUNDS).ok_or_else(|| "no rounds".to_owned())
}
