//! The computer itself as a backend: everything goes to its kernel.

mod bind;
mod tasks;
mod thread;

use crate::backend::{Backend, Block, Extras, Kind, NewThread, Whom};
use crate::error::Error;
use crate::monitor_backend::Monitor;
use gondwana_host::sys;
use gondwana_host::{AnonymousMemory, Names, NamesError};
use gondwana_page::PAGE_SIZE;
use gondwana_rset::{Placement, RSet, Registry};
use gondwana_topology::{Bytes, Machine, NodeId, ProcessorId};
use libc::{c_int, c_void};
use std::io;
use std::sync::OnceLock;

/// The backend of programs that run by themselves.
#[derive(Debug)]
pub struct Host {
    machine: OnceLock<Result<Machine, Error>>,
}

impl Host {
    /// The backend; nothing is asked of the computer yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { machine: OnceLock::new() }
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl From<NamesError> for Error {
    fn from(error: NamesError) -> Self {
        let number = match &error {
            NamesError::NoPlace => libc::ENOENT,
            NamesError::System { error, .. } => error.raw_os_error().unwrap_or(libc::EIO),
            NamesError::Invalid { .. } => libc::EINVAL,
        };
        Self::new(number, error.to_string())
    }
}

impl Backend for Host {
    fn kind(&self) -> Kind {
        Kind::Host
    }

    fn machine(&self) -> Result<&Machine, Error> {
        let discover =
            || gondwana_host::discover_nodes().map_err(|error| Error::new(libc::ENOSYS, error.to_string()));
        self.machine.get_or_init(discover).as_ref().map_err(Clone::clone)
    }

    fn available_memory(&self, node: NodeId) -> Option<Bytes> {
        gondwana_host::sysfs::available_memory(node)
    }

    fn colours(&self) -> Result<u64, Error> {
        let unsupported = |why: String| Error::new(libc::ENOTSUP, why);
        // Reading about caches takes long, and hardly anybody wants colours.
        let machine = gondwana_host::discover().map_err(|error| unsupported(error.to_string()))?;
        gondwana_host::colours(&machine).ok_or_else(|| {
            unsupported(
                "pages cannot be coloured: the kernel tells of no level 2 cache with colours".to_owned(),
            )
        })
    }

    fn here(&self) -> Result<(ProcessorId, NodeId), Error> {
        sys::here().map_err(|error| Error::system("the kernel does not say where this thread is", &error))
    }

    fn node_of(&self, whom: Whom) -> Result<NodeId, Error> {
        match whom {
            Whom::ThisThread => Ok(self.here()?.1),
            _ => {
                let processor = tasks::processor_of(whom)?;
                let node = self.machine()?.node_of(processor);
                node.ok_or_else(|| Error::new(libc::EAGAIN, format!("processor {processor} is on no node")))
            }
        }
    }

    fn registry(&self) -> Result<Registry, Error> {
        Ok(Names::known()?)
    }

    fn change_registry(
        &self,
        change: &mut dyn FnMut(&mut Registry) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Names::of_user()?.change(change)
    }

    fn allocate_handle(&self, bytes: usize) -> *mut c_void {
        // SAFETY: plain allocation.
        unsafe { libc::malloc(bytes) }
    }

    unsafe fn free_handle(&self, handle: *mut c_void) {
        // SAFETY: the caller's promise: it came from `malloc`.
        unsafe { libc::free(handle) };
    }

    fn peek(&self, address: usize, bytes: &mut [u8]) -> bool {
        tasks::peek(address, bytes)
    }

    fn allocate(&self, pages: usize, placement: &Placement, extras: Extras) -> Result<Block, Error> {
        let no_memory = || {
            let bytes = pages.saturating_mul(PAGE_SIZE);
            Error::new(libc::ENOMEM, format!("there is no room for {bytes} bytes"))
        };
        let bytes = pages.checked_add(1).and_then(|pages| pages.checked_mul(PAGE_SIZE));
        let region = AnonymousMemory::new(bytes.ok_or_else(no_memory)?).map_err(|_| no_memory())?;
        let (before, block) = region.split(1);
        let mut remarks = vec![];
        let colours = match extras.coloured.then(|| self.colours()).transpose() {
            Ok(colours) => colours,
            Err(error) => {
                remarks.push(error.sentence);
                None
            }
        };
        let Extras { prefault, lock, small_pages, coloured: _ } = extras;
        let extras = gondwana_host::Extras { prefault, lock, small_pages, colours, strict: false };
        // A kernel that does not say where a thread is has one node.
        let here = sys::here().map_or(NodeId(0), |(_, node)| node);
        let placed = gondwana_host::fill(&block, placement, here, extras);
        remarks.extend(placed.remarks.iter().map(ToString::to_string));
        let _ = before.into_addresses();
        let seen_from = placement.follows_touch().then_some(here);
        Ok(Block { address: block.into_addresses().start, seen_from, remarks })
    }

    unsafe fn free(&self, address: usize, pages: usize) -> Result<(), Error> {
        let start = address - PAGE_SIZE;
        // SAFETY: the caller's promise: the pages and the one before are a mapping that nobody uses any more.
        let result = unsafe { libc::munmap(start as *mut c_void, (pages + 1) * PAGE_SIZE) };
        match result {
            0 => Ok(()),
            _ => Err(Error::system("memory cannot be returned", &io::Error::last_os_error())),
        }
    }

    fn nodes_of_pages(&self, address: usize, nodes: &mut [c_int]) -> Result<(), Error> {
        let with_memory = self.machine()?.memory_nodes();
        let only = with_memory.first().filter(|_| with_memory.len() == 1);
        gondwana_host::pages::nodes_into(address, nodes, only)
            .map_err(|error| Error::system("the kernel does not say where pages are", &error))
    }

    fn bind(&self, whom: Whom, rset: &RSet, strict: bool) -> Result<Vec<String>, Error> {
        bind::bind(self.machine()?, whom, rset, strict)
    }

    fn binding(&self, whom: Whom) -> Result<RSet, Error> {
        bind::binding(self.machine()?, whom)
    }

    unsafe fn start_thread(&self, thread: NewThread<'_>) -> Result<(libc::pthread_t, Vec<String>), Error> {
        let binding = bind::of_set(self.machine()?, thread.rset);
        // SAFETY: the caller's promise.
        unsafe { thread::start(binding, thread) }
    }

    fn monitor(&self) -> Result<&dyn Monitor, Error> {
        let sentence =
            "one computer keeps its memory coherent by itself: only a run on several nodes can be monitored";
        Err(Error::new(libc::ENOTSUP, sentence))
    }
}
