//! Reading the memory of another process.

use crate::mappings::Mapping;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are read at a time.
const PAGE: u64 = 4096;

/// The memory of a process while one of its threads is stopped. Pages are read once.
pub(crate) struct Memory<'a> {
    file: File,
    mappings: &'a [Mapping],
    pages: RefCell<HashMap<u64, Option<Box<[u8]>>>>,
}

impl<'a> Memory<'a> {
    pub(crate) fn open(process: u32, mappings: &'a [Mapping]) -> io::Result<Self> {
        let file = File::open(format!("/proc/{process}/mem"))?;
        Ok(Self { file, mappings, pages: RefCell::default() })
    }

    /// The word at an address; `None` if nothing is there.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        for (index, byte) in (0..).zip(&mut bytes) {
            let address = address.checked_add(index)?;
            *byte = self.byte(address)?;
        }
        Some(u64::from_le_bytes(bytes))
    }

    fn byte(&self, address: u64) -> Option<u8> {
        let page = address / PAGE * PAGE;
        let mut pages = self.pages.borrow_mut();
        let page_bytes = pages.entry(page).or_insert_with(|| self.page(page));
        page_bytes.as_ref()?.get(usize::try_from(address - page).ok()?).copied()
    }

    /// A page that is absent in one mapping of a file may be present in another one: the view of the runtime.
    fn page(&self, address: u64) -> Option<Box<[u8]>> {
        let read = |address| {
            let mut bytes = vec![0; usize::try_from(PAGE).ok()?];
            self.file.read_exact_at(&mut bytes, address).ok()?;
            Some(bytes.into_boxed_slice())
        };
        read(address).or_else(|| self.aliases(address).find_map(read))
    }

    /// Where else the same page of the same file is mapped.
    fn aliases(&self, address: u64) -> impl Iterator<Item = u64> {
        let holds = move |mapping: &&Mapping| mapping.is_shared && mapping.addresses.contains(&address);
        let own = self.mappings.iter().find(holds);
        let place = own.map(|own| (&own.file, own.offset + (address - own.addresses.start)));
        self.mappings.iter().filter_map(move |other| {
            let (file, offset) = place?;
            let length = other.addresses.end - other.addresses.start;
            let inside = offset.checked_sub(other.offset).filter(|inside| *inside < length)?;
            let there = other.addresses.start + inside;
            (other.file == *file && other.is_shared && there != address).then_some(there)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mappings;

    #[test]
    fn words_are_read_also_across_pages() {
        let mappings = mappings::of(std::process::id()).unwrap();
        let memory = Memory::open(std::process::id(), &mappings).unwrap();
        let bytes: Vec<u8> = (0..3 * PAGE).map(|index| (index % 251) as u8).collect();
        let start = bytes.as_ptr() as u64;
        for offset in [0, 1, PAGE - 3, PAGE, 2 * PAGE - 7] {
            let at = usize::try_from(offset).unwrap();
            let expected = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            assert_eq!(memory.word(start + offset), Some(expected));
        }
        assert_eq!(memory.word(16), None);
        assert_eq!(memory.word(u64::MAX - 3), None);
    }

    #[test]
    fn the_other_mapping_of_a_page_is_known() {
        let mapping = |start: u64, offset| Mapping {
            addresses: start..start + 2 * PAGE,
            offset,
            file: ("00:01".to_owned(), 5),
            is_shared: true,
            path: String::new(),
        };
        let other = Mapping { file: ("00:01".to_owned(), 6), ..mapping(9 * PAGE, 0) };
        let mappings = [mapping(4 * PAGE, PAGE), mapping(7 * PAGE, 0), other];
        let memory = Memory::open(std::process::id(), &mappings).unwrap();
        assert_eq!(memory.aliases(4 * PAGE).collect::<Vec<_>>(), [8 * PAGE]);
        assert_eq!(memory.aliases(5 * PAGE).count(), 0, "the other mapping ends before");
        assert_eq!(memory.aliases(8 * PAGE).collect::<Vec<_>>(), [4 * PAGE]);
        assert_eq!(memory.aliases(20 * PAGE).count(), 0);
    }
}
