//! Common pages, as one node sees them. One test: a process has one span.

use gondwana_memory::{Mechanism, PAGE_SIZE, Pages, SPAN_BASE, empty_frames, probe_userfaultfd};
use std::os::fd::AsFd;

const PAGES: u32 = 64;

fn place(page: u32) -> *mut u64 {
    (SPAN_BASE + page as usize * PAGE_SIZE) as *mut u64
}

#[test]
fn untouched_pages_become_common_around_what_is_private() {
    let mechanism = if probe_userfaultfd().is_ok() { Mechanism::Userfaultfd } else { Mechanism::Mprotect };
    // SAFETY: nobody else uses the span, and there are no data segments.
    let mut pages = unsafe { Pages::new(PAGES, &[], false, mechanism, empty_frames().unwrap()).unwrap() };
    let common = empty_frames().unwrap();
    assert!(pages.share(common.as_fd(), 0, 2).unwrap().is_some());
    // SAFETY: the program uses nothing there yet; the mapping fills what was excluded.
    unsafe {
        pages.exclude(3..5).unwrap();
        let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let allowed = libc::PROT_READ | libc::PROT_WRITE;
        let mapped = libc::mmap(place(3).cast(), 2 * PAGE_SIZE, allowed, how, -1, 0);
        assert_eq!(mapped, place(3).cast());
        place(3).write_volatile(7);
    }

    pages.touch_common(0, 8, None).unwrap();
    let common = |pages: &Pages| (0..9).map(|page| pages.is_common(page)).collect::<Vec<_>>();
    assert_eq!(common(&pages), [true, true, true, false, false, true, true, true, false]);
    assert_eq!(pages.next_used(0..PAGES), None, "they take memory as they are touched");
    // SAFETY: all of that is mapped, and no other thread uses it.
    unsafe {
        assert_eq!(place(3).read_volatile(), 7, "the private mapping is still there");
        for page in [1, 7] {
            assert_eq!(place(page).read_volatile(), 0);
            place(page).write_volatile(1);
        }
    }
    assert_eq!(pages.next_used(0..PAGES), Some(1..2));
    assert_eq!(pages.next_used(2..PAGES), Some(7..8));

    // Whoever goes on from a page that was touched gets memory for all that become common.
    pages.touch_common(8, 4, Some(7)).unwrap();
    let filled = if mechanism == Mechanism::Userfaultfd { Some(8..12) } else { None };
    assert_eq!(pages.next_used(8..PAGES), filled);
    // SAFETY: mapped, and no other thread uses it.
    assert_eq!(unsafe { place(9).read_volatile() }, 0);
    pages.touch_common(20, 4, Some(19)).unwrap();
    assert_eq!(pages.next_used(12..PAGES), None);

    // SAFETY: nobody uses the private mapping any more.
    unsafe { pages.include(3..5).unwrap() };
    assert_eq!(common(&pages)[..8], [true; 8]);
    // SAFETY: as above.
    assert_eq!(unsafe { place(3).read_volatile() }, 0);
}
