//! Records made of what a monitor has kept.

use crate::{TransactionRow, WrittenRecord};
use gondwana_monitor::Aggregate;

impl From<&Aggregate> for TransactionRow {
    /// The row of a recording for a row of the aggregation table. Of one whose transactions are about several parts, the
    /// row of a [`Stretch`](crate::Stretch).
    fn from(aggregate: &Aggregate) -> Self {
        let like = &aggregate.key;
        Self {
            address: like.address,
            unit: like.unit,
            kind: like.kind,
            direction: like.direction,
            peer: like.peer,
            thread: like.thread.map_or(0, |thread| thread + 1),
            code: like.code,
            count: aggregate.count,
            bytes: aggregate.bytes,
        }
    }
}

impl WrittenRecord {
    /// The record of a page of 4096 bytes that begins at an address, of which these words of 4 bytes were written, one bit
    /// for each.
    #[must_use]
    pub fn of_words(address: u64, words: &[u64; 16]) -> Self {
        let mut record = Self { address, ..Self::default() };
        for block in 0..64 {
            let written = words[block / 4] >> (block % 4 * 16) & 0xffff;
            if written != 0 {
                record.blocks |= 1 << block;
                let bytes = (0..16)
                    .filter(|word| written >> word & 1 == 1)
                    .fold(0, |bytes, word| bytes | 0xf << (word * 4));
                record.bytes.push(bytes);
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_their_bytes() {
        let mut words = [0; 16];
        words[0] = 0b101 | 1 << 16;
        words[15] = 0xffff << 48 | 1 << 47;
        let record = WrittenRecord::of_words(0x5000, &words);
        assert_eq!((record.address, record.blocks), (0x5000, 0b11 | 0b11 << 62));
        assert_eq!(record.bytes, [0xf0f, 0xf, 0xf << 60, u64::MAX]);
        assert_eq!(WrittenRecord::of_words(0, &[0; 16]), WrittenRecord::default());
    }
}
