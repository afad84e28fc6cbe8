//! The inner loops with vector instructions of x86-64.

use super::kernel::Kernel;
use super::{BLOCK_BYTES, BLOCKS, Masks, bits, portable};
use std::arch::asm;
use std::arch::x86_64::*;

/// Byte masks, compression and masked stores of whole blocks (AVX-512 BW and VBMI2).
pub(super) static AVX512: Kernel = Kernel {
    name: "avx512",
    compare: compare_avx512,
    same: same_avx512,
    compact: compact_avx512,
    scatter: scatter_avx512,
    store: store_avx512,
};

/// Compares 32 bytes and moves 8 bytes at a time. Not by PEXT and PDEP: several processors that have AVX2 take
/// hundreds of cycles for them. AVX2 has no store that leaves out single bytes, so `store` is the portable one.
pub(super) static AVX2: Kernel = Kernel {
    name: "avx2",
    compare: compare_avx2,
    same: same_avx2,
    compact: compact_avx2,
    scatter: scatter_avx2,
    store: portable::store,
};

/// Reads a block that others may be writing, once.
///
/// # Safety
/// 64 bytes can be read.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn load_racing_512(from: *const u8) -> __m512i {
    let block;
    // SAFETY: by our contract.
    unsafe {
        asm!(
            "vmovdqu64 {block}, zmmword ptr [{from}]",
            block = lateout(zmm_reg) block,
            from = in(reg) from,
            options(nostack, preserves_flags, readonly)
        );
    }
    block
}

/// Writes the masked bytes of a block that other threads may be using, and no other.
///
/// # Safety
/// The masked ones of 64 bytes can be written.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn store_racing_512(to: *mut u8, mask: u64, block: __m512i) {
    // SAFETY: by our contract.
    unsafe {
        asm!(
            "vmovdqu8 zmmword ptr [{to}] {{{mask}}}, {block}",
            to = in(reg) to,
            mask = in(kreg) mask,
            block = in(zmm_reg) block,
            options(nostack, preserves_flags)
        );
    }
}

/// As [`load_racing_512`], half a block.
///
/// # Safety
/// 32 bytes can be read.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_racing_256(from: *const u8) -> __m256i {
    let half;
    // SAFETY: by our contract.
    unsafe {
        asm!(
            "vmovdqu {half}, ymmword ptr [{from}]",
            half = lateout(ymm_reg) half,
            from = in(reg) from,
            options(nostack, preserves_flags, readonly)
        );
    }
    half
}

/// # Safety
/// See [`Kernel::compare`].
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn compare_avx512(new: *const u8, old: *const u8, snapshot: *mut u8, masks: &mut Masks) -> u64 {
    let mut changed = 0;
    for (block, slot) in masks.iter_mut().enumerate().take(BLOCKS) {
        let offset = block * BLOCK_BYTES;
        // SAFETY: the block lies in all three pages.
        unsafe {
            let new_block = load_racing_512(new.add(offset));
            let old_block = _mm512_loadu_si512(old.add(offset).cast());
            let mask = _mm512_cmpneq_epi8_mask(new_block, old_block);
            if mask != 0 {
                *slot = mask;
                changed |= 1 << block;
                _mm512_storeu_si512(snapshot.add(offset).cast(), new_block);
            }
        }
    }
    changed
}

/// # Safety
/// See [`Kernel::same`].
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn same_avx512(one: *const u8, other: *const u8) -> bool {
    (0..BLOCKS * BLOCK_BYTES).step_by(BLOCK_BYTES).all(|at| {
        // SAFETY: the block lies in both pages.
        let (one, other) = unsafe { (load_racing_512(one.add(at)), load_racing_512(other.add(at))) };
        _mm512_cmpneq_epi64_mask(one, other) == 0
    })
}

/// # Safety
/// See [`Kernel::compact`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1")]
unsafe fn compact_avx512(page: *const u8, masks: &Masks, changed: u64, out: *mut u8) -> usize {
    let mut written = 0;
    for block in bits(changed) {
        // SAFETY: the block lies in the page, and the output has room for a block beyond the changed bytes.
        // Compressing into a register first: the form that compresses into memory is slow on some processors.
        unsafe {
            let bytes = _mm512_loadu_si512(page.add(block * BLOCK_BYTES).cast());
            _mm512_storeu_si512(out.add(written).cast(), _mm512_maskz_compress_epi8(masks[block], bytes));
        }
        written += masks[block].count_ones() as usize;
    }
    written
}

/// # Safety
/// See [`Kernel::scatter`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1")]
unsafe fn scatter_avx512(data: &[u8], masks: &Masks, changed: u64, page: *mut u8) {
    let mut rest = data;
    for block in bits(changed) {
        let mask = masks[block];
        let (bytes, after) = rest.split_at(mask.count_ones() as usize);
        // SAFETY: the load touches only the bytes of the slice, of which there are 1 to 64; the store touches
        // only the masked bytes of the block, which lies in the page.
        unsafe {
            let compacted = _mm512_maskz_loadu_epi8(u64::MAX >> (64 - bytes.len()), bytes.as_ptr().cast());
            let expanded = _mm512_maskz_expand_epi8(mask, compacted);
            store_racing_512(page.add(block * BLOCK_BYTES), mask, expanded);
        }
        rest = after;
    }
}

