//! Byte-granular diffs: the bytes that a node wrote to a page since it made the page's twin.
//!
//! A *twin* is a copy of a page made before its first local write; a *diff* contains the bytes in which the page now
//! differs from it (Cashmere, section 2.2). The grain is one byte, because C11 lets two threads write neighbouring
//! bytes without a race. The cost follows the bytes, not the runs: a page in which every second word changed is no
//! worse than one in which half of it changed in one piece.
//!
//! # Format
//!
//! All numbers are little-endian. A page is 64 blocks of 64 bytes.
//!
//! | field | size |
//! |---|---|
//! | blocks with a changed byte, one bit each | 8 |
//! | blocks of which every byte changed, one bit each | 8 |
//! | for each block that changed in part, a bit for each changed byte | 8 each |
//! | the changed bytes in ascending order | 1 each |
//!
//! The format delimits itself, so diffs can follow one another in a message.

mod choice;
mod footprint;
mod kernel;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use footprint::Footprint;

use crate::{PAGE_SIZE, PageBytes};
use gondwana_racing::{RacingBytes, RacingBytesMut};
use kernel::Kernel;
use std::mem::MaybeUninit;
use thiserror::Error;

/// Bytes in a block: one 64-bit mask has a bit for each.
const BLOCK_BYTES: usize = 64;
/// Blocks in a page.
const BLOCKS: usize = PAGE_SIZE / BLOCK_BYTES;
/// The two block bitmaps.
const HEADER_BYTES: usize = 16;

/// For each block of a page, one bit for each byte.
type Masks = [u64; BLOCKS];

/// The longest diff of a page in bytes: every block changed in all bytes but one.
pub const MAX_DIFF_BYTES: usize = HEADER_BYTES + BLOCKS * 8 + PAGE_SIZE - BLOCKS;

/// Why bytes from a peer are no diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The bytes end before the diff does.
    #[error("the diff is cut short: {have} of {need} bytes")]
    Truncated {
        /// Bytes given.
        have: usize,
        /// Bytes needed to go on.
        need: usize,
    },
    /// More bytes follow the diff.
    #[error("{0} bytes follow the diff")]
    Trailing(usize),
    /// The bitmaps contradict each other, or a block is named without a changed byte.
    #[error("the bitmaps of the diff contradict each other")]
    Contradiction,
}

/// Appends to `out` the diff of `page` against `twin` and returns how many bytes differ.
///
/// Appends nothing when they are equal. Every byte of the page is read once, so the result is a state that the
/// page had byte by byte, even while threads write it.
///
/// # Panics
/// If `page` is not [`PAGE_SIZE`] long.
pub fn encode(page: RacingBytes<'_>, twin: &PageBytes, out: &mut Vec<u8>) -> usize {
    let mut snapshot = MaybeUninit::<PageBytes>::uninit();
    // SAFETY: the scratch page is ours and as long as a page.
    unsafe { encode_with(choice::best(), start_of(page), twin.as_ptr(), snapshot.as_mut_ptr().cast(), out) }
}

/// Like [`encode`], and applies the same diff to `twin` (Cashmere's *flush-update*).
///
/// For a page that local threads go on writing: a byte that changes during the call is either in this diff and
/// in the twin, or it differs from the twin still and the next diff has it.
///
/// # Panics
/// If `page` is not [`PAGE_SIZE`] long.
pub fn encode_and_refresh(page: RacingBytes<'_>, twin: &mut PageBytes, out: &mut Vec<u8>) -> usize {
    let twin = twin.as_mut_ptr();
    // SAFETY: twin and snapshot may be the same memory.
    unsafe { encode_with(choice::best(), start_of(page), twin, twin, out) }
}

/// Copies `page` to `twin`, each byte as it is at some time during the call; true if that changed the twin.
///
/// # Panics
/// If `page` is not [`PAGE_SIZE`] long.
pub fn refresh(page: RacingBytes<'_>, twin: &mut PageBytes) -> bool {
    let twin = twin.as_mut_ptr();
    // SAFETY: twin and snapshot may be the same memory, and only blocks that differ are copied.
    unsafe { (choice::best().compare)(start_of(page), twin, twin, &mut [0; BLOCKS]) != 0 }
}

/// True if two pages have the same bytes, each at some time during the call.
///
/// # Panics
/// If one is not [`PAGE_SIZE`] long.
#[must_use]
pub fn is_same(one: RacingBytes<'_>, other: RacingBytes<'_>) -> bool {
    // SAFETY: what `start_of` returns is a page.
    unsafe { (choice::best().same)(start_of(one), start_of(other)) }
}

