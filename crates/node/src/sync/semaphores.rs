//! All semaphores of a run, for a child process: there each is the C library's, whose value is in the program's memory.

use crate::Node;
use crate::wire::Wire;
use gondwana_coherence::sync::{Initialised, Object};
use gondwana_topology::{Id, NodeId};

/// The most semaphores in one answer.
const MOST: usize = 8192;

/// Bytes of one of them.
const BYTES: usize = 24;

/// Semaphores as bytes of a message.
pub(crate) fn encoded(semaphores: &[Initialised]) -> Vec<u8> {
    let words = |semaphore: &Initialised| [semaphore.object.0, semaphore.value.into(), semaphore.stamp];
    semaphores.iter().flat_map(words).flat_map(u64::to_ne_bytes).collect()
}

/// The semaphores in such bytes.
fn decoded(bytes: &[u8]) -> impl Iterator<Item = Initialised> {
    let (words, _) = bytes.as_chunks::<8>();
    let (semaphores, _) = words.as_chunks::<{ BYTES / 8 }>();
    semaphores.iter().map(|semaphore| {
        let [object, value, stamp] = semaphore.map(u64::from_ne_bytes);
        Initialised { object: Object(object), value: u32::try_from(value).unwrap_or(0), stamp }
    })
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
                decoded(&bytes.unwrap_or_default()).collect()
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

    #[test]
    fn semaphores_travel_as_bytes() {
        let some =
            [1, 2, u64::MAX].map(|number| Initialised { object: Object(number), value: 7, stamp: !number });
        assert!(decoded(&encoded(&some)).eq(some));
        assert_eq!(encoded(&some).len(), some.len() * BYTES);
        assert_eq!(decoded(&[0; BYTES - 1]).count(), 0);
    }
}
