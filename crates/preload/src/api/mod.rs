//! `gw_*` and `cg_*` on the nodes of a run: the machine behind the functions for C.
//!
//! The functions are those of `gondwana_api`, which this library exports too; it is found first, because it is
//! preloaded. They run on the program's stack and call the backend here, which makes system calls on a private stack:
//! the kernel cannot fault on shared memory.

mod cluster;
mod memory;
mod monitor;
mod processors;
mod threads;

use cluster::{Cluster, asking, node, unsupported};
use gondwana_api::{Backend, Block, Error, Extras, Kind, Monitor, NewThread, Whom};
use gondwana_node::{Caller, Node};
use gondwana_rset::{Placement, RSet, Registry};
use gondwana_topology::{Bytes, Machine, NodeId, ProcessorId};
use libc::{c_int, c_void};

/// Makes the run the backend of the functions for C.
pub(crate) fn begin(node: &'static Node) {
    gondwana_api::install(Cluster::begin(node));
}

impl Backend for Cluster {
    fn kind(&self) -> Kind {
        Kind::Cluster
    }

    fn machine(&self) -> Result<&Machine, Error> {
        Ok(&self.machine)
    }

    fn available_memory(&self, _node: NodeId) -> Option<Bytes> {
        None
    }

    fn colours(&self) -> Result<u64, Error> {
        Err(unsupported("pages cannot be coloured on the nodes of a run"))
    }

    fn here(&self) -> Result<(ProcessorId, NodeId), Error> {
        let node = node()?.number();
        Ok((asking(|| self.processors.here()), node))
    }

    fn node_of(&self, whom: Whom) -> Result<NodeId, Error> {
        self.home_of(threads::named(whom))
    }

    fn registry(&self) -> Result<Registry, Error> {
        asking(|| self.host.registry())
    }

    fn change_registry(
        &self,
        change: &mut dyn FnMut(&mut Registry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        asking(|| self.host.change_registry(change))
    }

    fn allocate_handle(&self, bytes: usize) -> *mut c_void {
        match Node::current() {
            Some(node) => node
                .allocate(bytes, 16, Caller::NONE)
                .map_or(std::ptr::null_mut(), |address| address as *mut c_void),
            None => self.host.allocate_handle(bytes),
        }
    }

    unsafe fn free_handle(&self, handle: *mut c_void) {
        // SAFETY: the caller's promise; our own `free` tells shared blocks from others.
        unsafe { self.host.free_handle(handle) };
    }

    fn peek(&self, address: usize, bytes: &mut [u8]) -> bool {
        memory::peek(&self.host, address, bytes)
    }

    fn allocate(&self, pages: usize, placement: &Placement, extras: Extras) -> Result<Block, Error> {
        self.allocate_block(node()?, pages, placement, extras)
    }

    unsafe fn free(&self, address: usize, _pages: usize) -> Result<(), Error> {
        node()?.free_placed(address - gondwana_memory::PAGE_SIZE);
        Ok(())
    }

    fn nodes_of_pages(&self, address: usize, nodes: &mut [c_int]) -> Result<(), Error> {
        memory::nodes_of_pages(node()?, &self.host, address, nodes)
    }

    fn bind(&self, whom: Whom, rset: &RSet, strict: bool) -> Result<Vec<String>, Error> {
        self.bind_named(threads::named(whom), rset, strict)
    }

    fn binding(&self, whom: Whom) -> Result<RSet, Error> {
        self.binding_of(threads::named(whom))
    }

    unsafe fn start_thread(&self, thread: NewThread<'_>) -> Result<(libc::pthread_t, Vec<String>), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.start_bound(node()?, thread) }
    }

    fn monitor(&self) -> Result<&dyn Monitor, Error> {
        Ok(self)
    }
}
