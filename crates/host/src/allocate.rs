//! Memory by a policy.

use crate::colour::{Colours, colour};
use crate::pages::{self, Found};
use crate::place::{Placed, keep_huge_pages_out, place};
use crate::sys::{self, Policy};
use crate::unmet_request::UnmetRequest;
use crate::{AnonymousMemory, probe};
use gondwana_rset::Placement;
use gondwana_topology::{NodeId, NodeSet};
use std::io;

/// Additional properties of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Allocate all pages at once, also with a policy that leaves the placement to the kernel.
    pub prefault: bool,
    /// Lock pages in memory, as the papers' drivers did.
    pub lock: bool,
    /// No huge pages, even where they would fit.
    pub small_pages: bool,
    /// Consecutive pages cycle through this many cache colours ([`crate::colours`]).
    pub colours: Option<u64>,
    /// No page may be elsewhere, even if the kernel kills the program for it ([`crate::place_untouched`]).
    pub strict: bool,
}

/// Allocates at least `bytes` bytes, placed relative to the calling thread.
///
/// All pages are allocated when this returns, except with Float: then the kernel places each page at its first touch,
/// on a node of the resource set.
///
/// # Examples
/// ```
/// use gondwana_host::{Extras, allocate, discover_nodes};
/// use gondwana_rset::{MemoryPolicy, Placement, RSet};
///
/// let machine = discover_nodes()?;
/// let placement = Placement::new(MemoryPolicy::Local, &RSet::allowed(&machine), &machine)?;
/// let (memory, _placed) = allocate(1 << 20, &placement, Extras::default())?;
/// assert!(memory.addresses().len() >= 1 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn allocate(
    bytes: usize,
    placement: &Placement,
    extras: Extras,
) -> io::Result<(AnonymousMemory, Placed)> {
    let region = AnonymousMemory::new(bytes)?;
    // A kernel that does not report a thread's node has one node.
    let here = sys::here().map_or(NodeId(0), |(_, node)| node);
    let placed = fill(&region, placement, here, extras);
    Ok((region, placed))
}

/// As [`allocate`], for memory that is there and was not touched yet, from the point of view of a thread on node
/// `here`.
pub fn fill(region: &AnonymousMemory, placement: &Placement, here: NodeId, extras: Extras) -> Placed {
    let pages = region.pages() as u64;
    with_extras(region, placement, here, extras, || match placement.node_of(0, pages, here) {
        None => float(region, placement, extras),
        Some(first) => place(region, |page| placement.node_of(page as u64, pages, here).unwrap_or(first)),
    })
}

/// Sets the page size and colours of a region, places it by `place`, and locks it.
pub(crate) fn with_extras(
    region: &AnonymousMemory,
    placement: &Placement,
    here: NodeId,
    extras: Extras,
    place: impl FnOnce() -> Placed,
) -> Placed {
    let small = if extras.small_pages { keep_huge_pages_out(&[region.addresses()]) } else { None };
    let coloured = extras.colours.map(|colours| coloured(region, placement, here, colours));
    let mut placed = place();
    placed.remarks.extend(small);
    match coloured {
        Some(Ok(colours)) => placed.colours = Some(colours),
        Some(Err(remark)) => placed.remarks.push(remark),
        None => {}
    }
    if extras.lock {
        placed.remarks.extend(lock(region));
    }
    placed
}

/// Locks the region in memory, or returns why not.
fn lock(region: &AnonymousMemory) -> Option<UnmetRequest> {
    let error = sys::lock(&region.addresses()).err()?;
    Some(UnmetRequest::Other(format!("memory cannot be locked ({error}): ulimit -l sets the limit")))
}

