//! The nodes of pages, page by page, as the kernel counts them.

use crate::{present_pages, sys};
use gondwana_page::PAGE_SIZE;
use gondwana_topology::NodeId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Pages per system call: enough to make the call itself cheap.
const AT_ONCE: usize = 4096;

/// How many pages are on each node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Pages on each node that has any.
    pub pages: BTreeMap<NodeId, usize>,
    /// Pages that are nowhere: never touched, or out on a disk.
    pub absent: usize,
}

impl Found {
    /// Adds a page that is there, or is not.
    pub fn add(&mut self, node: Option<NodeId>) {
        match node {
            Some(node) => *self.pages.entry(node).or_default() += 1,
            None => self.absent += 1,
        }
    }

    /// Pages that are somewhere.
    #[must_use]
    pub fn present(&self) -> usize {
        self.pages.values().sum()
    }
}

/// The node of each page of a range in a process (0: this one), in order; `None` for pages without a frame.
pub fn nodes(
    process: libc::pid_t,
    range: Range<usize>,
    mut visit: impl FnMut(usize, Option<NodeId>),
) -> io::Result<()> {
    let page = PAGE_SIZE;
    let first = range.start - range.start % page;
    let mut addresses = (first..range.end).step_by(page).peekable();
    while addresses.peek().is_some() {
        let some: Vec<usize> = addresses.by_ref().take(AT_ONCE).collect();
        let nodes = nodes_of(process, &some)?;
        some.into_iter().zip(nodes).for_each(|(address, node)| visit(address, node));
    }
    Ok(())
}

/// The node of each of some pages.
pub fn nodes_of(process: libc::pid_t, pages: &[usize]) -> io::Result<Vec<Option<NodeId>>> {
    let mut status = vec![0; pages.len()];
    sys::nodes_of_pages(process, pages, &mut status)?;
    // Negative numbers are reasons why a page is nowhere.
    Ok(status.into_iter().map(|node| u16::try_from(node).ok().map(NodeId)).collect())
}

/// Writes the nodes of consecutive pages of this process, or -1 for a page without a frame, without allocating
/// memory. `only` is the node of all memory, if there is one only: then it is sufficient to find which pages exist,
/// which is fifty times as fast.
///
/// # Panics
/// If `address` is not the start of a page.
pub fn nodes_into(address: usize, nodes: &mut [i32], only: Option<NodeId>) -> io::Result<()> {
    /// Little enough for any stack, and too few for opening a file.
    const SOME: usize = 512;
    let page = PAGE_SIZE;
    assert!(address.is_multiple_of(page), "pages begin where addresses divide by their size");
    if let Some(only) = only.filter(|_| nodes.len() > SOME) {
        nodes.fill(-1);
        let scanned =
            present_pages::present_pages(address..address.saturating_add(nodes.len() * page), |range| {
                nodes[(range.start - address) / page..(range.end - address) / page].fill(only.0.into());
            });
        if scanned.is_ok() {
            return Ok(());
        }
    }
    for (index, some) in nodes.chunks_mut(SOME).enumerate() {
        let first = address.wrapping_add(index * SOME * page);
        let addresses: [usize; SOME] = std::array::from_fn(|index| first.wrapping_add(index * page));
        sys::nodes_of_pages(0, &addresses[..some.len()], some)?;
        // Negative numbers are reasons why a page has no frame.
        some.iter_mut().for_each(|node| *node = (*node).max(-1));
    }
    Ok(())
}

/// Counts the pages of a range on each node.
pub fn count(process: libc::pid_t, range: Range<usize>) -> io::Result<Found> {
    let mut found = Found::default();
    nodes(process, range, |_, node| found.add(node))?;
    Ok(found)
}
