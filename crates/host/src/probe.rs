//! Trying a policy: touches some pages and counts where they are.

use crate::binding::Binding;
use crate::pages::{self, Found};
use crate::sys::{self, Policy};
use crate::unmet_request::UnmetRequest;
use crate::{AnonymousMemory, sysfs};
use gondwana_page::PAGE_SIZE;
use gondwana_topology::NodeSet;

/// Pages for each node.
const PAGES: usize = 16;

/// The result of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The nodes of the touched pages; `None` if the kernel does not report them.
    pub found: Option<Found>,
    /// The unmet requests.
    pub remarks: Vec<UnmetRequest>,
}

impl Binding {
    /// The binding with more memory nodes if all its own are full, because the kernel kills processes that are bound
    /// to full nodes. The additional nodes are those of `set` with free memory, or else all nodes.
    #[must_use]
    pub fn around_full_nodes(&self, set: &NodeSet) -> (Self, Option<UnmetRequest>) {
        let Policy::Bind(nodes) = self.policy else { return (*self, None) };
        if !nodes.iter().all(sysfs::is_full) {
            return (*self, None);
        }
        let others: NodeSet = set.difference(&nodes).iter().filter(|node| !sysfs::is_full(*node)).collect();
        let (policy, instead) = if others.is_empty() {
            (Policy::Prefer(nodes), None)
        } else {
            (Policy::Bind(nodes.union(&others)), Some(others))
        };
        (Self { policy, ..*self }, Some(UnmetRequest::Overflowing { nodes, instead }))
    }

    /// Binds the calling thread, and touches a few pages to check their nodes.
    #[must_use]
    pub fn try_out(&self) -> Tried {
        let mut remarks = self.apply();
        let nodes = match self.policy {
            Policy::Bind(nodes) | Policy::Interleave(nodes) | Policy::Prefer(nodes) => nodes,
            Policy::Default | Policy::Local => NodeSet::EMPTY,
        };
        let full: NodeSet = nodes.iter().filter(|node| sysfs::is_full(*node)).collect();
        if !full.is_empty() {
            remarks.push(UnmetRequest::Full { nodes: full });
        }
        // The kernel kills processes that must have memory from nodes that have none.
        if matches!(self.policy, Policy::Bind(_)) && full == nodes {
            return Tried { found: None, remarks };
        }
        let found = touch(PAGES * nodes.len().max(1));
        match &found {
            Ok(found) if full != nodes => remarks.extend(strays(found, &nodes)),
            // No nodes were requested, or all of them are full, which is already reported.
            Ok(_) => {}
            Err(error) => remarks.push(UnmetRequest::refused("counting pages", error)),
        }
        Tried { found: found.ok(), remarks }
    }
}

fn touch(pages: usize) -> std::io::Result<Found> {
    let region = AnonymousMemory::new(pages * PAGE_SIZE)?;
    sys::without_huge_pages(&region.addresses())?;
    (0..region.pages()).for_each(|page| region.touch(page));
    pages::count(0, region.addresses())
}

/// The pages on other nodes than requested, if there are any.
pub(crate) fn strays(found: &Found, nodes: &NodeSet) -> Option<UnmetRequest> {
    let strays = found.pages.iter().filter(|(node, _)| !nodes.contains(**node));
    let (pages, elsewhere) = strays.fold((0, NodeSet::EMPTY), |(sum, elsewhere), (node, pages)| {
        (sum + pages, elsewhere.union(&NodeSet::only(*node)))
    });
    (pages > 0 && !nodes.is_empty()).then(|| UnmetRequest::Strays {
        pages,
        of: found.present(),
        on: elsewhere,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::NodeId;

    #[test]
    fn pages_are_found_where_they_were_asked_for() {
        let nodes = sys::allowed_nodes().unwrap();
        let binding = Binding { processors: sys::affinity(0).unwrap(), policy: Policy::Bind(nodes) };
        let tried = binding.try_out();
        assert_eq!(tried.remarks, []);
        let found = tried.found.unwrap();
        assert_eq!((found.present(), found.absent), (PAGES * nodes.len(), 0));
    }

    #[test]
    fn nodes_with_room_stay_alone() {
        let nodes = sys::allowed_nodes().unwrap();
        for policy in [Policy::Bind(nodes), Policy::Local, Policy::Interleave(nodes)] {
            let binding = Binding { processors: sys::affinity(0).unwrap(), policy };
            assert_eq!(binding.around_full_nodes(&nodes), (binding, None));
        }
    }

    #[test]
    fn strays_are_counted() {
        let mut found = Found::default();
        [0, 0, 1, 2].into_iter().for_each(|node| found.add(Some(NodeId(node))));
        let asked = NodeSet::only(NodeId(0));
        let remark = strays(&found, &asked).unwrap();
        assert_eq!(
            remark.to_string(),
            "2 of 4 pages that were tried are on nodes 1-2, where none were asked for"
        );
        assert_eq!(strays(&found, &NodeSet::EMPTY), None);
    }
}
