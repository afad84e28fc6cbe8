//! The inner loops for any processor, on 64-bit words.

use super::kernel::Kernel;
use super::{BLOCK_BYTES, BLOCKS, Masks, bits};
use gondwana_racing::access::{load_u64, store_u8, store_u16, store_u32, store_u64};

pub(super) static KERNEL: Kernel = Kernel { name: "portable", compare, same, compact, scatter, store };

const WORD_BYTES: usize = 8;
const WORDS: usize = BLOCK_BYTES / WORD_BYTES;

/// Reads a number of a private page, which may be at any address.
///
/// # Safety
/// `from` must be valid for reads of eight bytes, which nobody writes.
unsafe fn load(from: *const u8) -> u64 {
    // SAFETY: by our contract.
    u64::from_le(unsafe { from.cast::<u64>().read_unaligned() })
}

/// Writes a number to a private page.
///
/// # Safety
/// `to` must be valid for writes of eight bytes, which nobody else uses.
unsafe fn write(to: *mut u8, value: u64) {
    // SAFETY: by our contract.
    unsafe { to.cast::<u64>().write_unaligned(value.to_le()) }
}

/// One bit for each byte that is not zero.
fn nonzero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let high_bits = (((word & LOW) + LOW) | word) & !LOW;
    // Each product bit that reaches the top byte comes from one byte only, so nothing carries.
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// # Safety
/// See [`Kernel::compare`].
unsafe fn compare(new: *const u8, old: *const u8, snapshot: *mut u8, masks: &mut Masks) -> u64 {
    let mut changed = 0;
    for (block, slot) in masks.iter_mut().enumerate().take(BLOCKS) {
        let offset = block * BLOCK_BYTES;
        let mut words = [0; WORDS];
        let mut mask = 0;
        for (index, word) in words.iter_mut().enumerate() {
            let at = offset + index * WORD_BYTES;
            // SAFETY: `at` lies in the page with the seven bytes after it.
            let (new_word, old_word) = unsafe { (load_u64(new.add(at)), load(old.add(at))) };
            *word = new_word;
            if new_word != old_word {
                mask |= nonzero_bytes(new_word ^ old_word) << (index * WORD_BYTES);
            }
        }
        if mask != 0 {
            *slot = mask;
            changed |= 1 << block;
            for (index, word) in words.iter().enumerate() {
                // SAFETY: as above.
                unsafe { write(snapshot.add(offset + index * WORD_BYTES), *word) };
            }
        }
    }
    changed
}

/// # Safety
/// See [`Kernel::same`].
unsafe fn same(one: *const u8, other: *const u8) -> bool {
    (0..BLOCKS * BLOCK_BYTES).step_by(WORD_BYTES).all(|at| {
        // SAFETY: `at` lies in both pages with the seven bytes after it.
        unsafe { load_u64(one.add(at)) == load_u64(other.add(at)) }
    })
}

/// # Safety
/// See [`Kernel::compact`].
unsafe fn compact(page: *const u8, masks: &Masks, changed: u64, out: *mut u8) -> usize {
    let mut written = 0;
    for block in bits(changed) {
        for index in 0..WORDS {
            let mask = masks[block] >> (index * WORD_BYTES) & 0xff;
            if mask == 0 {
                continue;
            }
            // SAFETY: the word lies in the page, and the output has room for a block beyond the changed bytes.
            unsafe {
                let word = load(page.add(block * BLOCK_BYTES + index * WORD_BYTES));
                write(out.add(written), compact_word(word, mask));
            }
            written += mask.count_ones() as usize;
        }
    }
    written
}

/// The masked bytes of a word, moved together at its low end.
fn compact_word(word: u64, mask: u64) -> u64 {
    if mask == 0xff {
        return word;
    }
    bits(mask)
        .enumerate()
        .fold(0, |compacted, (to, from)| compacted | (word >> (from * 8) & 0xff) << (to * 8))
}

/// The bytes at the low end of a word, moved apart to where the mask has bits.
fn expand_word(word: u64, mask: u64) -> u64 {
    if mask == 0xff {
        return word;
    }
    bits(mask).enumerate().fold(0, |expanded, (from, to)| expanded | (word >> (from * 8) & 0xff) << (to * 8))
}

/// # Safety
/// See [`Kernel::scatter`].
unsafe fn scatter(data: &[u8], masks: &Masks, changed: u64, page: *mut u8) {
    // SAFETY: by our contract.
    unsafe { scatter_with(data, masks, changed, page, |source, mask| expand_word(load(source), mask)) }
}

/// Scatters word by word. `expand` gets a pointer to eight readable bytes and a byte's mask.
///
/// # Safety
/// See [`Kernel::scatter`].
#[inline(always)]
pub(super) unsafe fn scatter_with(
    data: &[u8],
    masks: &Masks,
    changed: u64,
    page: *mut u8,
    expand: impl Fn(*const u8, u64) -> u64,
) {
    let mut rest = data;
    for block in bits(changed) {
        for index in 0..WORDS {
            let mask = masks[block] >> (index * WORD_BYTES) & 0xff;
            if mask == 0 {
                continue;
            }
            let (bytes, after) = rest.split_at(mask.count_ones() as usize);
            let word = if rest.len() >= WORD_BYTES {
                expand(rest.as_ptr(), mask)
            } else {
                let mut last = [0; WORD_BYTES];
                last[..bytes.len()].copy_from_slice(bytes);
                expand(last.as_ptr(), mask)
            };
            rest = after;
            // SAFETY: the word lies in the page.
            unsafe { store_word(page.add(block * BLOCK_BYTES + index * WORD_BYTES), word, mask) };
        }
    }
}

/// # Safety
/// See [`Kernel::store`].
pub(super) unsafe fn store(source: *const u8, masks: &Masks, changed: u64, page: *mut u8) {
    for block in bits(changed) {
        for index in 0..WORDS {
            let mask = masks[block] >> (index * WORD_BYTES) & 0xff;
            let at = block * BLOCK_BYTES + index * WORD_BYTES;
            // SAFETY: the word lies in both pages.
            unsafe { store_word(page.add(at), load(source.add(at)), mask) };
        }
    }
}

/// Writes the masked bytes of a word in the widest pieces that contain no other.
///
/// # Safety
/// `to` must be valid for writes of eight bytes.
#[inline(always)]
unsafe fn store_word(to: *mut u8, word: u64, mask: u64) {
    // SAFETY: every piece lies in the eight bytes.
    unsafe {
        match mask & 0xff {
            0 => {}
            0xff => store_u64(to, word),
            _ => {
                store_half(to, (word & 0xffff_ffff) as u32, mask & 0xf);
                store_half(to.add(4), (word >> 32) as u32, mask >> 4 & 0xf);
            }
        }
    }
}

/// # Safety
/// `to` must be valid for writes of four bytes.
#[inline(always)]
unsafe fn store_half(to: *mut u8, half: u32, mask: u64) {
    // SAFETY: every piece lies in the four bytes.
    unsafe {
        if mask == 0xf {
            return store_u32(to, half);
        }
        for pair in 0..2 {
            let at = to.add(pair * 2);
            let value = (half >> (pair * 16) & 0xffff) as u16;
            let [low, high] = value.to_le_bytes();
            match mask >> (pair * 2) & 3 {
                0 => {}
                1 => store_u8(at, low),
                2 => store_u8(at.add(1), high),
                _ => store_u16(at, value),
            }
        }
    }
}
