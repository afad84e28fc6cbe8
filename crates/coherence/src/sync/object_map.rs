use super::Object;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map that is asked on the way of every message about a mutex: one or two cache misses, where a tree has one for each
/// level. Nobody outside chooses the addresses of objects to do harm, so the hash need not be a secret.
pub(super) type ObjectMap<V> = HashMap<Object, V, BuildHasherDefault<ObjectHasher>>;

/// Hashes an [`Object`], which is one word.
#[derive(Default)]
pub(super) struct ObjectHasher(u64);

impl Hasher for ObjectHasher {
    fn write_u64(&mut self, word: u64) {
        self.0 = scatter(self.0 ^ word);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Mixes an address into 64 bits of which all depend on it. Mutexes lie at all kinds of strides, so one multiplication
/// alone is not enough.
#[inline]
pub(super) fn scatter(address: u64) -> u64 {
    let mut hash = (address ^ address >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^= hash >> 32;
    hash.wrapping_mul(0xD6E8_FEB8_6659_FD93)
}
