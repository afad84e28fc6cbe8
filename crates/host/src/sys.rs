//! System calls for the placement of threads and memory, with sets and slices instead of pointers.
//!
//! All are made directly: the C library lacks functions for most, and Gondwana's runtime library interposes some of
//! the others.

use gondwana_topology::{Id, IdSet, NodeId, NodeSet, ProcessorId, ProcessorSet};
use std::io;
use std::ops::Range;

/// Bits of the largest node mask of kernels; processor masks are not larger.
const NODE_BITS: usize = 1024;
const PROCESSOR_BITS: usize = 8192;

/// `maxnode` for a whole [`NodeSet`]: the kernel uses one bit less than it is passed.
const NODES: usize = NodeSet::CAPACITY + 1;

const MPOL_F_MEMS_ALLOWED: libc::c_ulong = 4;
const MPOL_MF_MOVE: libc::c_ulong = 2;
const MPOL_PREFERRED_MANY: libc::c_int = 5;

/// Where the kernel takes memory from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The kernel's default: local, else any node.
    Default,
    /// Near the thread that touches a page first.
    Local,
    /// From these nodes only, the nearest first.
    Bind(NodeSet),
    /// From these nodes page by page in turn.
    Interleave(NodeSet),
    /// From these nodes as long as they have any, else from others.
    Prefer(NodeSet),
}

impl Policy {
    fn number(&self) -> libc::c_int {
        match self {
            Self::Default => libc::MPOL_DEFAULT,
            Self::Local => libc::MPOL_LOCAL,
            Self::Bind(_) => libc::MPOL_BIND,
            Self::Interleave(_) => libc::MPOL_INTERLEAVE,
            // Kernels before 5.15 have only the preference for one node.
            Self::Prefer(nodes) if nodes.len() == 1 => libc::MPOL_PREFERRED,
            Self::Prefer(_) => MPOL_PREFERRED_MANY,
        }
    }

    /// The node mask for the kernel, and `maxnode`.
    fn nodes(&self) -> (*const u64, usize) {
        match self {
            Self::Default | Self::Local => (std::ptr::null(), 0),
            Self::Bind(nodes) | Self::Interleave(nodes) | Self::Prefer(nodes) => {
                (nodes.words().as_ptr(), NODES)
            }
        }
    }
}

/// The set that the kernel has written; numbers that our sets cannot have are left out.
fn set<I: Id, const WORDS: usize>(words: &[u64]) -> IdSet<I, WORDS> {
    let bits = (0..IdSet::<I, WORDS>::CAPACITY).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1);
    bits.map(I::from_index).collect()
}

/// The processors that a thread may run on; 0 is the calling thread.
pub fn affinity(thread: libc::pid_t) -> io::Result<ProcessorSet> {
    let mut words = [0_u64; PROCESSOR_BITS / 64];
    // SAFETY: the kernel writes no more bytes than it is told to.
    check(unsafe {
        gondwana_sys::syscall!(libc::SYS_sched_getaffinity, thread, size_of_val(&words), words.as_mut_ptr())
    })?;
    Ok(set(&words))
}

/// Binds a thread to processors; 0 is the calling thread.
pub fn set_affinity(thread: libc::pid_t, processors: &ProcessorSet) -> io::Result<()> {
    let words = processors.words();
    // SAFETY: the kernel reads as many bytes as it is told.
    check(unsafe {
        gondwana_sys::syscall!(libc::SYS_sched_setaffinity, thread, size_of_val(words), words.as_ptr())
    })
}

/// The nodes from which this process may have memory.
pub fn allowed_nodes() -> io::Result<NodeSet> {
    let mut words = [0_u64; NODE_BITS / 64];
    // SAFETY: the kernel writes no more bits than it is told to.
    check(unsafe {
        gondwana_sys::syscall!(
            libc::SYS_get_mempolicy,
            std::ptr::null_mut::<libc::c_int>(),
            words.as_mut_ptr(),
            NODE_BITS + 1,
            std::ptr::null_mut::<libc::c_void>(),
            MPOL_F_MEMS_ALLOWED,
        )
    })?;
    Ok(set(&words))
}

/// The calling thread's policy for memory; threads and programs that it starts inherit it.
pub fn policy() -> io::Result<Policy> {
    let mut mode = 0;
    let mut words = [0_u64; NODE_BITS / 64];
    // SAFETY: the kernel writes one int and no more bits than it is told to.
    check(unsafe {
        gondwana_sys::syscall!(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            words.as_mut_ptr(),
            NODE_BITS + 1,
            std::ptr::null_mut::<libc::c_void>(),
            0,
        )
    })?;
    let flags = libc::MPOL_F_NUMA_BALANCING | libc::MPOL_F_RELATIVE_NODES | libc::MPOL_F_STATIC_NODES;
    let nodes = set(&words);
    match mode & !flags {
        libc::MPOL_DEFAULT => Ok(Policy::Default),
        libc::MPOL_LOCAL => Ok(Policy::Local),
        libc::MPOL_BIND => Ok(Policy::Bind(nodes)),
        libc::MPOL_INTERLEAVE => Ok(Policy::Interleave(nodes)),
        // Before Linux 5.12 the local policy is reported in this way.
        libc::MPOL_PREFERRED if nodes.is_empty() => Ok(Policy::Local),
        libc::MPOL_PREFERRED | MPOL_PREFERRED_MANY => Ok(Policy::Prefer(nodes)),
        mode => {
            Err(io::Error::other(format!("the kernel has a memory policy numbered {mode}, unknown here")))
        }
    }
}

