//! Replicas: local pages of a node for pages of other nodes. A block of a replica is valid or not, as in simple COMA; the
//! directory does not know of replicas.

use crate::Time;
use gondwana_coherence::directory::Node;

/// What is known of one page.
#[derive(Clone, Debug, Default)]
struct Page {
    /// The nodes that have a replica of it.
    replicas: u64,
    /// How often it has changed its home.
    moves: u64,
    /// By block: the nodes that would have it if they had room for all that they fetch, and those whose replica has it.
    fetched: Box<[u64]>,
    valid: Box<[u64]>,
    /// By node: misses that its replica has served since the system looked last.
    served: Vec<u64>,
    /// Nodes that cannot access it until a time: the system works on it.
    locked: (u64, Time),
}

/// All pages, by their places.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    blocks: usize,
    nodes: usize,
}

impl Pages {
    /// No page, of so many blocks each.
    pub(crate) fn new(blocks: usize, nodes: usize) -> Self {
        Self { pages: vec![], blocks, nodes }
    }

    fn page(&self, page: u32) -> Option<&Page> {
        self.pages.get(page as usize)
    }

    fn page_mut(&mut self, page: u32) -> &mut Page {
        let (index, blocks) = (page as usize, self.blocks);
        if index >= self.pages.len() {
            self.pages.resize(index + 1, Page::default());
        }
        let page = &mut self.pages[index];
        if page.fetched.is_empty() {
            page.fetched = vec![0; blocks].into_boxed_slice();
            page.valid = page.fetched.clone();
        }
        page
    }

    /// True if a node has a replica of a page.
    pub(crate) fn is_replica(&self, page: u32, node: Node) -> bool {
        self.page(page).is_some_and(|page| page.replicas >> node & 1 == 1)
    }

    /// True if a node has a replica of a page in which a block is valid.
    pub(crate) fn is_valid(&self, page: u32, block: usize, node: Node) -> bool {
        self.page(page).and_then(|page| page.valid.get(block)).is_some_and(|valid| valid >> node & 1 == 1)
    }

    /// How often a page has changed its home.
    pub(crate) fn moves(&self, page: u32) -> u64 {
        self.page(page).map_or(0, |page| page.moves)
    }

    /// A node gets a replica, with no valid block.
    pub(crate) fn replicate(&mut self, page: u32, node: Node) {
        let nodes = self.nodes;
        let page = self.page_mut(page);
        page.replicas |= 1 << node;
        page.served.resize(nodes, 0);
    }

    /// A node gives its replica up.
    pub(crate) fn give_up(&mut self, page: u32, node: Node) {
        let page = self.page_mut(page);
        page.replicas &= !(1 << node);
        page.valid.iter_mut().for_each(|valid| *valid &= !(1 << node));
        if let Some(served) = page.served.get_mut(usize::from(node)) {
            *served = 0;
        }
    }

    /// A page has another home. What nodes had of it is forgotten.
    pub(crate) fn moved(&mut self, page: u32) {
        let page = self.page_mut(page);
        debug_assert_eq!(page.replicas, 0, "replicas are given up before");
        page.moves += 1;
        page.fetched.fill(0);
    }

    /// A block has come to a node, not its home. True if the node would have had it, had it had room: an excess miss.
    pub(crate) fn fetch(&mut self, page: u32, block: usize, node: Node) -> bool {
        let page = self.page_mut(page);
        let again = page.fetched[block] >> node & 1 == 1;
        page.fetched[block] |= 1 << node;
        again
    }

    /// The contents of a block have come to a node. True if its replica has taken them.
    pub(crate) fn fill(&mut self, page: u32, block: usize, node: Node) -> bool {
        let has = self.is_replica(page, node);
        if has {
            self.page_mut(page).valid[block] |= 1 << node;
        }
        has
    }

    /// Another node writes a block.
    pub(crate) fn invalidate(&mut self, page: u32, block: usize, node: Node) {
        if let Some(page) = self.pages.get_mut(page as usize).filter(|page| !page.fetched.is_empty()) {
            page.fetched[block] &= !(1 << node);
            page.valid[block] &= !(1 << node);
        }
    }