/// Writes the bytes of a diff to a page, and no other byte, not even with its own value.
///
/// # Errors
/// If `bytes` is no diff, or not exactly one; nothing is written then. The bytes need not be trusted.
///
/// # Panics
/// If `page` is not [`PAGE_SIZE`] long.
pub fn apply(bytes: &[u8], page: RacingBytesMut<'_>) -> Result<(), Malformed> {
    Diff::parse(bytes)?.apply(page);
    Ok(())
}

/// Two-way diffing (Cashmere, section 2.2): writes to page and twin the bytes in which `incoming` differs from
/// the twin, of which each is read once. Returns how many.
///
/// Local writes since the twin stay: in a program without data races no other node wrote those bytes. No other byte
/// of the page is written, not even with its own value.
///
/// # Panics
/// If `page` is not [`PAGE_SIZE`] long.
pub fn merge(page: RacingBytesMut<'_>, twin: &mut PageBytes, incoming: RacingBytes<'_>) -> usize {
    // SAFETY: what `start_of` and `start_of_mut` return is a page.
    unsafe { merge_with(choice::best(), start_of_mut(page), twin, start_of(incoming)) }
}

/// The address of a whole page.
fn start_of(page: RacingBytes<'_>) -> *const u8 {
    assert_eq!(page.len(), PAGE_SIZE, "diffs are of pages");
    page.as_ptr()
}

fn start_of_mut(page: RacingBytesMut<'_>) -> *mut u8 {
    assert_eq!(page.len(), PAGE_SIZE, "diffs are of pages");
    page.as_mut_ptr()
}

/// A diff whose form has been checked: applying it stays inside a page.
#[derive(Debug, Clone, Copy)]
pub struct Diff<'a> {
    changed: u64,
    full: u64,
    masks: &'a [u8],
    data: &'a [u8],
}

impl<'a> Diff<'a> {
    /// Reads one diff that takes up all of `bytes`.
    ///
    /// # Errors
    /// If `bytes` is no diff or goes on after it. The bytes need not be trusted.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (diff, rest) = Self::split_from(bytes)?;
        if rest.is_empty() { Ok(diff) } else { Err(Malformed::Trailing(rest.len())) }
    }

    /// Reads the diff at the beginning of `bytes` and returns what follows it.
    ///
    /// # Errors
    /// If `bytes` does not begin with a diff. The bytes need not be trusted.
    pub fn split_from(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let truncated = |need| Malformed::Truncated { have: bytes.len(), need };
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(truncated(HEADER_BYTES))?;
        let (changed, full) = (load_le(&header[..8]), load_le(&header[8..]));
        if changed == 0 || full & !changed != 0 {
            return Err(Malformed::Contradiction);
        }
        let mask_bytes = (changed & !full).count_ones() as usize * 8;
        let (masks, rest) = rest.split_at_checked(mask_bytes).ok_or(truncated(HEADER_BYTES + mask_bytes))?;
        let mut data_bytes = full.count_ones() as usize * BLOCK_BYTES;
        for mask in masks.chunks_exact(8).map(load_le) {
            if mask == 0 || mask == u64::MAX {
                return Err(Malformed::Contradiction);
            }
            data_bytes += mask.count_ones() as usize;
        }
        let need = HEADER_BYTES + mask_bytes + data_bytes;
        let (data, rest) = rest.split_at_checked(data_bytes).ok_or(truncated(need))?;
        Ok((Self { changed, full, masks, data }, rest))
    }

    /// How many bytes of the page the diff changes, from 1 to [`PAGE_SIZE`].
    #[must_use]
    pub fn changed_bytes(&self) -> usize {
        self.data.len()
    }

    /// The masks of the blocks that changed in part, in ascending order.
    fn masks(&self) -> impl Iterator<Item = u64> {
        self.masks.chunks_exact(8).map(load_le)
    }

    /// Writes the changed bytes to a page, and no other byte of it, not even with its own value.
    ///
    /// # Panics
    /// If `page` is not [`PAGE_SIZE`] long.
    pub fn apply(&self, page: RacingBytesMut<'_>) {
        // SAFETY: what `start_of_mut` returns is a page.
        unsafe { self.apply_with(choice::best(), start_of_mut(page)) }
    }

    /// # Safety
    /// `page` must be valid for writes of a page; it may be racing. This processor must be able to run `kernel`.
    unsafe fn apply_with(&self, kernel: &Kernel, page: *mut u8) {
        // SAFETY: `page` by our contract; parsing made the data as long as the masks have bits.
        unsafe { (kernel.scatter)(self.data, &self.all_masks(), self.changed, page) }
    }

    /// The masks of all blocks.
    fn all_masks(&self) -> Masks {
        let mut masks = [0; BLOCKS];
        let mut partial = self.masks();
        for block in bits(self.changed) {
            let is_full = self.full >> block & 1 == 1;
            masks[block] = if is_full { u64::MAX } else { partial.next().unwrap_or(0) };
        }
        masks
    }
}

