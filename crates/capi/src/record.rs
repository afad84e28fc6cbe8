//! What is remembered of a block of memory, on the page before it: any thread of any node finds it there.

use crate::backend::Block;
use crate::error::Error;
use crate::installed::backend;
use gondwana_page::PAGE_SIZE;
use gondwana_rset::{MemoryPolicy, Placement, RSet};
use gondwana_topology::NodeId;
use libc::c_int;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;

/// How a block was asked for. Numbers only: every pattern of bits is a value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    magic: u64,
    /// Of the block itself: a copy of a record elsewhere is none.
    address: usize,
    pages: usize,
    rset: RSet,
    policy: c_int,
    /// The node from whose point of view pages were placed, or `EACH_PAGE`.
    seen_from: u32,
    stride: u64,
}

/// What is there at the beginning of the record of a block that is in use.
const MAGIC: u64 = u64::from_le_bytes(*b"gw_alloc");

/// Each page has its own point of view.
const EACH_PAGE: u32 = u32::MAX;

/// The policies by their numbers in C.
const FLOAT: c_int = 1;
const LOCAL: c_int = 2;
const REMOTE: c_int = 3;
const STRIPED: c_int = 4;
const BLOCK: c_int = 5;

/// The policy that a number of C and a stride mean.
pub(crate) fn policy(number: c_int, stride: u64) -> Result<MemoryPolicy, Error> {
    let policy = match (number, NonZeroU64::new(stride)) {
        (STRIPED, Some(stride)) => return Ok(MemoryPolicy::Striped(stride)),
        (STRIPED, None) => {
            return Err(Error::invalid("the stride is 0: GW_STRIPED needs pages on each node"));
        }
        (FLOAT, _) => MemoryPolicy::Float,
        (LOCAL, _) => MemoryPolicy::Local,
        (REMOTE, _) => MemoryPolicy::Remote,
        (BLOCK, _) => MemoryPolicy::Block,
        (unknown, _) => return Err(Error::invalid(format!("there is no policy numbered {unknown}"))),
    };
    match stride {
        0 => Ok(policy),
        _ => Err(Error::invalid(format!("the stride is {stride}: only GW_STRIPED has one, others take 0"))),
    }
}

impl Record {
    /// Remembers how a block was asked for.
    ///
    /// # Safety
    /// The block with the page before it is there and nobody else's.
    pub(crate) unsafe fn write(block: &Block, pages: usize, rset: RSet, number: c_int, stride: u64) {
        let address = block.address;
        let seen_from = block.seen_from.map_or(EACH_PAGE, |node| node.0.into());
        let record = Self { magic: MAGIC, address, pages, rset, policy: number, seen_from, stride };
        // SAFETY: the page belongs to the block, is larger than this, and is aligned.
        unsafe { Self::place(block.address).write(record) };
    }

    /// What is remembered of a block that a program passes.
    pub(crate) fn of(address: usize) -> Result<Self, Error> {
        let mut record = MaybeUninit::<Self>::zeroed();
        // SAFETY: as many bytes as there are, all of them with a value.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(record.as_mut_ptr().cast::<u8>(), size_of::<Self>()) };
        let found = address.is_multiple_of(PAGE_SIZE)
            && address > PAGE_SIZE
            && backend().peek(Self::place(address) as usize, bytes);
        // SAFETY: any bytes are a record.
        let record = unsafe { record.assume_init() };
        if !found || record.magic != MAGIC || record.address != address {
            let what = if address == 0 { "NULL is" } else { "this is" };
            return Err(Error::invalid(format!("{what} no memory from gw_alloc, or memory that was freed")));
        }
        Ok(record)
    }

    /// Forgets a block that is about to be returned.
    ///
    /// # Safety
    /// [`Record::of`] has found it, and nobody uses the block any more.
    pub(crate) unsafe fn erase(&self) {
        // SAFETY: the record is there.
        unsafe { (&raw mut (*Self::place(self.address())).magic).write_volatile(0) };
    }

    fn place(address: usize) -> *mut Self {
        (address - PAGE_SIZE) as *mut Self
    }

    /// The address of the block.
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// The pages of the block.
    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// What was asked for.
    pub(crate) fn placement(&self) -> Result<Placement, Error> {
        Ok(Placement::new(policy(self.policy, self.stride)?, &self.rset, backend().machine()?)?)
    }

    /// The node that was asked for a page; `None` where the system was to choose, or does so at each touch.
    pub(crate) fn asked(&self, placement: &Placement, page: u64) -> Option<NodeId> {
        // No node is EACH_PAGE.
        let seen_from = u16::try_from(self.seen_from).ok().map(NodeId);
        match seen_from {
            None if placement.follows_touch() => None,
            here => placement.node_of(page, self.pages as u64, here.unwrap_or_default()),
        }
    }
}
