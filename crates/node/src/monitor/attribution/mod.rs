//! Whose the memory is that crosses between nodes: who has allocated it, what variables point to it, and which bytes of
//! it this node writes.
//!
//! Threads of the program take down what they allocate without a lock, and wait for nobody. The monitor's thread makes
//! records of it.

mod calls;
mod emitted;
mod objects;
mod page_set;
mod places;
mod references;
mod sites;
mod stacks;
mod threads;
mod written;

pub use emitted::Emitted;
pub use stacks::Stacks;
pub use threads::Threads;
pub use written::Written;

use crate::{Caller, Node, Thread};
use calls::{Call, calls_from};
use gondwana_memory::MemoryError;
use gondwana_memory::heap::Layout;
use gondwana_topology::NodeId;
use objects::{Noted, Objects};
use sites::{Origin, Sites};
use std::ops::Range;

/// What a node knows of the memory that its threads have allocated.
pub struct Attribution {
    /// This library's own code: its calls are nobody's business.
    own: Range<usize>,
    sites: Sites,
    objects: Objects,
}

impl Attribution {
    /// Nothing known yet of the blocks in this node's part of the heap.
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

    /// What is known is new again, to a recording that begins.
    pub fn tell_again(&self) {
        self.objects.renew();
    }

    /// Takes down that the calling thread has allocated memory.
    #[inline(never)]
    pub fn allocated(
        &'static self,
        node: &'static Node,
        address: usize,
        bytes: usize,
        caller: Caller,
        mapping: bool,
    ) {
        // A handler that came in between would find the thread's memory of its calls in use.
        let origin = Thread::in_runtime(|| self.origin(node, caller));
        self.objects.note(&Noted { address, bytes, origin, mapping });
    }

    fn origin(&'static self, node: &'static Node, caller: Caller) -> Origin {
        let thread = Thread::current(node);
        // What the unwinder allocates itself is nobody's.
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
        // The table is locked on a stack that no other node can take away meanwhile.
        let (calls, origin) = node.privately(move || {
            let addresses: Vec<usize> = calls.iter().map(|call| call.returns_to).collect();
            let origin = self.sites.intern(&addresses, number);
            (calls, origin)
        });
        stacks.remember(caller, calls, &thread.stack, origin);
        origin
    }
}
