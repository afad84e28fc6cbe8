//! A node whose memory is visited, by itself: the only test of its file, because a process has one span.

use gondwana_memory::{
    Access, Mechanism, Neighbour, PAGE_SIZE, Pages, Purpose, SPAN_BASE, Writers, empty_frames,
    probe_userfaultfd,
};
use gondwana_racing::RacingBytes;

const PAGES: u32 = 64;

/// The names that the visitor, node 5, leaves.
const NAMES: u64 = 1 << 5;

fn first_byte(bytes: RacingBytes<'_>) -> u8 {
    let mut byte = [0];
    bytes.part(0..1).copy_to(&mut byte);
    byte[0]
}

#[test]
fn visitors_read_what_is_open() {
    if let Err(missing) = probe_userfaultfd() {
        eprintln!("skipped: userfaultfd is not to be had here: {missing:?}");
        return;
    }
    // SAFETY: no other thread uses the addresses, and there are no data segments.
    let mut pages =
        unsafe { Pages::new(PAGES, &[], false, Mechanism::Userfaultfd, empty_frames().unwrap()).unwrap() };
    assert!(pages.offer().is_none(), "nobody was admitted yet");
    assert!(pages.admit().unwrap());
    let handed = || pages.offer().unwrap().map(|fd| fd.try_clone_to_owned().unwrap());
    let mut swapped = handed();
    swapped.swap(0, 1);
    assert!(Neighbour::new(3, swapped, pages.geometry()).is_err(), "the order matters");
    let home = Neighbour::new(3, handed(), pages.geometry()).unwrap();

    assert_eq!(home.visit(5, 0, PAGES, Purpose::Read), 0, "everything is closed");
    pages.protect(0, 8, Access::Write).unwrap();
    let address = |page: u32| (SPAN_BASE + page as usize * PAGE_SIZE) as *mut u8;
    for page in 0..8 {
        // SAFETY: the page has just been made writable.
        unsafe { address(page).write_volatile(100 + page as u8) };
    }
    for page in [0, 1, 2, 4, 5] {
        pages.open(page, Writers::Compared, None);
    }
    pages.protect(6, 1, Access::Read).unwrap();
    pages.open(6, Writers::Noted, None);
    assert_eq!(home.visit(5, 0, 1, Purpose::Write), 0, "writers are not welcome");

    let close = |pages: &mut Pages, page| pages.close(page, |node| panic!("node {node} holds page {page}"));
    let guests = |pages: &Pages| {
        let mut guests = vec![];
        pages.guests(64, |page| guests.push(page));
        guests
    };
    assert_eq!(home.visit(5, 1, 7, Purpose::Read), 2, "page 3 is closed");
    assert_eq!(guests(&pages), [1, 2], "few pages are copied beside their writers");
    assert_eq!(home.visit(58, 0, 1, Purpose::Read), 0, "there is no room for the name");
    assert_eq!(home.visit(5, 4, PAGES, Purpose::Read), 3, "exclusive and shared pages in one go");
    assert_eq!(guests(&pages), [], "who might copy many takes write access");
    let visited = |pages: &Pages, range| {
        let mut visited = vec![];
        pages.visited(range, |page, names| visited.push((page, names)));
        visited
    };
    assert_eq!(visited(&pages, 0..u32::MAX), [1, 2, 4, 5, 6].map(|page| (page, NAMES)));
    assert_eq!(visited(&pages, 2..5), [2, 4].map(|page| (page, NAMES)));
    for page in [1, 2, 4, 5, 6] {
        assert_eq!(first_byte(home.frames(page, 1)), 100 + page as u8);
        let visits = close(&mut pages, page);
        assert!(pages.is_same(&home, page), "it is compared with itself here");
        let beside = page < 4;
        assert_eq!((visits.names, visits.beside_writers), (NAMES, beside), "page {page}");
        assert_eq!(visits.taken, [4, 5].contains(&page), "page {page}");
        assert_eq!(pages.access(page), if beside { Access::Write } else { Access::Read }, "page {page}");
    }
    assert_eq!(close(&mut pages, 0).names, 0, "nobody was there");
    assert_eq!(visited(&pages, 0..PAGES), [], "known already");
    assert_eq!(pages.access(0), Access::Write);

    // Who becomes home takes the write access as well.
    pages.open(0, Writers::ToBeStopped, Some(Purpose::Home));
    assert_eq!(home.visit(5, 0, 2, Purpose::Home), 1, "page 1 is closed");
    assert_eq!((close(&mut pages, 0).home, pages.access(0)), (Some(5), Access::Read));

    // The access is what the kernel enforces: once given back, the program writes again.
    pages.protect(1, 2, Access::Read).unwrap();
    pages.protect(1, 2, Access::Write).unwrap();
    // SAFETY: writable again.
    unsafe { address(1).write_volatile(7) };
    pages.open(1, Writers::ToBeStopped, None);
    pages.open(2, Writers::Compared, None);
    assert_eq!(home.visit(5, 1, 2, Purpose::Read), 2, "both kinds in one go");
    let (first, second) = (close(&mut pages, 1), close(&mut pages, 2));
    assert_eq!([first.taken, second.taken], [true, false]);
    assert_eq!([first.beside_writers, second.beside_writers], [false, true]);
    // Into pages that are not in use, as a visitor does on its own node: here into the home's own.
    pages.install_from(&home, 1, 1, Access::Read);
    assert_eq!(first_byte(pages.contents(1, 1)), 7);
}
