//! Attribution of memory that crosses between nodes: its allocation site, the variables that point to it, and the
//! bytes of it that this node writes.
//!
//! Threads of the program note what they allocate without a lock, and wait for no other thread. The monitor's thread
//! makes records of it.

mod emitted;
mod objects;
mod page_set;
mod places;
mod references;
mod sites;
mod stacks;
mod threads;
mod written;

pub(super) use emitted::Emitted;
pub use stacks::Stacks;
pub use threads::Threads;
pub(super) use written::Written;

use crate::{Caller, Node, Thread};
use gondwana_interpose::{Call, calls_from};
use gondwana_memory::MemoryError;
use gondwana_memory::heap::Layout;
use gondwana_topology::NodeId;
use objects::{Noted, Objects};
use sites::{Origin, Sites};
use std::ops::Range;

/// The attribution of the memory that this node's threads have allocated.
pub struct Attribution {
    /// The addresses of this library's own code, whose calls are left out of chains.
    own: Range<usize>,
    sites: Sites,
    objects: Objects,
}

impl Attribution {
    /// An empty attribution of the blocks in this node's part of the heap.
    ///
    /// # Errors
    /// If the kernel has no addresses for the tables.
    pub fn new(layout: &Layout, me: NodeId) -> Result<Self, MemoryError> {
        let here = calls_from as *const () as usize;
        let own = gondwana_elf::loaded::files().into_iter().find(|image| image.addresses.contains(&here));
        Ok(Self {
            own: own.map_or(0..0, |image| image.addresses),
            sites: Sites::new(),
            objects: Objects::new(layout, me)?,
        })
    }

    /// Marks everything as new, for a recording that begins.
    pub fn emit_again(&self) {
        self.objects.renew();
    }

    /// Notes that the calling thread has allocated memory.
    #[inline(never)]
    pub fn allocated(
        &'static self,
        node: &'static Node,
        address: usize,
        bytes: usize,
        caller: Caller,
        mapping: bool,
    ) {
        // A signal handler that allocated here would find the thread's stack memory borrowed.
        let origin = Thread::in_runtime(|| self.origin(node, caller));
        self.objects.note(&Noted { address, bytes, origin, mapping });
    }

    fn origin(&'static self, node: &'static Node, caller: Caller) -> Origin {
        let thread = Thread::current(node);
        // Allocations of the unwinder itself have no origin.
        let Ok(mut stacks) = thread.stacks.try_borrow_mut() else { return 0 };
        let stacks = stacks.get_or_insert_default();
        if let Some(origin) = stacks.find(caller) {
            return origin;
        }
        let mut calls = stacks.scratch();
        if caller != Caller::NONE {
            calls_from(caller.slot, &self.own, &mut calls);
            if calls.is_empty() {
                calls.push(Call { returns_to: caller.address, slot: caller.slot });
            }
        }
        let number = thread.number();
        // The table is locked on a private stack, which no other node can invalidate meanwhile.
        let (calls, origin) = node.privately(move || {
            let addresses: Vec<usize> = calls.iter().map(|call| call.returns_to).collect();
            let origin = self.sites.intern(&addresses, number);
            (calls, origin)
        });
        stacks.remember(caller, calls, &thread.stack, origin);
        origin
    }
}
