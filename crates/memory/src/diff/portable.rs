//! The inner loops for any processor, on 64-bit words.

use super::kernel::Kernel;
use super::{BLOCK_BYTES, BLOCKS, Masks, bits};
use gondwana_racing::access::{load_u64, store_u8, store_u16, store_u32};

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

/// The words of a block that have masked bytes: the offset of each in bytes, and the masks of its bytes.
#[inline(always)]
fn masked_words(mut block: u64) -> impl Iterator<Item = (usize, u64)> {
    std::iter::from_fn(move || {
        (block != 0).then(|| {
            let at = block.trailing_zeros() as usize & !(WORD_BYTES - 1);
            let mask = block >> at & 0xff;
            block &= !(0xff << at);
            (at, mask)
        })
    })
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
        for (at, mask) in masked_words(masks[block]) {
            // SAFETY: the word lies in the page, and the output has room for a block beyond the changed bytes.
            unsafe {
                let word = load(page.add(block * BLOCK_BYTES + at));
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
    let mut from = 0;
    for block in bits(changed) {
        // Whole words can be read of all but the end of the data.
        let mut last = [0; BLOCK_BYTES + WORD_BYTES];
        let bytes = match data.get(from..from + last.len()) {
            Some(bytes) => bytes,
            None => {
                let rest = &data[from..];
                last[..rest.len()].copy_from_slice(rest);
                &last
            }
        };
        // SAFETY: a block has no more bytes than these but the last word; its words lie in the page.
        unsafe { scatter_block(bytes.as_ptr(), masks[block], page.add(block * BLOCK_BYTES), &expand) }
        from += masks[block].count_ones() as usize;
    }
}

/// Scatters the bytes of one block.
///
/// # Safety
/// A word more than the block can be read from `data`; the masked bytes of the block can be written.
#[inline(always)]
unsafe fn scatter_block(data: *const u8, mask: u64, to: *mut u8, expand: impl Fn(*const u8, u64) -> u64) {
    let mut data = data;
    for (at, mask) in masked_words(mask) {
        let count = mask.count_ones() as usize;
        // SAFETY: by our contract.
        unsafe {
            let to = to.add(at);
            if is_long_run(mask) {
                store_run(to.add(mask.trailing_zeros() as usize), data, count);
            } else {
                store_pieces(to, expand(data, mask), mask);
            }
            data = data.add(count);
        }
    }
}

/// # Safety
/// See [`Kernel::store`].
pub(super) unsafe fn store(source: *const u8, masks: &Masks, changed: u64, page: *mut u8) {
    for block in bits(changed) {
        for (at, mask) in masked_words(masks[block]) {
            let at = block * BLOCK_BYTES + at;
            // SAFETY: the word lies in both pages.
            unsafe {
                let (from, to) = (source.add(at), page.add(at));
                if is_long_run(mask) {
                    let first = mask.trailing_zeros() as usize;
                    store_run(to.add(first), from.add(first), mask.count_ones() as usize);
                } else {
                    store_pieces(to, load(from), mask);
                }
            }
        }
    }
}

/// True of the mask of a word if its bytes are four or more that follow one another. Numbers keep some of their upper bytes when they
/// change, more or fewer, so that most masks are like that: no branch of [`store_run`] depends on how many.
#[inline(always)]
fn is_long_run(mask: u64) -> bool {
    let run = mask >> mask.trailing_zeros();
    run & (run + 1) == 0 && run >= 0xf
}

/// Writes `count` bytes, four to eight, in two pieces that overlap.
///
/// # Safety
/// So many bytes can be read from `data`, which nobody writes, and written to `to`.
#[inline(always)]
unsafe fn store_run(to: *mut u8, data: *const u8, count: usize) {
    // SAFETY: by our contract.
    unsafe {
        let [lower, upper] =
            [0, count - 4].map(|at| u32::from_le(data.add(at).cast::<u32>().read_unaligned()));
        store_u32(to, lower);
        store_u32(to.add(count - 4), upper);
    }
}

/// Writes the masked bytes of a word, at least one, in the widest pieces that contain no other.
///
/// # Safety
/// `to` must be valid for writes of eight bytes.
#[inline(always)]
unsafe fn store_pieces(to: *mut u8, word: u64, mask: u64) {
    // SAFETY: every piece lies in the eight bytes.
    unsafe {
        store_half(to, (word & 0xffff_ffff) as u32, mask & 0xf);
        store_half(to.add(4), (word >> 32) as u32, mask >> 4);
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
