//! Tests of the measuring functions.

use gondwana_fabric::raw;
use gondwana_topology::NodeId;

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

#[test]
fn round_trips_are_counted_and_timed() {
    for make in [support::shm, support::encrypted, support::plain] {
        let fabrics = make(2);
        let trip = raw::ping_pong(&*fabrics[0], &*fabrics[1], 4096, 100).unwrap();
        assert!(trip.min.as_nanos() > 0 && trip.min <= trip.median);
        let (asked, answered) = (fabrics[0].counters(), fabrics[1].counters());
        assert_eq!((asked.messages_sent, answered.messages_sent), (100, 100));
        assert_eq!(answered.bytes_sent, 100 * 4096 + asked.bytes_sent);
    }
    let fabrics = support::shm(2);
    assert_eq!(raw::measure(&*fabrics[0], NodeId(1), 0), None);
}
