//! Places each page of a region on the requested node, and counts the actual nodes.

use crate::AnonymousMemory;
use crate::colour::Colours;
use crate::pages::{self, Found};
use crate::sys::{self, Policy};
use crate::unmet_request::UnmetRequest;
use gondwana_page::PAGE_SIZE;
use gondwana_topology::{NodeId, NodeSet};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Requested and actual placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Pages that were requested on each node.
    pub asked: Found,
    /// Pages that the kernel reports there; `None` if it refuses.
    pub found: Option<Found>,
    /// The result of colouring, if it was requested and possible.
    pub colours: Option<Colours>,
    /// The unmet requests.
    pub remarks: Vec<UnmetRequest>,
}

impl Placed {
    /// True if every page is known to be on its requested node.
    #[must_use]
    pub fn is_as_asked(&self) -> bool {
        self.remarks.is_empty() && self.found.as_ref() == Some(&self.asked)
    }
}

/// Pages per call of `move_pages`.
const AT_ONCE: usize = 4096;

/// The size of the smallest huge pages of x86 and of ARM with 4 KiB pages.
const HUGE: usize = 2 << 20;

/// Places every page on the node `node_of(page)`.
///
/// The pages are touched under a preference for their node, so untouched pages are allocated there and nothing is
/// copied; only pages that are elsewhere afterwards are moved. With a binding instead of a preference, the kernel
/// would kill the process when a node is full.
pub fn place(region: &AnonymousMemory, node_of: impl Fn(usize) -> NodeId) -> Placed {
    let wanted = runs(region.pages(), &node_of);
    let pages =
        wanted.iter().map(|(&node, runs)| (node, runs.iter().map(ExactSizeIterator::len).sum())).collect();
    let asked = Found { pages, absent: 0 };
    let mut remarks = vec![];
    let borders = (1..region.pages()).filter(|&page| node_of(page) != node_of(page - 1));
    remarks.extend(if suit_huge_pages(borders.map(|page| region.address(page))) {
        keep_huge_pages_out(&ends(region.addresses()))
    } else {
        keep_huge_pages_out(&[region.addresses()])
    });
    if let Err(error) = touch(region, &wanted) {
        remarks.push(UnmetRequest::refused("setting a policy for memory", &error));
        region.touch_all(0..region.pages());
    }
    let nodes: NodeSet = wanted.into_keys().collect();
    // From now on NUMA balancing ignores the pages, and swapped pages return to the set.
    let kept = sys::set_policy_of(&region.addresses(), &Policy::Bind(nodes));
    let found = match mend(region, &node_of) {
        Ok(found) => {
            missing(&asked, &found, &mut remarks);
            Some(found)
        }
        Err(error) => {
            remarks.push(UnmetRequest::refused("counting pages", &error));
            None
        }
    };
    if let Err(error) = kept
        && remarks.is_empty()
    {
        remarks.push(UnmetRequest::refused("keeping pages on their nodes", &error));
    }
    Placed { asked, found, colours: None, remarks }
}

/// The pages in a row for each node.
fn runs(pages: usize, node_of: &impl Fn(usize) -> NodeId) -> BTreeMap<NodeId, Vec<Range<usize>>> {
    let mut runs: BTreeMap<NodeId, Vec<Range<usize>>> = BTreeMap::new();
    let mut first = 0;
    while first < pages {
        let node = node_of(first);
        let end = (first + 1..pages).find(|&page| node_of(page) != node).unwrap_or(pages);
        runs.entry(node).or_default().push(first..end);
        first = end;
    }
    runs
}

/// True if no huge page could cross one of these borders.
pub(crate) fn suit_huge_pages(mut borders: impl Iterator<Item = usize>) -> bool {
    borders.all(|address| address.is_multiple_of(HUGE))
}

/// The parts at both ends of some memory that could only be in huge pages together with adjacent memory.
///
/// The kernel merges adjacent regions with equal attributes, so a touch of one region could allocate a huge page that
/// includes the beginning of the next.
fn ends(memory: Range<usize>) -> [Range<usize>; 2] {
    let first = memory.start..memory.end.min(memory.start.next_multiple_of(HUGE));
    let last = first.end.max(memory.end - memory.end % HUGE)..memory.end;
    [first, last]
}

/// Keeps huge pages out of parts of a region.
pub(crate) fn keep_huge_pages_out(parts: &[Range<usize>]) -> Option<UnmetRequest> {
    let parts = parts.iter().filter(|part| !part.is_empty());
    let error = parts.map(sys::without_huge_pages).find_map(Result::err)?;
    // A kernel without huge pages lacks this advice.
    (error.raw_os_error() != Some(libc::EINVAL))
        .then(|| UnmetRequest::refused("keeping huge pages out", &error))
}

/// Touches the pages of each node with a preference for it.
fn touch(region: &AnonymousMemory, wanted: &BTreeMap<NodeId, Vec<Range<usize>>>) -> io::Result<()> {
    let before = sys::policy()?;
    let touched = wanted.iter().try_for_each(|(&node, runs)| {
        // The kernel refuses nodes that do not exist or that a cpuset forbids: their pages are placed anywhere.
        match sys::set_policy(&Policy::Prefer(NodeSet::only(node))) {
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => return Err(error),
            _ => {}
        }
        runs.iter().for_each(|run| region.touch_all(run.clone()));
        Ok(())
    });
    sys::set_policy(&before)?;
    touched
}

