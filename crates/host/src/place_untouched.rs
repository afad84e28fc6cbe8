//! Placement of memory that the program touches later.

use crate::AnonymousMemory;
use crate::allocate::{Extras, with_extras};
use crate::pages::Found;
use crate::place::{Placed, keep_huge_pages_out, place, suit_huge_pages};
use crate::sys::{self, Policy};
use crate::unmet_request::UnmetRequest;
use gondwana_page::{PAGE_SIZE, to_usize};
use gondwana_rset::{MemoryPolicy, Placement};
use gondwana_topology::{NodeId, NodeSet};
use std::io;
use std::ops::Range;

/// Prepares a region of untouched memory so that its pages are placed by the policy, relative to the calling thread.
///
/// Stripes are touched now, because an `mbind` for each would exceed the limit of mappings. Otherwise the program
/// touches the pages, under one `mbind` for the region or, with Block, for each of its parts: unused memory costs
/// nothing, and Local is the node of the first toucher. With `extras.prefault` or `extras.lock` all pages are touched
/// now. `before` is the number of pages of the same stripes before the region.
///
/// The policy is a preference: pages for which a node has no room are placed elsewhere. With `extras.strict` it is a
/// binding.
#[must_use]
pub fn place_untouched(
    region: &AnonymousMemory,
    placement: &Placement,
    before: u64,
    extras: Extras,
) -> Placed {
    let pages = region.pages() as u64;
    // A kernel that does not report a thread's node has one node.
    let here = sys::here().map_or(NodeId(0), |(_, node)| node);
    with_extras(region, placement, here, extras, || match placement.policy() {
        MemoryPolicy::Striped(_) if placement.nodes().len() > 1 => {
            place(region, |page| placement.node_of(before + page as u64, pages, here).unwrap_or(here))
        }
        policy if extras.prefault || extras.lock => match placement.node_of(0, pages, here) {
            Some(first) if policy != MemoryPolicy::Float => {
                place(region, |page| placement.node_of(page as u64, pages, here).unwrap_or(first))
            }
            _ => {
                let placed = later(region, placement, here, extras.strict);
                region.touch_all(0..region.pages());
                placed
            }
        },
        _ => later(region, placement, here, extras.strict),
    })
}

/// Sets the kernel's policy for later touches.
fn later(region: &AnonymousMemory, placement: &Placement, here: NodeId, strict: bool) -> Placed {
    let (mut asked, mut remarks) = (Found::default(), vec![]);
    let follows_touch =
        matches!(placement.policy(), MemoryPolicy::Float | MemoryPolicy::Local | MemoryPolicy::Explicit(_));
    let all: NodeSet = placement.nodes().iter().copied().collect();
    let mut borders = vec![];
    for run in placement.runs(region.pages() as u64, here) {
        let nodes = match run.node {
            Some(node) if !follows_touch => NodeSet::only(node),
            _ => all,
        };
        let pages = to_usize(run.count);
        if nodes.len() == 1 {
            *asked.pages.entry(nodes.first().unwrap_or_default()).or_default() += pages;
        }
        let start = region.address(to_usize(run.first));
        borders.push(start);
        let range = start..start + pages * PAGE_SIZE;
        if let Err(error) = prefer(&range, nodes, strict)
            && remarks.is_empty()
        {
            remarks.push(UnmetRequest::refused("setting a policy for memory", &error));
        }
    }
    if !suit_huge_pages(borders.into_iter().skip(1)) {
        remarks.extend(keep_huge_pages_out(&[region.addresses()]));
    }
    Placed { asked, found: None, colours: None, remarks }
}

fn prefer(range: &Range<usize>, nodes: NodeSet, strict: bool) -> io::Result<()> {
    if !strict {
        match sys::set_policy_of(range, &Policy::Prefer(nodes)) {
            // Kernels before 5.15 can prefer one node only; for several a binding is used, which also takes the
            // nearest.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && nodes.len() > 1 => {}
            result => return result,
        }
    }
    sys::set_policy_of(range, &Policy::Bind(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages;
    use gondwana_rset::{RSet, Registry};

    fn arranged(memory: &str, extras: Extras) -> (Placed, Found) {
        let machine = crate::discover_nodes().unwrap();
        let policy = MemoryPolicy::parse(memory, &machine, &Registry::default()).unwrap();
        let placement = Placement::new(policy, &RSet::allowed(&machine), &machine).unwrap();
        let region = AnonymousMemory::new(50 * PAGE_SIZE).unwrap();
        let placed = place_untouched(&region, &placement, 0, extras);
        let found = pages::count(0, region.addresses()).unwrap();
        (placed, found)
    }

    #[test]
    fn pages_come_when_they_are_touched_unless_they_are_wanted_at_once() {
        for memory in ["float", "local", "block"] {
            let (placed, found) = arranged(memory, Extras::default());
            assert_eq!((placed.remarks, found.absent), (vec![], 50), "{memory}");
            let (placed, found) = arranged(memory, Extras { prefault: true, ..Extras::default() });
            assert_eq!((placed.remarks, found.present()), (vec![], 50), "{memory}");
        }
    }

    #[test]
    fn parts_are_on_their_nodes_when_they_are_touched() {
        let machine = crate::discover_nodes().unwrap();
        let rset = RSet::allowed(&machine);
        let placement = Placement::new(MemoryPolicy::Block, &rset, &machine).unwrap();
        let region = AnonymousMemory::new(60 * PAGE_SIZE).unwrap();
        for strict in [false, true] {
            let placed = place_untouched(&region, &placement, 0, Extras { strict, ..Extras::default() });
            assert_eq!(placed.remarks, []);
            region.touch_all(0..60);
            assert_eq!(pages::count(0, region.addresses()).unwrap(), placed.asked);
        }
    }
}