/// Gives the region coloured pages of its single node, or of any node with Float.
fn coloured(
    region: &AnonymousMemory,
    placement: &Placement,
    here: NodeId,
    colours: u64,
) -> Result<Colours, UnmetRequest> {
    let mut runs = placement.runs(region.pages() as u64, here);
    let (first, several) = (runs.next().and_then(|run| run.node), runs.next().is_some());
    if several {
        return Err(UnmetRequest::Other(
            "pages on several nodes are not coloured: their caches differ anyway".to_owned(),
        ));
    }
    let Some(node) = first else { return colour(region, colours) };
    let refused = |error: io::Error| UnmetRequest::refused("setting a policy for memory", &error);
    let before = sys::policy().map_err(refused)?;
    sys::set_policy(&Policy::Prefer(NodeSet::only(node))).map_err(refused)?;
    let colours = colour(region, colours);
    sys::set_policy(&before).map_err(refused)?;
    colours
}

/// Memory that the kernel places.
fn float(region: &AnonymousMemory, placement: &Placement, extras: Extras) -> Placed {
    let nodes: NodeSet = placement.nodes().iter().copied().collect();
    let mut remarks = vec![];
    if let Err(error) = sys::set_policy_of(&region.addresses(), &Policy::Bind(nodes)) {
        remarks.push(UnmetRequest::refused("binding memory", &error));
    }
    if extras.prefault || extras.lock {
        region.touch_all(0..region.pages());
    }
    let found = pages::count(0, region.addresses());
    match &found {
        Ok(found) => remarks.extend(probe::strays(found, &nodes)),
        Err(error) => remarks.push(UnmetRequest::refused("counting pages", error)),
    }
    // No page is requested on a particular node.
    Placed { asked: Found::default(), found: found.ok(), colours: None, remarks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_page::PAGE_SIZE;
    use gondwana_rset::{MemoryPolicy, RSet, Registry};

    fn allocated(memory: &str, pages: usize, extras: Extras) -> Placed {
        let machine = crate::discover_nodes().unwrap();
        let policy = MemoryPolicy::parse(memory, &machine, &Registry::default()).unwrap();
        let placement = Placement::new(policy, &RSet::allowed(&machine), &machine).unwrap();
        let (region, placed) = allocate(pages * PAGE_SIZE, &placement, extras).unwrap();
        assert_eq!(region.pages(), pages);
        placed
    }

    #[test]
    fn every_policy_has_its_pages_where_it_wants_them() {
        for memory in ["local", "striped:3", "block"] {
            let placed = allocated(memory, 50, Extras::default());
            assert!(placed.is_as_asked(), "{memory}: {placed:?}");
            assert_eq!(placed.found.unwrap().present(), 50);
        }
    }

    #[test]
    fn floating_pages_are_there_when_they_are_touched_or_wanted_at_once() {
        let touched = |extras| allocated("float", 50, extras).found.unwrap().present();
        assert_eq!(touched(Extras::default()), 0);
        assert_eq!(touched(Extras { prefault: true, ..Extras::default() }), 50);
    }

    #[test]
    fn coloured_pages_are_placed_too_or_a_reason_is_given() {
        let placed = allocated("local", 50, Extras { colours: Some(4), ..Extras::default() });
        assert_eq!(placed.found.as_ref(), Some(&placed.asked));
        match (placed.colours, placed.remarks.first()) {
            (Some(colours), None) => assert_eq!((colours.colours, colours.pages), (4, 50)),
            (None, Some(remark)) => assert!(remark.to_string().contains("CAP_SYS_ADMIN"), "{remark}"),
            both => panic!("{both:?}"),
        }
    }

    #[test]
    fn memory_is_locked_if_it_is_asked_for() {
        let locked = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
            line.split_whitespace().next().unwrap().parse::<usize>().unwrap()
        };
        let machine = crate::discover_nodes().unwrap();
        let placement = Placement::new(MemoryPolicy::Local, &RSet::allowed(&machine), &machine).unwrap();
        let extras = Extras { lock: true, ..Extras::default() };
        let (region, placed) = allocate(4 * PAGE_SIZE, &placement, extras).unwrap();
        // Other tests may have locked memory at the same time.
        match placed.remarks.first() {
            None => assert!(locked() >= 4 * PAGE_SIZE / 1024),
            Some(remark) => assert!(remark.to_string().contains("ulimit -l"), "{remark}"),
        }
        drop(region);
    }
}
