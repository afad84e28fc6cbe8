//! The inner loops of diffing.

use super::Masks;

/// One implementation of the inner loops. All of them compute the same.
///
/// Each function may be called only on a processor with the features it was compiled for; [`available`](super::choice::available)
/// lists only those. Memory that is called racing is accessed by the rules of [`gondwana_racing`]; all other memory is private.
pub(super) struct Kernel {
    /// The instruction set, for messages.
    #[cfg_attr(not(test), allow(dead_code))]
    pub name: &'static str,
    /// `compare(new, old, snapshot, masks)` reads each byte of `new`, which may be racing, once, sets the masks of the blocks that
    /// differ, copies those blocks to `snapshot` (which may be `old`) and returns which they are. Masks of equal
    /// blocks are left alone.
    pub compare: unsafe fn(*const u8, *const u8, *mut u8, &mut Masks) -> u64,
    /// `same(one, other)`: all bytes of two pages are equal; both may be racing.
    pub same: unsafe fn(*const u8, *const u8) -> bool,
    /// `compact(page, masks, changed, out)` writes the masked bytes one after another and returns how many. May
    /// write a block's length beyond the last.
    pub compact: unsafe fn(*const u8, &Masks, u64, *mut u8) -> usize,
    /// `scatter(data, masks, changed, page)` undoes `compact`: writes the data to the masked bytes of the page,
    /// which may be racing, and to no others. The masks must have as many bits as there is data.
    pub scatter: unsafe fn(&[u8], &Masks, u64, *mut u8),
    /// `store(source, masks, changed, page)` writes the masked bytes of one page to another, which may be
    /// racing, and no others.
    pub store: unsafe fn(*const u8, &Masks, u64, *mut u8),
}
