//! Memory that the program asks for with a policy of its own.

use super::Region;
use crate::{Caller, Node};
use gondwana_coherence::Page;
use gondwana_coherence::PlacedHomes;
use gondwana_memory::PAGE_SIZE;
use gondwana_page::{to_usize, whole_pages};
use gondwana_rset::Placement;
use gondwana_topology::NodeId;
use std::sync::Arc;
use std::time::Duration;

/// How often homes that do not move are asked to.
const ROUNDS: usize = 4;

/// How often it is looked whether pages have arrived after a first time, and how long the first pause is: the next one is twice as
/// long each time, 25 ms in all.
const PAUSES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_micros(100);

/// Pages that are given away without letting others have the node's lock in between.
const GIVEN_AT_ONCE: u32 = 1024;

/// What a node is to do to pages of which it is to be home: runs of pages follow in memory.
#[repr(C)]
struct Task {
    /// They have contents that must go; otherwise a touch is enough.
    used: bool,
    runs: usize,
}

/// A block and where its pages are to be.
struct Wanted<'a> {
    address: usize,
    region: Region,
    placement: &'a Arc<Placement>,
}

impl Wanted<'_> {
    /// The pages by the node of which they are to be; where it is none in particular, the calling one.
    fn by_home(&self, node: &Node) -> Vec<Vec<Run>> {
        let mut of_nodes = vec![vec![]; node.nodes()];
        for run in self.placement.runs(self.region.of, node.me) {
            let start = self.address + to_usize(run.first) * PAGE_SIZE;
            of_nodes[run.node.unwrap_or(node.me).index()].push((start, to_usize(run.count) * PAGE_SIZE));
        }
        of_nodes
    }
}

/// Consecutive pages: address of the first one, and bytes.
type Run = (usize, usize);

impl Node {
    /// Allocates `before` pages with homes anywhere and behind them `pages` pages of zeros with homes by policy, from the
    /// point of view of this node. With `present` the pages are there afterwards, at their homes. Returns the address of
    /// the first one that is placed.
    ///
    /// Memory that was used before is cleared by the nodes that are to be home: so it moves there.
    ///
    /// # Errors
    /// `ENOMEM` when this node's part of the span is used up, `EAGAIN` if a node has no room for the thread that clears.
    pub fn allocate_placed(
        &'static self,
        before: usize,
        pages: usize,
        placement: &Arc<Placement>,
        present: bool,
    ) -> Result<usize, i32> {
        let bytes = before.checked_add(pages).and_then(|pages| pages.checked_mul(PAGE_SIZE));
        let bytes =
            bytes.filter(|bytes| *bytes <= self.heap.layout().bytes_per_node()).ok_or(libc::ENOMEM)?;
        let count = u32::try_from(pages).map_err(|_| libc::ENOMEM)?;
        let block =
            self.undisturbed(move || self.heap.allocate_block(bytes, PAGE_SIZE)).ok_or(libc::ENOMEM)?;
        let address = block.address + before * PAGE_SIZE;
        self.placement.note_own_policy();
        let Some(first) = self.geometry.page_of(address) else { return Err(libc::ENOMEM) };
        let region = Region { first, count, offset: 0, of: pages as u64 };
        let wanted = Wanted { address, region, placement };
        let filled = match block.fresh {
            true => {
                self.place(region, Some(placement), false);
                if present { self.bring_in(&wanted) } else { Ok(()) }
            }
            false => self.clear(&wanted),
        };
        filled.inspect_err(|_| self.free_placed(block.address))?;
        self.note_allocation(address, pages * PAGE_SIZE, Caller::NONE, false);
        Ok(address)
    }

    /// Has pages that nobody has touched be there, at their homes.
    fn bring_in(&'static self, wanted: &Wanted<'_>) -> Result<(), i32> {
        let Region { first, count, .. } = wanted.region;
        for first in (first..first + count).step_by(GIVEN_AT_ONCE as usize) {
            let count = GIVEN_AT_ONCE.min(wanted.region.first + wanted.region.count - first);
            self.privately(move || self.core().give_placed(Page(first), count));
        }
        self.fill(&wanted.by_home(self), false)
    }

    /// Clears memory that was used before, and has it move to its homes.
    fn clear(&'static self, wanted: &Wanted<'_>) -> Result<(), i32> {
        for _ in 0..ROUNDS {
            match self.boot.protocol().map_or(PlacedHomes::Fixed, |protocol| protocol.placed) {
                // The home moves to the node that is to have it when that writes; all must know by then.
                PlacedHomes::MoveWithWriter => {
                    self.place(wanted.region, Some(wanted.placement), true);
                    self.found_homes(wanted);
                    self.fill(&wanted.by_home(self), true)?;
                }
                // The home is handed over by whoever is, once the contents are there and nowhere else.
                PlacedHomes::HandedOver | PlacedHomes::Fixed => {
                    let mut runs = vec![vec![]; self.nodes()];
                    for (index, home) in self.found_homes(wanted).into_iter().enumerate() {
                        let address = wanted.address + index * PAGE_SIZE;
                        runs[home.unwrap_or(self.me).index()].push((address, PAGE_SIZE));
                    }
                    self.fill(&runs, true)?;
                    self.place(wanted.region, Some(wanted.placement), true);
                }
            }
            // A home that was just moving when it was asked to move elsewhere has to be asked again.
            if self.all_arrive(wanted) {
                break;
            }
        }
        Ok(())
    }

