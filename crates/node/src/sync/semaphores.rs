//! All semaphores of a run, for a child process: there each is the C library's, whose value is in the program's memory.

use crate::Node;
use crate::wire::Wire;
use gondwana_coherence::sync::Initialised;
use gondwana_topology::{Id, NodeId};

/// The most semaphores in one answer.
const MOST: usize = 8192;

/// Semaphores as bytes of a message.
pub(crate) fn encoded(semaphores: &[Initialised]) -> Vec<u8> {
    postcard::to_stdvec(semaphores).expect("semaphores can be encoded")
}

/// The semaphores in such bytes; none if they are damaged.
fn decoded(bytes: &[u8]) -> Vec<Initialised> {
    postcard::from_bytes(bytes).unwrap_or_default()
}

impl Node {
    /// The semaphores whose state is on this node, from an address on, at most [`MOST`], in the order of their addresses.
    pub(crate) fn semaphores_here(&self, from: u64) -> Vec<Initialised> {
        let mut all = self.core().semaphores();
        all.retain(|semaphore| semaphore.object.0 >= from);
        all.sort_unstable_by_key(|semaphore| semaphore.object);
        all.truncate(MOST);
        all
    }

    /// All semaphores of the run that threads have used, each as if it had just been initialised with its present value.
    #[must_use]
    pub fn all_semaphores(&'static self) -> Vec<Initialised> {
        (0..self.nodes()).map(NodeId::from_index).flat_map(|node| self.semaphores_of(node)).collect()
    }

    fn semaphores_of(&'static self, node: NodeId) -> Vec<Initialised> {
        let (mut all, mut from) = (vec![], 0);
        loop {
            let some = if node == self.me {
                self.privately(move || self.semaphores_here(from))
            } else {
                let bytes = self.ask_for_bytes(node, move |ticket| Wire::Semaphores { ticket, from });
                decoded(&bytes.unwrap_or_default())
            };
            let last = some.last().map(|semaphore| semaphore.object.0);
            all.extend_from_slice(&some);
            match last.filter(|&last| some.len() >= MOST && last >= from) {
                Some(last) => from = last + 1,
                None => return all,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_coherence::sync::Object;

    #[test]
    fn semaphores_travel_as_bytes() {
        let some =
            [1, 2, u64::MAX].map(|number| Initialised { object: Object(number), value: 7, stamp: !number });
        let bytes = encoded(&some);
        assert_eq!(decoded(&bytes), some);
        assert_eq!(decoded(&bytes[..bytes.len() - 1]), []);
        assert_eq!(decoded(&[]), []);
    }
}
