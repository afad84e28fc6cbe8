use super::Object;
use serde::{Deserialize, Serialize};

/// The kinds of objects whose state rests with the node that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectKind {
    /// A condition variable.
    Condition,
    /// A word that threads wait at.
    Futex,
    /// A semaphore.
    Semaphore,
    /// A readers-writer lock.
    RwLock,
}

/// An object of one kind: objects of different kinds may succeed each other at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Its address.
    pub object: Object,
    /// Its kind.
    pub kind: ObjectKind,
}

impl ObjectKey {
    /// Address and kind as one word, other than 0. No address of a program has the highest bits.
    #[inline]
    pub(super) fn word(self) -> Object {
        Object(self.object.0 | (self.kind as u64) << 61)
    }
}

impl Object {
    /// The object of a kind at this address.
    #[inline]
    #[must_use]
    pub fn of_kind(self, kind: ObjectKind) -> ObjectKey {
        ObjectKey { object: self, kind }
    }
}
