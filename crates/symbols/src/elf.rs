//! ELF files, of which only what is asked for is read.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ReadCache};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How many times shorter compression makes debugging information at most: it is some 3 times in practice. A damaged length
/// would have memory filled for minutes.
const MOST_COMPRESSED: u64 = 256;

/// Bytes that a compressed section may always have.
const ALWAYS: u64 = 16 << 20;

/// A file as the `object` library sees it.
pub(crate) type Parsed<'a> = ElfFile64<'a, Endianness, &'a ReadCache<&'a File>>;

/// An ELF file that is open, so that it stays what it was even if another one takes its name.
#[derive(Debug)]
pub(crate) struct Elf {
    file: File,
    /// Its build ID; empty if it has none.
    pub build_id: Vec<u8>,
    /// The name and the CRC-32 of the file that has its debugging information.
    pub debug_link: Option<(Vec<u8>, u32)>,
    /// It has names of local functions and variables.
    pub has_symbols: bool,
    /// It has debugging information.
    pub has_debug: bool,
}

impl Elf {
    /// Opens a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for somebody to write into it.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut elf = Self {
            file: File::open(path)?,
            build_id: vec![],
            debug_link: None,
            has_symbols: false,
            has_debug: false,
        };
        let facts = elf.read(|parsed| {
            let build_id = parsed.build_id().ok().flatten().unwrap_or_default().to_vec();
            let link = parsed.gnu_debuglink().ok().flatten().map(|(name, sum)| (name.to_vec(), sum));
            let has_symbols = parsed.symbol_table().is_some();
            let has_debug = parsed.section_by_name(".debug_info").is_some();
            (build_id, link, has_symbols, has_debug)
        });
        (elf.build_id, elf.debug_link, elf.has_symbols, elf.has_debug) =
            facts.ok_or_else(|| io::Error::other("it is no 64-bit ELF file"))?;
        Ok(elf)
    }

    /// What somebody finds in the file; none if it is damaged. What was read is forgotten afterwards.
    pub fn read<T>(&self, find: impl FnOnce(&Parsed<'_>) -> T) -> Option<T> {
        let data = ReadCache::new(&self.file);
        let parsed = ElfFile64::parse(&data).ok()?;
        Some(find(&parsed))
    }

    /// The contents of a section, as they were before they were compressed; empty if there is none.
    pub fn section(&self, name: &str) -> Arc<[u8]> {
        let contents = self.read(|parsed| {
            let section = parsed.section_by_name(name)?.compressed_data().ok()?;
            let compressed = u64::try_from(section.data.len()).ok()?;
            let most = compressed.saturating_mul(MOST_COMPRESSED).max(ALWAYS);
            (section.uncompressed_size <= most).then_some(())?;
            Some(Arc::from(section.decompress().ok()?))
        });
        contents.flatten().unwrap_or_default()
    }

    /// All of it.
    pub fn file(&self) -> &File {
        &self.file
    }
}
