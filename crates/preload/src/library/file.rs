//! What the file of a library tells before it is loaded.

use gondwana_memory::PAGE_SIZE;
use std::fs;
use std::path::Path;

use crate::object::tag;

/// A 64-bit ELF file.
pub struct LibraryFile {
    /// The names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Bytes of addresses from its first to its last.
    pub length: usize,
    /// What its first address must be a multiple of.
    pub align: usize,
    /// It has variables of which each thread has its own.
    pub has_thread_locals: bool,
}

/// What one program header says.
struct Header {
    kind: u32,
    offset: usize,
    address: usize,
    bytes_in_file: usize,
    bytes: usize,
    align: usize,
}

impl LibraryFile {
    /// Reads a file; `None` if it is no library.
    pub fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read(path).ok()?)
    }

    fn parse(file: &[u8]) -> Option<Self> {
        if file.get(..5)? != b"\x7fELF\x02" {
            return None;
        }
        let (table, entry, count) = (number(file, 0x20, 8)?, number(file, 0x36, 2)?, number(file, 0x38, 2)?);
        let headers = (0..count)
            .map(|index| Header::parse(file, table.checked_add(index * entry)?))
            .collect::<Option<Vec<_>>>()?;
        let loaded = || headers.iter().filter(|header| header.kind == libc::PT_LOAD);
        let start = loaded().map(|header| header.address).min()? / PAGE_SIZE * PAGE_SIZE;
        let end = loaded().map(|header| header.address.saturating_add(header.bytes)).max()?;
        Some(Self {
            needed: needed(file, &headers).unwrap_or_default(),
            length: end.checked_sub(start)?.checked_next_multiple_of(PAGE_SIZE)?,
            align: loaded().map(|header| header.align).max()?,
            has_thread_locals: headers.iter().any(|header| header.kind == libc::PT_TLS && header.bytes > 0),
        })
    }
}

impl Header {
    fn parse(file: &[u8], at: usize) -> Option<Self> {
        let word = |offset: usize| number(file, at.checked_add(offset)?, 8);
        Some(Self {
            kind: number(file, at, 4)? as u32,
            offset: word(8)?,
            address: word(16)?,
            bytes_in_file: word(32)?,
            bytes: word(40)?,
            align: word(48)?,
        })
    }
}

fn number(file: &[u8], at: usize, length: usize) -> Option<usize> {
    let bytes = file.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
}

fn needed(file: &[u8], headers: &[Header]) -> Option<Vec<String>> {
    let dynamic = headers.iter().find(|header| header.kind == libc::PT_DYNAMIC)?;
    let bytes = file.get(dynamic.offset..dynamic.offset.checked_add(dynamic.bytes_in_file)?)?;
    let entries: Vec<(i64, usize)> = bytes
        .chunks_exact(16)
        .filter_map(|entry| Some((number(entry, 0, 8)? as i64, number(entry, 8, 8)?)))
        .collect();
    let table = entries.iter().find(|entry| entry.0 == tag::STRTAB)?.1;
    let segment = headers.iter().find(|header| {
        header.kind == libc::PT_LOAD
            && table.checked_sub(header.address).is_some_and(|distance| distance < header.bytes_in_file)
    })?;
    let strings = file.get(segment.offset.checked_add(table - segment.address)?..)?;
    let text = |offset: usize| {
        let text = strings.get(offset..)?.split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    Some(entries.iter().filter(|entry| entry.0 == tag::NEEDED).filter_map(|entry| text(entry.1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_tells_what_it_needs() {
        let executable = fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = LibraryFile::parse(&executable).unwrap();
        assert!(file.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", file.needed);
        assert!(file.length > PAGE_SIZE && file.align.is_power_of_two() && file.has_thread_locals);
        for length in [0, 4, 0x30, 0x60, 0x100] {
            assert!(LibraryFile::parse(&executable[..length]).is_none());
        }
    }
}
