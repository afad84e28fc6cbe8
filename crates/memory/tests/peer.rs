//! A node whose memory is read by one-sided accesses, by itself: the only test of its file, because a process has one span.

use gondwana_memory::{
    Access, Capabilities, Mechanism, PAGE_SIZE, Pages, Peer, RemoteAccess, RemoteMemory, SPAN_BASE,
    SharedWords, TableLayout, Writers, claim, complete_claim, empty_frames, post_notice, probe_userfaultfd,
};
use gondwana_racing::{RacingBytes, RacingBytesMut};
use gondwana_topology::{NodeId, NodeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const PAGES: u32 = 64;

/// More than a reader bitmap has bits.
const NODES: u16 = 200;

/// The node that reads.
const READER: u16 = 150;

fn reader() -> NodeSet {
    NodeSet::only(NodeId(READER))
}

/// Another transport, as one between computers would be: it copies frames, which this process does not see, and updates
/// words, and cannot stop the home's threads.
struct CopyingTransport {
    frames: File,
    words: Vec<AtomicU64>,
}

impl CopyingTransport {
    fn new(frames: OwnedFd) -> Self {
        let words = (0..TableLayout::new(PAGES, NODES).words()).map(|_| AtomicU64::new(0)).collect();
        Self { frames: frames.into(), words }
    }
}

impl SharedWords for CopyingTransport {
    fn load(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Acquire)
    }

    fn store(&self, word: usize, value: u64) {
        self.words[word].store(value, Ordering::Release);
    }

    fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<u64, u64> {
        self.words[word].compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl RemoteMemory for CopyingTransport {
    fn capabilities(&self) -> Capabilities {
        Capabilities { mapped: false, stops_writers: false }
    }

    fn layout(&self) -> TableLayout {
        TableLayout::new(PAGES, NODES)
    }

    fn read(&self, first: u32, into: RacingBytesMut<'_>) {
        let mut bytes = vec![0; into.len()];
        self.frames.read_exact_at(&mut bytes, u64::from(first) * PAGE_SIZE as u64).unwrap();
        into.copy_from((&bytes).into());
    }
}

fn first_byte(bytes: RacingBytes<'_>) -> u8 {
    let mut byte = [0];
    bytes.part(0..1).copy_to(&mut byte);
    byte[0]
}

#[test]
fn nodes_read_what_is_exposed() {
    if let Err(missing) = probe_userfaultfd() {
        eprintln!("skipped: userfaultfd is not to be had here: {missing:?}");
        return;
    }
    // SAFETY: no other thread uses the addresses, and there are no data segments.
    let mut pages =
        unsafe { Pages::new(PAGES, &[], false, Mechanism::Userfaultfd, empty_frames().unwrap()).unwrap() };
    assert!(pages.handover().is_none(), "no peer was admitted yet");
    assert!(pages.admit_peers(NODES).unwrap());
    let handed = || pages.handover().unwrap().map(|fd| fd.try_clone_to_owned().unwrap());
    let mut swapped = handed();
    swapped.swap(0, 1);
    assert!(Peer::new(3, NODES, swapped, pages.geometry()).is_err(), "the order matters");
    let home = Peer::new(3, NODES, handed(), pages.geometry()).unwrap();

    assert_eq!(claim(&home, READER, 0, PAGES, RemoteAccess::Read), 0, "everything is withdrawn");
    pages.protect(0, 8, Access::Write).unwrap();
    let address = |page: u32| (SPAN_BASE + page as usize * PAGE_SIZE) as *mut u8;
    let value = |page: u32| 100 + u8::try_from(page).unwrap();
    for page in 0..8 {
        // SAFETY: the page has just been made writable.
        unsafe { address(page).write_volatile(value(page)) };
    }
    for page in [0, 1, 2, 4, 5] {
        pages.expose(page, Writers::Compared, None);
    }
    pages.protect(6, 1, Access::Read).unwrap();
    pages.expose(6, Writers::Noted, None);
    assert_eq!(claim(&home, READER, 0, 1, RemoteAccess::Write), 0, "it is not exposed to writers");

    let withdraw =
        |pages: &mut Pages, page| pages.withdraw(page, |node| panic!("node {node} holds page {page}"));
    let logged = |pages: &Pages| {
        let mut logged = vec![];
        pages.logged_reads(|page| logged.push(page));
        logged
    };
    assert_eq!(claim(&home, READER, 1, 7, RemoteAccess::Read), 2, "page 3 is withdrawn");
    assert_eq!(logged(&pages), [1, 2], "few pages are copied beside their writers");
    assert_eq!(claim(&home, NODES, 0, 1, RemoteAccess::Read), 0, "there is no such node");
    assert_eq!(claim(&home, READER, 4, PAGES, RemoteAccess::Read), 3, "exclusive and shared pages in one go");
    assert_eq!(logged(&pages), [], "a claim of many takes write access");
    let readers = |pages: &Pages, range| {
        let mut readers = vec![];
        pages.readers(range, |page, nodes| readers.push((page, nodes)));
        readers
    };
    assert_eq!(readers(&pages, 0..u32::MAX), [1, 2, 4, 5, 6].map(|page| (page, reader())));
    assert_eq!(readers(&pages, 2..5), [2, 4].map(|page| (page, reader())));
    for page in [1, 2, 4, 5, 6] {
        assert_eq!(first_byte(home.frames(page..page + 1).unwrap()), value(page));
        let found = withdraw(&mut pages, page);
        assert!(pages.is_same(&home, page), "it is compared with itself here");
        let beside = page < 4;
        assert_eq!((found.readers, found.beside_writers), (reader(), beside), "page {page}");
        assert_eq!(found.taken, [4, 5].contains(&page), "page {page}");
        assert_eq!(pages.access(page), if beside { Access::Write } else { Access::Read }, "page {page}");
    }
    assert_eq!(withdraw(&mut pages, 0).readers, NodeSet::EMPTY, "no node has claimed it");
    assert_eq!(readers(&pages, 0..PAGES), [], "known already");
    assert_eq!(pages.access(0), Access::Write);

    // The node that becomes home takes the write access as well.
    pages.expose(0, Writers::ToBeStopped, Some(RemoteAccess::Home));
    assert_eq!(claim(&home, READER, 0, 2, RemoteAccess::Home), 1, "page 1 is withdrawn");
    // The home waits until it has copied the page.
    assert_eq!(readers(&pages, 0..1), [], "the page is locked");
    complete_claim(&home, 0, 1);
    assert_eq!((withdraw(&mut pages, 0).home, pages.access(0)), (Some(READER), Access::Read));

    // The access is what the kernel enforces: once given back, the program writes again.
    pages.protect(1, 2, Access::Read).unwrap();
    pages.protect(1, 2, Access::Write).unwrap();
    // SAFETY: writable again.
    unsafe { address(1).write_volatile(7) };
    pages.expose(1, Writers::ToBeStopped, None);
    pages.expose(2, Writers::Compared, None);
    assert_eq!(claim(&home, READER, 1, 2, RemoteAccess::Read), 2, "both kinds in one go");
    let (first, second) = (withdraw(&mut pages, 1), withdraw(&mut pages, 2));
    assert_eq!([first.taken, second.taken], [true, false]);
    assert_eq!([first.beside_writers, second.beside_writers], [false, true]);
    // Into pages that are not in use, as a reader does on its own node: here into the home's own.
    pages.install_from(&home, 1, 1, Access::Read);
    assert_eq!(first_byte(pages.contents(1, 1)), 7);

    // A notice is found once, with the node that wrote the page. A node that does not exist cannot post any.
    assert!(post_notice(&home, READER, 1, 17) && !post_notice(&home, NODES, 1, 17));
    let mut notices = vec![];
    pages.posted_notices(|origin, page| notices.push((origin, page)));
    pages.posted_notices(|origin, page| notices.push((origin, page)));
    assert_eq!(notices, [(1, 17)]);

    // The same claims through a transport that can do less.
    let [frames, ..] = pages.handover().unwrap();
    let far = CopyingTransport::new(frames.try_clone_to_owned().unwrap());
    assert_eq!(claim(&far, READER, 0, 1, RemoteAccess::Read), 0, "everything is withdrawn");
    // Its words are as a home writes them: exposed to readers, and exclusive, the second one to be compared.
    let exposed = [1 << 62, 2 << 62, 2 << 62 | 1 << 61];
    (20..).zip(exposed).for_each(|(word, value)| far.store(word, value));
    assert_eq!(claim(&far, READER, 20, 3, RemoteAccess::Read), 1, "writers of page 21 cannot be stopped");
    assert_eq!(claim(&far, READER, 22, 1, RemoteAccess::Read), 1, "page 22 is copied beside them");
    // Each node has nine pages of logs.
    let logs = TableLayout::new(PAGES, NODES).words() - usize::from(NODES - READER) * 9 * 512;
    assert_eq!(far.load(logs), 1, "logged");
    // Pages that this node has never had, and one that it has.
    pages.install_from(&far, 1, 1, Access::Read);
    pages.install_from(&far, 40, 2, Access::Read);
    assert_eq!([1, 40].map(|page| first_byte(pages.contents(page, 1))), [7, 0]);
    assert!(pages.is_same(&far, 1) && pages.is_same(&far, 40));
}