/// Changes the calling thread's policy for memory.
pub fn set_policy(policy: &Policy) -> io::Result<()> {
    let (nodes, maximum) = policy.nodes();
    // SAFETY: the kernel reads as many bits as it is told.
    check(unsafe { gondwana_sys::syscall!(libc::SYS_set_mempolicy, policy.number(), nodes, maximum) })
}

/// Changes the policy of a range of addresses, for pages that are not there yet.
pub fn set_policy_of(range: &Range<usize>, policy: &Policy) -> io::Result<()> {
    let (nodes, maximum) = policy.nodes();
    // SAFETY: the kernel reads as many bits as it is told. It changes where pages are, not what they hold.
    check(unsafe {
        gondwana_sys::syscall!(libc::SYS_mbind, range.start, range.len(), policy.number(), nodes, maximum, 0)
    })
}

/// Writes the node of each page of a process (0: this one) into `status`, or a negative error number.
pub fn nodes_of_pages(process: libc::pid_t, pages: &[usize], status: &mut [i32]) -> io::Result<()> {
    assert_eq!(pages.len(), status.len());
    // SAFETY: the kernel reads as many addresses as there are, and writes as many numbers.
    check(unsafe {
        gondwana_sys::syscall!(
            libc::SYS_move_pages,
            process,
            pages.len(),
            pages.as_ptr(),
            std::ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    })
}

/// Moves pages of this process to nodes; `status` is as for [`nodes_of_pages`].
pub fn move_pages(pages: &[usize], nodes: &[i32], status: &mut [i32]) -> io::Result<()> {
    assert_eq!((pages.len(), pages.len()), (nodes.len(), status.len()));
    // SAFETY: the kernel reads as many addresses and numbers as there are, and writes as many. It changes where pages
    // are, not what they hold.
    check(unsafe {
        gondwana_sys::syscall!(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            nodes.as_ptr(),
            status.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    })
}

/// The processor and the node on which the calling thread runs at this moment.
pub fn here() -> io::Result<(ProcessorId, NodeId)> {
    let (mut processor, mut node) = (0_u32, 0_u32);
    // SAFETY: the kernel writes two numbers.
    check(unsafe {
        gondwana_sys::syscall!(
            libc::SYS_getcpu,
            &raw mut processor,
            &raw mut node,
            std::ptr::null_mut::<libc::c_void>(),
        )
    })?;
    let number = |word| u16::try_from(word).map_err(io::Error::other);
    Ok((ProcessorId(number(processor)?), NodeId(number(node)?)))
}

/// Keeps the kernel from using huge pages in a range.
pub fn without_huge_pages(range: &Range<usize>) -> io::Result<()> {
    // SAFETY: this advice changes nothing that a program could read.
    check(unsafe {
        gondwana_sys::syscall!(libc::SYS_madvise, range.start, range.len(), libc::MADV_NOHUGEPAGE)
    })
}

/// Disables huge pages in this process, the programs that it executes and its children.
pub fn without_huge_pages_at_all() -> io::Result<()> {
    // SAFETY: touches no memory; which pages hold it is nothing that a program could read.
    check(unsafe { gondwana_sys::syscall!(libc::SYS_prctl, libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) })
}

/// Allocates the pages of a range as by a write, under the calling thread's policy.
pub fn populate(range: &Range<usize>) -> io::Result<()> {
    // SAFETY: this advice changes nothing that a program could read.
    check(unsafe {
        gondwana_sys::syscall!(libc::SYS_madvise, range.start, range.len(), libc::MADV_POPULATE_WRITE)
    })
}

/// Locks the pages of a range in memory, and allocates absent ones.
pub fn lock(range: &Range<usize>) -> io::Result<()> {
    // SAFETY: locking changes nothing that a program could read.
    check(unsafe { gondwana_sys::syscall!(libc::SYS_mlock, range.start, range.len()) })
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_bound_and_asked() {
        let before = affinity(0).unwrap();
        let one = ProcessorSet::only(before.first().unwrap());
        set_affinity(0, &one).unwrap();
        assert_eq!(affinity(0).unwrap(), one);
        assert_eq!(here().unwrap().0, one.first().unwrap());
        let none = set_affinity(0, &ProcessorSet::only(ProcessorId(4000))).unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn the_policy_of_a_thread_can_be_changed_and_asked() {
        let nodes = allowed_nodes().unwrap();
        for policy in [Policy::Bind(nodes), Policy::Interleave(nodes), Policy::Local, Policy::Default] {
            set_policy(&policy).unwrap();
            assert_eq!(super::policy().unwrap(), policy);
        }
        let nowhere = set_policy(&Policy::Bind(NodeSet::only(NodeId(250)))).unwrap_err();
        assert_eq!(nowhere.raw_os_error(), Some(libc::EINVAL));
    }
}
