//! Page colours: which part of the second cache a page's memory falls into.
//!
//! A second cache whose ways are larger than a page has several colours: pages of one colour take each other's place, those of
//! different colours do not. Which physical page a virtual one gets decides.

use crate::description::Colouring;
use gondwana_coherence::directory::Node;

/// Gives colours to pages as they are touched first.
#[derive(Clone, Debug)]
pub(crate) struct Colours {
    policy: Colouring,
    /// How many there are; a power of two.
    count: u64,
    /// By node: pages in its memory.
    pages: Vec<u64>,
}

impl Colours {
    pub(crate) fn new(policy: Colouring, count: u64, nodes: usize) -> Self {
        Self { policy, count, pages: vec![0; nodes] }
    }

    /// True if no page's colour differs from that of its virtual number.
    pub(crate) fn are_virtual(&self) -> bool {
        self.policy == Colouring::Virtual
    }

    /// The difference (exclusive or) of the next page's colour in the memory of a node to that of its virtual number.
    pub(crate) fn next(&mut self, page: u64, home: Node) -> u64 {
        let pages = &mut self.pages[usize::from(home)];
        let place = *pages;
        *pages += 1;
        let colour = match self.policy {
            Colouring::Virtual => return 0,
            Colouring::Cyclic => place,
            Colouring::Random => mix(place << 8 | u64::from(home)),
        };
        (colour ^ page) & (self.count - 1)
    }
}

/// Numbers without a visible order (the finaliser of MurmurHash3).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        mixed = (mixed ^ mixed >> 33).wrapping_mul(factor);
    }
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours(policy: Colouring, pages: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut colours = Colours::new(policy, 4, 2);
        pages.into_iter().map(|page| (colours.next(page, 0) ^ page) & 3).collect()
    }

    #[test]
    fn policies() {
        assert_eq!(colours(Colouring::Virtual, [0, 9, 3, 4]), [0, 1, 3, 0]);
        assert_eq!(colours(Colouring::Cyclic, [0, 9, 8, 4, 12]), [0, 1, 2, 3, 0]);
        let random = colours(Colouring::Random, 0..1000);
        for colour in 0..4 {
            let count = random.iter().filter(|other| **other == colour).count();
            assert!((200..300).contains(&count), "{count} of 1000 pages have colour {colour}");
        }
        assert_eq!(random, colours(Colouring::Random, 1000..2000), "the virtual number plays no part");
    }

    #[test]
    fn nodes_count_their_own_pages() {
        let mut colours = Colours::new(Colouring::Cyclic, 4, 2);
        assert_eq!([(0, 0), (0, 1), (0, 0)].map(|(page, home)| colours.next(page, home)), [0, 0, 1]);
    }
}
