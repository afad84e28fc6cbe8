//! Page colouring, as in the papers' NumaMem: consecutive pages have consecutive colours of a cache.
//!
//! In a physically indexed cache the page frame number determines the sets of a page: its colour. Pages of one colour
//! conflict. The kernel chooses the frames, so more pages are allocated than needed, and moved, without copying, to
//! the addresses of their colours.

use crate::unmet_request::UnmetRequest;
use crate::{AnonymousMemory, sys};
use gondwana_page::{PAGE_SIZE, to_usize};
use gondwana_topology::{CacheKind, Machine};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Each moved page is a mapping of its own, and the kernel allows a process some 65,000 mappings.
const MOST_PAGES: usize = 1 << 14;

/// The colours of a region's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Colours {
    /// The number of colours.
    pub colours: u64,
    /// Pages that have the colour that follows that of the page before.
    pub in_order: usize,
    /// Pages in all.
    pub pages: usize,
}

/// The number of page colours of a machine: those of its level 2 caches, the first physically indexed ones.
#[must_use]
pub fn colours(machine: &Machine) -> Option<u64> {
    let cache =
        machine.caches.iter().find(|cache| cache.level == 2 && cache.kind != CacheKind::Instruction)?;
    let colours = cache.size.0.checked_div(u64::from(cache.ways))? / machine.page_size.0;
    (colours > 1).then_some(colours)
}

/// Gives the region pages with consecutive colours, as far as the kernel provides them. The region must be untouched
/// and is zero afterwards; its memory follows the calling thread's policy.
pub fn colour(region: &AnonymousMemory, colours: u64) -> Result<Colours, UnmetRequest> {
    if region.pages() > MOST_PAGES {
        return Err(UnmetRequest::Other(format!(
            "{} pages cannot be coloured: {MOST_PAGES} is the limit, because each is a mapping of its own",
            region.pages()
        )));
    }
    // Half as many more, because the kernel's pages do not have all colours equally often.
    let spare = region.pages() / 2 + usize::try_from(colours).unwrap_or(0);
    let pool = AnonymousMemory::new((region.pages() + spare) * PAGE_SIZE)
        .map_err(|error| UnmetRequest::refused("allocating pages to choose from", &error))?;
    let keep_small =
        [region, &pool].into_iter().try_for_each(|region| sys::without_huge_pages(&region.addresses()));
    keep_small.map_err(|error| UnmetRequest::refused("keeping huge pages out", &error))?;
    pool.touch_all(0..pool.pages());
    let mut by_colour = vec![vec![]; usize::try_from(colours).unwrap_or(0)];
    for (page, frame) in frames(&pool)?.into_iter().enumerate() {
        by_colour[to_usize(frame % colours)].push(page);
    }
    let mut in_order = 0;
    for page in 0..region.pages() {
        let wanted = page % by_colour.len();
        let chosen = by_colour[wanted].pop();
        in_order += usize::from(chosen.is_some());
        // A colour without pages is replaced by the most frequent one.
        let chosen = chosen.or_else(|| by_colour.iter_mut().max_by_key(|pages| pages.len())?.pop());
        if let Some(chosen) = chosen {
            region
                .take(page, &pool, chosen)
                .map_err(|error| UnmetRequest::refused("moving a page", &error))?;
        }
    }
    Ok(Colours { colours, in_order, pages: region.pages() })
}

/// The page frame number of each page, which all must be there.
fn frames(region: &AnonymousMemory) -> Result<Vec<u64>, UnmetRequest> {
    let failed = |error: &io::Error| UnmetRequest::refused("reading page frame numbers", error);
    let file = File::open("/proc/self/pagemap").map_err(|error| failed(&error))?;
    let mut entries = vec![0; region.pages() * 8];
    let first = (region.addresses().start / PAGE_SIZE * 8) as u64;
    file.read_exact_at(&mut entries, first).map_err(|error| failed(&error))?;
    // The lower 55 bits of an entry are the number; users without privileges see zeros.
    let number = |entry: &[u8]| {
        let entry = entry.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        entry & ((1 << 55) - 1)
    };
    let frames: Vec<u64> = entries.chunks_exact(8).map(number).collect();
    if frames.contains(&0) {
        return Err(UnmetRequest::Other(
            "pages cannot be coloured: the kernel shows page frame numbers to holders of CAP_SYS_ADMIN only"
                .to_owned(),
        ));
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gondwana_topology::{Bytes, Cache};

    fn machine(size: u64, ways: u32) -> Machine {
        let level_1 = Cache { level: 1, size: Bytes(48 << 10), ways: 12, ..Cache::default() };
        let level_2 = Cache { level: 2, size: Bytes(size), ways, ..Cache::default() };
        Machine { caches: vec![level_1, level_2], ..Machine::uniform(1, 1, Bytes(1 << 30)) }
    }

    #[test]
    fn colours_are_pages_in_one_way_of_the_cache() {
        assert_eq!(colours(&machine(1 << 20, 16)), Some(16));
        // One colour counts as none, and so does a cache with unknown associativity.
        assert_eq!(colours(&machine(64 << 10, 16)), None);
        assert_eq!(colours(&machine(1 << 20, 0)), None);
        assert_eq!(colours(&Machine::uniform(1, 1, Bytes(1 << 30))), None);
    }

    #[test]
    fn pages_cycle_through_the_colours_or_a_reason_is_given() {
        let region = AnonymousMemory::new(100 * PAGE_SIZE).unwrap();
        match colour(&region, 8) {
            Ok(found) => {
                let frames = frames(&region).unwrap();
                let in_order = (0..).zip(&frames).filter(|(page, frame)| **frame % 8 == page % 8).count();
                assert_eq!(found, Colours { colours: 8, in_order, pages: 100 });
                // The kernel may give pages of few colours, but not of one only.
                assert!(in_order > 50, "{found:?}");
            }
            Err(remark) => assert!(remark.to_string().contains("CAP_SYS_ADMIN"), "{remark}"),
        }
    }

    #[test]
    fn more_pages_than_mappings_are_refused() {
        let region = AnonymousMemory::new((MOST_PAGES + 1) * PAGE_SIZE).unwrap();
        let refused = colour(&region, 8).unwrap_err().to_string();
        assert!(refused.contains("16385 pages cannot be coloured"), "{refused}");
    }
}
