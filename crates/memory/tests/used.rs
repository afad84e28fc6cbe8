//! Which pages have memory. One test: a process has one span.

use gondwana_memory::{Access, Mechanism, PAGE_SIZE, Pages, empty_frames};

const PAGES: u32 = 4096;

#[test]
fn runs_of_used_pages_are_found_and_small_gaps_are_part_of_them() {
    // SAFETY: nobody else uses the span, and there are no data segments.
    let mut pages =
        unsafe { Pages::new(PAGES, &[], false, Mechanism::Mprotect, empty_frames().unwrap()).unwrap() };
    assert_eq!(pages.next_used(0..PAGES), None);
    pages.protect(0, PAGES, Access::None).unwrap();
    assert_eq!(pages.next_used(0..PAGES), None, "what nobody may use needs no memory");
    for page in [100, 120, 1000] {
        pages.install(page, &[1; PAGE_SIZE], Access::Read);
    }
    assert_eq!(pages.next_used(0..PAGES), Some(100..121));
    assert_eq!(pages.next_used(101..PAGES), Some(120..121));
    assert_eq!(pages.next_used(0..110), Some(100..101));
    assert_eq!(pages.next_used(0..100), None);
    assert_eq!(pages.next_used(121..PAGES), Some(1000..1001));
    assert_eq!(pages.next_used(1001..PAGES), None);
    pages.install(PAGES - 1, &[1; PAGE_SIZE], Access::Read);
    assert_eq!(pages.next_used(1001..PAGES), Some(PAGES - 1..PAGES));
}