/// # Safety
/// See [`Kernel::store`].
#[target_feature(enable = "avx512f,avx512bw,bmi1")]
unsafe fn store_avx512(source: *const u8, masks: &Masks, changed: u64, page: *mut u8) {
    for block in bits(changed) {
        let offset = block * BLOCK_BYTES;
        // SAFETY: the block lies in both pages.
        unsafe {
            let bytes = _mm512_loadu_si512(source.add(offset).cast());
            store_racing_512(page.add(offset), masks[block], bytes);
        }
    }
}

/// # Safety
/// See [`Kernel::compare`].
#[target_feature(enable = "avx2")]
unsafe fn compare_avx2(new: *const u8, old: *const u8, snapshot: *mut u8, masks: &mut Masks) -> u64 {
    let mut changed = 0;
    for (block, slot) in masks.iter_mut().enumerate().take(BLOCKS) {
        let offset = block * BLOCK_BYTES;
        // SAFETY: both halves of the block lie in all three pages.
        unsafe {
            let low = load_racing_256(new.add(offset));
            let high = load_racing_256(new.add(offset + 32));
            let low_equal = _mm256_cmpeq_epi8(low, _mm256_loadu_si256(old.add(offset).cast()));
            let high_equal = _mm256_cmpeq_epi8(high, _mm256_loadu_si256(old.add(offset + 32).cast()));
            let low_mask = !_mm256_movemask_epi8(low_equal).cast_unsigned();
            let high_mask = !_mm256_movemask_epi8(high_equal).cast_unsigned();
            let mask = u64::from(high_mask) << 32 | u64::from(low_mask);
            if mask != 0 {
                *slot = mask;
                changed |= 1 << block;
                _mm256_storeu_si256(snapshot.add(offset).cast(), low);
                _mm256_storeu_si256(snapshot.add(offset + 32).cast(), high);
            }
        }
    }
    changed
}

/// # Safety
/// See [`Kernel::same`].
#[target_feature(enable = "avx2")]
unsafe fn same_avx2(one: *const u8, other: *const u8) -> bool {
    (0..BLOCKS * BLOCK_BYTES).step_by(BLOCK_BYTES / 2).all(|at| {
        // SAFETY: half a block lies in both pages.
        let (one, other) = unsafe { (load_racing_256(one.add(at)), load_racing_256(other.add(at))) };
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(one, other)) == -1
    })
}

/// For each mask of eight bytes, the shuffle that moves the masked ones together.
static COMPACT: [u64; 256] = shuffles(true);
/// For each mask of eight bytes, the shuffle that moves them back apart.
static EXPAND: [u64; 256] = shuffles(false);

const fn shuffles(compact: bool) -> [u64; 256] {
    // A source number with the top bit set makes the shuffle yield zero.
    let mut table = [u64::MAX; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut bytes = [0x80; 8];
        let mut apart = 0;
        let mut together = 0_u8;
        while apart < 8 {
            if mask >> apart & 1 == 1 {
                if compact {
                    bytes[together as usize] = apart;
                } else {
                    bytes[apart as usize] = together;
                }
                together += 1;
            }
            apart += 1;
        }
        table[mask] = u64::from_le_bytes(bytes);
        mask += 1;
    }
    table
}

/// # Safety
/// `from` must be valid for reads of eight bytes.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn shuffle(from: *const u8, order: u64) -> u64 {
    // SAFETY: by our contract.
    let bytes = unsafe { _mm_loadl_epi64(from.cast()) };
    _mm_cvtsi128_si64(_mm_shuffle_epi8(bytes, _mm_cvtsi64_si128(order.cast_signed()))).cast_unsigned()
}

/// # Safety
/// See [`Kernel::compact`].
#[target_feature(enable = "avx2,popcnt,bmi1")]
unsafe fn compact_avx2(page: *const u8, masks: &Masks, changed: u64, out: *mut u8) -> usize {
    let mut written = 0;
    for block in bits(changed) {
        for (index, mask) in masks[block].to_le_bytes().into_iter().enumerate() {
            // SAFETY: the word lies in the page, and the output has room for a block beyond the changed bytes.
            unsafe {
                let word = shuffle(page.add(block * BLOCK_BYTES + index * 8), COMPACT[usize::from(mask)]);
                out.add(written).cast::<u64>().write_unaligned(word);
            }
            written += mask.count_ones() as usize;
        }
    }
    written
}

/// # Safety
/// See [`Kernel::scatter`].
#[target_feature(enable = "avx2,popcnt,bmi1")]
unsafe fn scatter_avx2(data: &[u8], masks: &Masks, changed: u64, page: *mut u8) {
    let expand = |source: *const u8, mask: u64| {
        // SAFETY: `scatter_with` passes eight readable bytes.
        unsafe { shuffle(source, EXPAND[(mask & 0xff) as usize]) }
    };
    // SAFETY: by our contract.
    unsafe { portable::scatter_with(data, masks, changed, page, expand) }
}
