//! Frames of functions, as compilers describe them for exceptions.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use std::ops::Range;

/// A function of which a table describes the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFunction {
    /// The addresses of its code.
    pub code: Range<u64>,
    /// The address of its entry in the table.
    pub entry: u64,
}

/// The functions that a table in memory at `address`, in the format of the section `.eh_frame`, describes, in its order; those in front of
/// the first entry that makes no sense.
#[must_use]
pub fn described_functions(table: &[u8], address: u64) -> Vec<DescribedFunction> {
    let bases = BaseAddresses::default().set_eh_frame(address);
    let frames = EhFrame::new(table, LittleEndian);
    let mut entries = frames.entries(&bases);
    let mut functions = vec![];
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { break };
        functions.push(DescribedFunction {
            code: entry.initial_address()..entry.end_address(),
            entry: address + entry.offset() as u64,
        });
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of one common entry, and one of a function of eight bytes.
    fn table(code: u64) -> Vec<u8> {
        let mut bytes = vec![];
        let common = *b"\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x00\x0c\x07\x08\x90\x01\x00\x00";
        bytes.extend(20_u32.to_le_bytes());
        bytes.extend(common);
        bytes.extend(24_u32.to_le_bytes());
        bytes.extend(28_u32.to_le_bytes());
        bytes.extend(code.to_le_bytes());
        bytes.extend(8_u64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn functions_are_where_the_table_says() {
        let functions = described_functions(&table(0x5000), 0x1000);
        assert_eq!(functions, [DescribedFunction { code: 0x5000..0x5008, entry: 0x1000 + 24 }]);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let mut table = table(0x5000);
        // The entry names no common one.
        table[28] = 3;
        assert_eq!(described_functions(&table, 0x1000), []);
        assert_eq!(described_functions(&table[..10], 0x1000), []);
        assert_eq!(described_functions(&[], 0x1000), []);
    }
}