    /// True as soon as all pages are at their homes: those that are on their way are waited for, but not for long.
    fn all_arrive(&'static self, wanted: &Wanted<'_>) -> bool {
        let stray = |(index, home): (usize, Option<NodeId>)| {
            let asked = wanted.placement.node_of(index as u64, wanted.region.of, self.me);
            asked.is_some() && home != asked
        };
        let arrived = || !self.found_homes(wanted).into_iter().enumerate().any(stray);
        arrived()
            || (0..PAUSES).any(|doublings| {
                std::thread::sleep(FIRST_PAUSE * (1 << doublings));
                arrived()
            })
    }

    fn found_homes(&'static self, wanted: &Wanted<'_>) -> Vec<Option<NodeId>> {
        let mut found = vec![None; wanted.region.count as usize];
        let end = wanted.address + found.len() * PAGE_SIZE;
        self.visit_homes(&(wanted.address..end), |pages, home| found[pages].fill(Some(home)));
        found
    }

    /// Returns a block from [`Node::allocate_placed`], by its first address with the pages before. What is allocated
    /// there from now on has no policy because of it.
    pub fn free_placed(&'static self, address: usize) {
        self.unplace_freed(address);
        self.free(address);
    }

    /// Forgets the policy of a block that is about to be free. Blocks of other nodes are these nodes' to forget.
    pub(crate) fn unplace_freed(&'static self, address: usize) {
        if !self.placement.has_own_policies() || !self.heap.is_block(address) {
            return;
        }
        let bytes = self.undisturbed(move || self.heap.usable_size(address));
        if let (Ok(bytes), Some(first)) = (bytes, self.geometry.page_of(address)) {
            let count = whole_pages(bytes);
            self.place(Region { first, count, offset: 0, of: count.into() }, None, true);
        }
    }

    /// Has each node clear (`used`) or touch its runs of pages.
    fn fill(&'static self, of_nodes: &[Vec<Run>], used: bool) -> Result<(), i32> {
        // What is written without a fault tells nobody of it: pages that were written here before must fault again.
        self.release_and_wait();
        for (node, runs) in (0..).map(NodeId).zip(of_nodes).filter(|(_, runs)| !runs.is_empty()) {
            let size = size_of::<Task>() + size_of_val(runs.as_slice());
            let task = self.allocate(size, align_of::<Task>(), Caller::NONE).ok_or(libc::ENOMEM)?;
            // SAFETY: the memory was just allocated, in this size; the function treats it as it is written here, on
            // pages that nobody but this call knows.
            let done = unsafe {
                (task as *mut Task).write(Task { used, runs: runs.len() });
                let list = (task as *mut Task).add(1).cast::<Run>();
                runs.as_ptr().copy_to_nonoverlapping(list, runs.len());
                self.call_on(node, fill_here, task)
            };
            if node == self.me {
                // Where the contents were here already, the home comes with the diffs.
                self.release_and_wait();
            }
            self.free(task);
            done?;
        }
        Ok(())
    }
}

/// Says on the node that is to be home of used pages that it is: then its next writes go to the present home even if they change
/// nothing, which makes the home move.
fn claim_home(address: usize, bytes: usize) {
    if let Some(node) = Node::current()
        && let Some(first) = node.geometry.page_of(address)
    {
        let count = whole_pages(bytes);
        node.privately(move || node.core().place(Page(first), count, Some(node.me), true));
        node.acquire(None);
    }
}

/// Does a [`Task`], at the home.
///
/// # Safety
/// The address is that of a task with its runs, whose pages nobody else uses.
unsafe extern "C" fn fill_here(task: usize) -> usize {
    let task = task as *const Task;
    // SAFETY: the caller's promise.
    unsafe {
        let runs = std::slice::from_raw_parts(task.add(1).cast::<Run>(), (*task).runs);
        for &(address, bytes) in runs {
            if (*task).used {
                claim_home(address, bytes);
                std::ptr::write_bytes(address as *mut u8, 0, bytes);
            } else {
                (address..address + bytes)
                    .step_by(PAGE_SIZE)
                    .for_each(|page| (page as *mut u8).write_volatile(0));
            }
        }
    }
    0
}
