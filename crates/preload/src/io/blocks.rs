//! Private memory for transfers.

use gondwana_memory::PAGE_SIZE;
use std::ops::{Deref, DerefMut};

/// The least block of a device, in bytes.
const LEAST_BLOCK: usize = 512;

/// Bytes, zero at first. Whole blocks are aligned to a page: files that are open for direct transfers (`O_DIRECT`) take nothing else.
pub(crate) struct Blocks {
    room: Vec<u128>,
    first: usize,
    length: usize,
}

impl Blocks {
    pub(crate) fn new(length: usize) -> Self {
        let alignment = if length.is_multiple_of(LEAST_BLOCK) { PAGE_SIZE } else { align_of::<u128>() };
        let room = vec![0_u128; (length + alignment).div_ceil(size_of::<u128>())];
        let first = room.as_ptr().cast::<u8>().align_offset(alignment);
        Self { room, first, length }
    }
}

impl Deref for Blocks {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the room has so many bytes from there on, all initialised.
        unsafe { std::slice::from_raw_parts(self.room.as_ptr().cast::<u8>().add(self.first), self.length) }
    }
}

impl DerefMut for Blocks {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the room is this value's own.
        unsafe {
            std::slice::from_raw_parts_mut(self.room.as_mut_ptr().cast::<u8>().add(self.first), self.length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_are_aligned_to_pages() {
        for (length, alignment) in [(0, 1), (1, 16), (511, 16), (512, PAGE_SIZE), (3 * PAGE_SIZE, PAGE_SIZE)]
        {
            let mut blocks = Blocks::new(length);
            assert!(blocks.len() == length && blocks.iter().all(|&byte| byte == 0));
            assert!((blocks.as_ptr() as usize).is_multiple_of(alignment), "{length}");
            blocks.fill(1);
        }
    }
}