    /// A node's replica has served a miss.
    pub(crate) fn serve(&mut self, page: u32, node: Node) {
        self.page_mut(page).served[usize::from(node)] += 1;
    }

    /// Takes a node's replicas with the misses that they have served since the last call.
    pub(crate) fn take_served(&mut self, node: Node) -> Vec<(u32, u64)> {
        let numbered = (0..).zip(&mut self.pages);
        let replicas = numbered.filter(|(_, page)| page.replicas >> node & 1 == 1);
        replicas.map(|(number, page)| (number, std::mem::take(&mut page.served[usize::from(node)]))).collect()
    }

    /// Nodes cannot access a page until a time.
    pub(crate) fn lock(&mut self, page: u32, nodes: u64, until: Time) {
        self.page_mut(page).locked = (nodes, until);
    }

    /// Until when a node cannot access a page.
    pub(crate) fn locked(&self, page: u32, node: Node) -> Time {
        let locked = self.page(page).map_or((0, 0), |page| page.locked);
        if locked.0 >> node & 1 == 1 { locked.1 } else { 0 }
    }

    /// How many pages a node has replicas of.
    pub(crate) fn count(&self, node: Node) -> u64 {
        self.pages.iter().map(|page| page.replicas >> node & 1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_valid_from_their_arrival_until_another_node_writes() {
        let mut pages = Pages::new(4, 3);
        assert!(!pages.fill(5, 0, 1), "no replica");
        pages.replicate(5, 1);
        assert_eq!(
            (pages.is_replica(5, 1), pages.is_replica(5, 2), pages.is_replica(4, 1)),
            (true, false, false)
        );
        assert!(!pages.is_valid(5, 0, 1), "none is valid at first");
        assert!(pages.fill(5, 0, 1) && pages.fill(5, 3, 1));
        assert_eq!([0, 1, 2, 3].map(|block| pages.is_valid(5, block, 1)), [true, false, false, true]);
        pages.invalidate(5, 3, 2);
        assert!(pages.is_valid(5, 3, 1), "another node's");
        pages.invalidate(5, 3, 1);
        assert_eq!([0, 3].map(|block| pages.is_valid(5, block, 1)), [true, false]);
        pages.replicate(5, 2);
        assert!(!pages.is_valid(5, 0, 2));
        pages.give_up(5, 1);
        assert_eq!(
            [1, 2].map(|node| (pages.is_replica(5, node), pages.is_valid(5, 0, node))),
            [(false, false), (true, false)]
        );
        pages.replicate(5, 1);
        assert!(!pages.is_valid(5, 0, 1), "a new replica has nothing of the old one");
        assert_eq!([1, 2].map(|node| pages.count(node)), [1, 1]);
    }

    #[test]
    fn a_miss_is_an_excess_miss_if_only_room_was_missing() {
        let mut pages = Pages::new(4, 3);
        assert!(!pages.fetch(0, 1, 2), "cold");
        assert!(pages.fetch(0, 1, 2) && !pages.fetch(0, 1, 1) && !pages.fetch(0, 2, 2));
        pages.invalidate(0, 1, 2);
        assert!(!pages.fetch(0, 1, 2), "another node wrote");
        assert!(pages.fetch(0, 1, 1));
        pages.moved(0);
        assert!(!pages.fetch(0, 1, 1), "another page of memory");
        assert_eq!((pages.moves(0), pages.moves(9)), (1, 0));
    }

    #[test]
    fn served_misses_and_locks_are_those_of_a_node() {
        let mut pages = Pages::new(1, 2);
        pages.replicate(3, 0);
        pages.replicate(1, 0);
        pages.replicate(3, 1);
        for (page, node) in [(3, 0), (3, 0), (3, 1), (1, 0)] {
            pages.serve(page, node);
        }
        assert_eq!(pages.take_served(0), [(1, 1), (3, 2)]);
        assert_eq!((pages.take_served(0), pages.take_served(1)), (vec![(1, 0), (3, 0)], vec![(3, 1)]));
        pages.lock(3, 0b10, 70);
        assert_eq!([pages.locked(3, 0), pages.locked(3, 1), pages.locked(8, 1)], [0, 70, 0]);
    }
}