/// Moves the pages that are not where they should be, and counts all.
fn mend(region: &AnonymousMemory, node_of: &impl Fn(usize) -> NodeId) -> io::Result<Found> {
    let start = region.addresses().start;
    let page_of = |address: usize| (address - start) / PAGE_SIZE;
    let mut found = Found::default();
    // Node by node: the kernel stops at the first node without room.
    let mut strays: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    pages::nodes(0, region.addresses(), |address, node| {
        let wanted = node_of(page_of(address));
        if node == Some(wanted) {
            found.add(node);
        } else {
            strays.entry(wanted).or_default().push(address);
        }
    })?;
    for (wanted, strays) in strays {
        for strays in strays.chunks(AT_ONCE) {
            // Before Linux 6.6, pages that NUMA balancing samples are reported as absent until they are touched
            // again.
            strays.iter().for_each(|&stray| region.touch(page_of(stray)));
            let nodes = vec![i32::from(wanted.0); strays.len()];
            // Whatever keeps pages from being moved shows when they are counted.
            let _ = sys::move_pages(strays, &nodes, &mut vec![0; strays.len()]);
            pages::nodes_of(0, strays)?.into_iter().for_each(|node| found.add(node));
        }
    }
    Ok(found)
}

/// Adds a remark for each node that lacks pages.
fn missing(asked: &Found, found: &Found, remarks: &mut Vec<UnmetRequest>) {
    for (&node, &asked) in &asked.pages {
        let found = found.pages.get(&node).copied().unwrap_or(0);
        if found < asked {
            remarks.push(UnmetRequest::Missing {
                node,
                asked,
                found,
                free: crate::sysfs::available_memory(node),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_where_they_are_asked_for() {
        let node = sys::allowed_nodes().unwrap().first().unwrap();
        let region = AnonymousMemory::new(100 * PAGE_SIZE).unwrap();
        let placed = place(&region, |_| node);
        assert!(placed.is_as_asked(), "{placed:?}");
        assert_eq!(placed.found.unwrap().pages, BTreeMap::from([(node, 100)]));
        assert_eq!(sys::policy().unwrap(), Policy::Default);
    }

    #[test]
    fn pages_on_a_node_that_is_not_there_are_somewhere_and_reported() {
        let node = sys::allowed_nodes().unwrap().first().unwrap();
        let region = AnonymousMemory::new(10 * PAGE_SIZE).unwrap();
        let placed = place(&region, |page| if page < 4 { NodeId(250) } else { node });
        assert!(!placed.is_as_asked());
        assert_eq!(placed.asked.pages, BTreeMap::from([(node, 6), (NodeId(250), 4)]));
        assert_eq!(placed.found.unwrap().present(), 10);
        assert_eq!(placed.remarks[0].to_string(), "node 250 has 0 of 4 pages asked for");
    }

    #[test]
    fn pages_in_a_row_are_for_one_node() {
        let runs = runs(7, &|page| NodeId([0, 0, 1, 0, 0, 2, 2][page]));
        let nodes: Vec<u16> = runs.keys().map(|node| node.0).collect();
        assert_eq!(nodes, [0, 1, 2]);
        let of = |node| runs[&NodeId(node)].as_slice();
        assert_eq!(
            (of(0), of(1), of(2)),
            (&[0..2, 3..5][..], std::slice::from_ref(&(2..3)), std::slice::from_ref(&(5..7)))
        );
    }

    #[test]
    fn ends_are_what_no_huge_page_of_the_memory_itself_could_have() {
        for (memory, first, last) in [
            (0..2 * HUGE, 0..0, 2 * HUGE..2 * HUGE),
            (5..3 * HUGE + 7, 5..HUGE, 3 * HUGE..3 * HUGE + 7),
            (5..HUGE + 7, 5..HUGE, HUGE..HUGE + 7),
            (5..9, 5..9, 9..9),
        ] {
            assert_eq!(ends(memory), [first, last]);
        }
    }

    #[test]
    fn the_memory_beside_a_region_is_not_touched() {
        // Twice as large as a huge page, so it contains an aligned one.
        let region = AnonymousMemory::new(2 * HUGE).unwrap();
        let Range { start, end } = region.addresses();
        // SAFETY: advice about memory that nobody else knows.
        let advised = unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        if advised != 0 {
            return; // There are none to span regions.
        }
        let middle = start.next_multiple_of(HUGE) + HUGE / 2;
        let (before, after) = region.split((middle - start) / PAGE_SIZE);
        let node = sys::allowed_nodes().unwrap().first().unwrap();
        assert!(place(&before, |_| node).is_as_asked());
        assert_eq!(pages::count(0, after.addresses()).unwrap().present(), 0);
    }

    #[test]
    fn what_pages_hold_stays() {
        let region = AnonymousMemory::new(3 * PAGE_SIZE).unwrap();
        // SAFETY: the region is readable and writable, and nobody else knows it.
        unsafe { region.start().as_ptr().write_bytes(7, 3 * PAGE_SIZE) };
        let node = sys::allowed_nodes().unwrap().first().unwrap();
        assert!(place(&region, |_| node).is_as_asked());
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(region.start().as_ptr(), 3 * PAGE_SIZE) };
        assert!(bytes.iter().all(|&byte| byte == 7));
    }
}
