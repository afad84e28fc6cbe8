//! The names that the program gives its data.

use crate::Node;
use gondwana_locks::lock;
use gondwana_recording::Name;
use std::sync::{Mutex, MutexGuard};

/// The most names that a node keeps.
const MOST: usize = 64 << 10;

/// Names in one chunk; a name has at most a few hundred bytes.
const IN_A_CHUNK: usize = 128;

/// Names that the program has given.
#[derive(Default)]
pub(super) struct GivenNames(Mutex<Vec<Name>>);

impl GivenNames {
    fn lock(&self) -> MutexGuard<'_, Vec<Name>> {
        lock(&self.0)
    }

    /// Writes the names from this index on; returns the index of the next.
    pub(super) fn write(&self, node: &Node, from: usize) -> usize {
        let names = self.lock();
        names[from..].chunks(IN_A_CHUNK).for_each(|names| node.put_record(&names.to_vec()));
        names.len()
    }
}

impl Node {
    /// Names the data in a range, for this and later recordings. False if the program has given too many names on
    /// this node.
    pub fn name_data(&self, start: usize, bytes: usize, name: &str) -> bool {
        let mut names = self.monitor.names.lock();
        if names.len() == MOST {
            return false;
        }
        names.push(Name { start: start as u64, end: (start + bytes) as u64, name: name.to_owned() });
        true
    }
}