/// Appends to `out` a diff of the bytes that the diff `bytes` changes and the diff `later` does not, and returns how many there are.
/// Appends nothing if there are none.
///
/// # Errors
/// If either is no diff, or not exactly one.
pub fn encode_rest(bytes: &[u8], later: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
    let diff = Diff::parse(bytes)?;
    let (masks, later) = (diff.all_masks(), Diff::parse(later)?.all_masks());
    if bits(diff.changed).all(|block| masks[block] & later[block] == 0) {
        out.extend_from_slice(bytes);
        return Ok(diff.data.len());
    }
    let rest: Masks = std::array::from_fn(|block| masks[block] & !later[block]);
    let changed = (0..BLOCKS).filter(|&block| rest[block] != 0).fold(0, |set, block| set | 1 << block);
    if changed == 0 {
        return Ok(0);
    }
    encode_masks(changed, &rest, out);
    let begin = out.len();
    let mut data = diff.data.iter();
    for (block, byte) in
        bits(diff.changed).flat_map(|block| bits(masks[block]).map(move |byte| (block, byte)))
    {
        let value = data.next().copied().unwrap_or_default();
        if rest[block] >> byte & 1 == 1 {
            out.push(value);
        }
    }
    Ok(out.len() - begin)
}

/// Appends the part of a diff in front of the changed bytes. `changed` has a bit for each mask that is not 0.
fn encode_masks(changed: u64, masks: &Masks, out: &mut Vec<u8>) {
    let full =
        bits(changed).filter(|&block| masks[block] == u64::MAX).fold(0u64, |set, block| set | 1 << block);
    out.extend_from_slice(&changed.to_le_bytes());
    out.extend_from_slice(&full.to_le_bytes());
    for block in bits(changed & !full) {
        out.extend_from_slice(&masks[block].to_le_bytes());
    }
}

/// # Safety
/// `page`, which may be racing, and `twin` must be valid for reads and `snapshot` for writes of a page; none
/// overlaps another. This processor must be able to run `kernel`.
unsafe fn encode_with(
    kernel: &Kernel,
    page: *const u8,
    twin: *const u8,
    snapshot: *mut u8,
    out: &mut Vec<u8>,
) -> usize {
    let mut masks = [0; BLOCKS];
    // SAFETY: by our contract.
    let changed = unsafe { (kernel.compare)(page, twin, snapshot, &mut masks) };
    if changed == 0 {
        return 0;
    }
    // The kernels store whole vectors and then step back, hence the room behind the last byte.
    out.reserve(MAX_DIFF_BYTES + BLOCK_BYTES);
    encode_masks(changed, &masks, out);
    let begin = out.len();
    // SAFETY: `compare` filled the snapshot in every changed block. What is reserved leaves room for the changed
    // bytes and a block more, and `compact` wrote as many bytes as it returned.
    unsafe {
        let written = (kernel.compact)(snapshot, &masks, changed, out.as_mut_ptr().add(begin));
        out.set_len(begin + written);
        written
    }
}

/// # Safety
/// `page` must be valid for writes and `incoming` for reads of a page; both may be racing. This processor must be able to run
/// `kernel`.
unsafe fn merge_with(kernel: &Kernel, page: *mut u8, twin: &mut PageBytes, incoming: *const u8) -> usize {
    let mut masks = [0; BLOCKS];
    let twin = twin.as_mut_ptr();
    // SAFETY: by our contract; the twin is a whole page and may be compared and refreshed at once. It then holds the
    // incoming bytes in all changed blocks.
    unsafe {
        let changed = (kernel.compare)(incoming, twin, twin, &mut masks);
        (kernel.store)(twin, &masks, changed, page);
        bits(changed).map(|block| masks[block].count_ones() as usize).sum()
    }
}

/// The numbers of the bits that are set, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            bit
        })
    })
}

/// The number in eight bytes.
fn load_le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}
