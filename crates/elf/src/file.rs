//! ELF files that stay open, of which only what is asked for is read.

use gondwana_page::PAGE_SIZE;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
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
pub struct ElfFile {
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

/// What a symbol is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// A variable, but none of which each thread has its own.
    Variable,
}

/// A function or a variable that a file defines.
#[derive(Debug)]
pub struct Symbol<'a> {
    /// What it is.
    pub kind: SymbolKind,
    /// Where it is in the file's addresses; not empty.
    pub range: Range<u64>,
    /// Other files can name it.
    pub is_global: bool,
    /// Its name as the linker knows it; not empty.
    pub name: &'a str,
}

impl ElfFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read or is no regular 64-bit ELF file.
    ///
    /// # Examples
    /// ```
    /// let own = gondwana_elf::ElfFile::open(&std::env::current_exe()?)?;
    /// assert!(own.has_symbols);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for a process that writes to it.
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

    /// The result of `find` on the file; `None` if the file is damaged. The bytes that were read are dropped afterwards.
    pub(crate) fn read<T>(&self, find: impl FnOnce(&Parsed<'_>) -> T) -> Option<T> {
        let data = ReadCache::new(&self.file);
        let parsed = ElfFile64::parse(&data).ok()?;
        Some(find(&parsed))
    }

    /// Calls `each` for the functions and variables in its symbol tables, in their order; a symbol may be in two tables.
    pub fn for_each_symbol(&self, mut each: impl FnMut(Symbol<'_>)) {
        self.read(|parsed| {
            for symbol in parsed.symbols().chain(parsed.dynamic_symbols()) {
                let kind = match symbol.kind() {
                    object::SymbolKind::Text => SymbolKind::Function,
                    object::SymbolKind::Data => SymbolKind::Variable,
                    _ => continue,
                };
                let range = symbol.address()..symbol.address().saturating_add(symbol.size());
                if let Ok(name) = symbol.name()
                    && !symbol.is_undefined()
                    && !range.is_empty()
                    && !name.is_empty()
                {
                    each(Symbol { kind, range, is_global: symbol.is_global(), name });
                }
            }
        });
    }

    /// At most `most` bytes of the section that ends at or holds `address`, up to that address; `None` if there is no such
    /// section.
    #[must_use]
    pub fn bytes_before(&self, address: u64, most: u64) -> Option<Vec<u8>> {
        let bytes = self.read(|parsed| {
            let section = parsed
                .sections()
                .find(|section| (1..=section.size()).contains(&address.wrapping_sub(section.address())))?;
            let length = (address - section.address()).min(most);
            Some(section.data_range(address - length, length).ok().flatten()?.to_vec())
        });
        bytes.flatten()
    }

    /// At most `most` bytes from `address` on of the section that holds it; `None` if there is no such section.
    #[must_use]
    pub fn bytes_at(&self, address: u64, most: u64) -> Option<Vec<u8>> {
        let bytes = self.read(|parsed| {
            let section = parsed
                .sections()
                .find(|section| (0..section.size()).contains(&address.wrapping_sub(section.address())))?;
            let length = (section.address() + section.size() - address).min(most);
            Some(section.data_range(address, length).ok().flatten()?.to_vec())
        });
        bytes.flatten()
    }

    /// The contents of a section, as they were before they were compressed; empty if there is none.
    #[must_use]
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

    /// The address of a section; `None` if there is none.
    #[must_use]
    pub fn section_address(&self, name: &str) -> Option<u64> {
        self.read(|parsed| Some(parsed.section_by_name(name)?.address())).flatten()
    }

    /// The addresses from the first to the last that is loaded, from the beginning of a page on; `None` if nothing is.
    #[must_use]
    pub fn addresses(&self) -> Option<Range<u64>> {
        let range = self.read(|parsed| {
            let start = parsed.segments().map(|segment| segment.address()).min()?;
            let end =
                parsed.segments().map(|segment| segment.address().saturating_add(segment.size())).max()?;
            Some(start / PAGE_SIZE as u64 * PAGE_SIZE as u64..end)
        });
        range.flatten()
    }

    /// All of it.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}
