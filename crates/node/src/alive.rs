//! Signs of life between computers.
//!
//! TCP notices that a computer is gone only while something waits to be acknowledged. Threads that compute for hours
//! have no message on its way, and the kernel's own probes begin after a second at the earliest. So each node sends the
//! others a message from time to time. That the peer's *kernel* acknowledges it is enough; a node may be stopped, or too
//! busy to answer. Such a node is sent one message more than it has taken, so that they do not heap up.

use crate::Node;
use crate::boot::FabricBoot;
use crate::wire::Wire;
use gondwana_topology::NodeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often.
const PERIOD: Duration = Duration::from_millis(250);

/// From which nodes there was news since they were last sent a sign of life.
pub struct Heard(Box<[AtomicBool]>);

impl Heard {
    /// For nodes that may be on different computers; there is nothing to watch otherwise.
    pub fn new(fabric: &FabricBoot, nodes: u16) -> Self {
        let watched = match fabric {
            FabricBoot::Shm { .. } => 0,
            FabricBoot::Tcp { .. } => nodes,
        };
        Self((0..watched).map(|_| AtomicBool::new(true)).collect())
    }

    /// How often to call [`Node::give_signs_of_life`].
    pub fn period(&self) -> Option<Duration> {
        (!self.0.is_empty()).then_some(PERIOD)
    }

    /// There is news from a node.
    pub fn note(&self, from: NodeId) {
        // Mostly it is known already, and processors keep their copies of what nobody writes.
        if let Some(heard) = self.0.get(from.index()).filter(|heard| !heard.load(Ordering::Relaxed)) {
            heard.store(true, Ordering::Relaxed);
        }
    }
}

impl Node {
    /// Sends signs of life if it is time to; `last` is when that was done before.
    pub(crate) fn give_signs_of_life(&self, last: &mut Instant) {
        if last.elapsed() < PERIOD {
            return;
        }
        *last = Instant::now();
        for (number, heard) in self.heard.0.iter().enumerate() {
            let node = NodeId(number as u16);
            if node != self.me && heard.swap(false, Ordering::Relaxed) {
                self.core().ports.post(node, &Wire::Alive, &[]);
            }
        }
    }
}
