//! Keys of thread-specific data.

use crate::Node;
use gondwana_coherence::sync::Request;
use gondwana_page::to_usize;
use gondwana_topology::NodeId;

impl Node {
    /// `pthread_key_create`: the key.
    ///
    /// # Errors
    /// `EAGAIN`.
    pub fn key_create(&'static self, destructor: usize) -> Result<u32, i32> {
        let key = self.request_of(NodeId(0), Request::KeyCreate { destructor: destructor as u64 })?;
        u32::try_from(key).map_err(|_| libc::EAGAIN)
    }

    /// `pthread_key_delete`.
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn key_delete(&'static self, key: u32) -> Result<(), i32> {
        self.request_of(NodeId(0), Request::KeyDelete { key }).map(|_| ())
    }

    /// A key's destructor; `None` if it has none or is deleted.
    pub fn key_destructor(&'static self, key: u32) -> Option<usize> {
        self.request_of(NodeId(0), Request::KeyDestructor { key })
            .ok()
            .map(|address| to_usize(address.cast_unsigned()))
            .filter(|&address| address != 0)
    }
}
