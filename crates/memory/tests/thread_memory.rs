//! The memory of threads as the node sees it that has it, and for a node that has not mapped it. All in one process, where its addresses are
//! fixed: one test.

use gondwana_memory::{PAGE_SIZE, ThreadMemory};
use std::sync::atomic::Ordering;

const NODES: u16 = 3;
const SPAN: u64 = 1 << 30;

/// A byte of this process, by its address.
fn byte(address: usize) -> &'static mut u8 {
    // SAFETY: the tests use addresses of their own part only, one at a time.
    unsafe { &mut *(address as *mut u8) }
}

#[test]
fn a_node_has_its_own_part_and_others_reach_it_by_words() {
    let file = ThreadMemory::file(NODES, SPAN).unwrap();
    let memory = ThreadMemory::map(1, NODES, SPAN, file, false).unwrap();
    let (all, own) = (memory.all(), memory.own());
    assert_eq!(own.len() as u64, ThreadMemory::part(NODES, SPAN));
    assert_eq!(all.len(), usize::from(NODES) * own.len());
    let nodes =
        [all.start, own.start, own.end - 1, own.end, all.end - 1].map(|address| memory.node_of(address));
    assert_eq!(nodes, [Some(0), Some(1), Some(1), Some(2), Some(2)]);
    assert_eq!([all.start - 1, all.end].map(|address| memory.node_of(address)), [None, None]);
    let reached = [all.start, own.start, own.end].map(|address| memory.out_of_reach(address));
    assert_eq!(reached, [Some(0), None, Some(2)]);

    // What threads of this node write is what others read, and the other way round.
    let at = own.start + 5 * PAGE_SIZE;
    *byte(at + 1) = 7;
    assert_eq!(memory.read(at, 16), [0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let word = memory.word(at).unwrap();
    assert_eq!(word.compare_exchange(0x700, 0x900, Ordering::SeqCst, Ordering::SeqCst), Ok(0x700));
    memory.write(at + 3, &[1, 2]);
    assert_eq!((*byte(at + 1), *byte(at + 3), *byte(at + 4)), (9, 1, 2));
    // Elsewhere there is nothing, and nothing is written.
    assert!(memory.word(own.end).is_none() && memory.word(at + 1).is_none());
    memory.write(own.end - 1, &[1, 2]);
    assert_eq!((memory.read(all.start, 8).len(), *byte(own.end - 1)), (0, 0));

    // A fork: what is written while parent and child part comes to be seen afterwards.
    let range = at..at + 2 * PAGE_SIZE;
    memory.begin_fork(&range).unwrap();
    *byte(at) = 5;
    assert_eq!(memory.read(at, 8)[0], 0);
    // SAFETY: nothing of this test is in the range.
    unsafe { memory.end_fork_in_parent(&range).unwrap() };
    assert_eq!((memory.read(at, 8)[0], *byte(at), *byte(at + 1)), (5, 5, 9));
    *byte(at) = 6;
    assert_eq!(memory.read(at, 8)[0], 6);
    // A thread without such memory forks, too.
    let none = own.start..own.start;
    memory.begin_fork(&none).unwrap();
    // SAFETY: as above.
    unsafe { memory.end_fork_in_parent(&none).unwrap() };

    // In a child, the memory is its own from then on.
    memory.end_fork_in_child(&none).unwrap();
    *byte(at) = 8;
    assert_eq!(memory.read(at, 8)[0], 6);
}
