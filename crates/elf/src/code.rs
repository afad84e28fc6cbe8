//! The machine code of a file, and where its functions begin.

use crate::frames::described_functions;
use gimli::{BaseAddresses, EhFrameHdr, EndianSlice, LittleEndian};
use object::{
    Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionFlags, SymbolKind, elf,
};
use std::collections::HashMap;
use std::ops::Range;

/// The machine code of a file.
#[derive(Debug)]
pub struct Code<'data> {
    /// The sections with code, but for the linker's own stubs, which are nothing but jumps.
    pub sections: Vec<CodeSection<'data>>,
    /// The linker's stubs, which jump to functions of libraries by way of [`Code::imports`].
    pub stubs: Vec<CodeSection<'data>>,
    /// Addresses and names of the functions that the file defines, in ascending order, one name for each address.
    pub functions: Vec<(u64, &'data str)>,
    /// Where the variables are that the file gives names to, in ascending order.
    pub variables: Vec<Range<u64>>,
    /// What is mapped for reading only, in ascending order.
    pub constants: Vec<Range<u64>>,
    file: object::File<'data>,
}

/// One section.
#[derive(Debug)]
pub struct CodeSection<'data> {
    /// Its address in the file's own numbering.
    pub address: u64,
    /// Its contents.
    pub bytes: &'data [u8],
}

impl<'data> Code<'data> {
    /// Reads the contents of a file.
    ///
    /// # Errors
    /// If it is no ELF file, or a damaged one.
    pub fn parse(image: &'data [u8]) -> Result<Self, object::Error> {
        let file = object::File::parse(image)?;
        let (mut sections, mut stubs) = (vec![], vec![]);
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            if sh_flags.0 & elf::SHF_EXECINSTR.0 != 0 {
                let is_stubs = section.name().is_ok_and(|name| name.starts_with(".plt"));
                let list = if is_stubs { &mut stubs } else { &mut sections };
                list.push(CodeSection { address: section.address(), bytes: section.data()? });
            }
        }
        let mut functions: Vec<(u64, &str)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?)))
            .collect();
        functions.sort_unstable();
        functions.dedup_by_key(|(address, _)| *address);
        let mut variables: Vec<Range<u64>> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.is_definition())
            .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
            .collect();
        variables.sort_unstable_by_key(|variable| (variable.start, variable.end));
        variables.dedup();
        let is_constant = |section: &object::Section<'_, '_>| {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
            sh_flags.0 & elf::SHF_ALLOC.0 != 0 && sh_flags.0 & elf::SHF_WRITE.0 == 0
        };
        let mut constants: Vec<Range<u64>> = file
            .sections()
            .filter(is_constant)
            .map(|section| section.address()..section.address().saturating_add(section.size()))
            .collect();
        constants.sort_unstable_by_key(|range| range.start);
        Ok(Self { sections, stubs, functions, variables, constants, file })
    }

    /// True if the file has names for functions of its own, not only for those that other files use.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.file.symbols().next().is_some()
    }

    /// Where the functions begin whose frames the file describes for those who unwind the stack, in no order: in code of the usual
    /// compilers all, with names or without.
    #[must_use]
    pub fn described(&self) -> Vec<u64> {
        let find = || {
            let index = self.file.section_by_name(".eh_frame_hdr")?;
            let bases = BaseAddresses::default().set_eh_frame_hdr(index.address());
            let header = EhFrameHdr::from(EndianSlice::new(index.data().ok()?, LittleEndian));
            let header = header.parse(&bases, 8).ok()?;
            let table = header.table()?;
            let mut entries = table.iter(&bases);
            let mut starts = vec![];
            while let Some((start, _)) = entries.next().ok()? {
                starts.push(start.direct().ok()?);
            }
            Some(starts)
        };
        find().unwrap_or_default()
    }

    /// The code of the functions whose frames the file describes, in no order: in files of the usual compilers all there is, without the data
    /// between functions.
    #[must_use]
    pub fn described_code(&self) -> Vec<Range<u64>> {
        let find = || {
            let frames = self.file.section_by_name(".eh_frame")?;
            let functions = described_functions(frames.data().ok()?, frames.address());
            Some(functions.into_iter().map(|function| function.code).collect())
        };
        find().unwrap_or_default()
    }

    /// True if the file uses a symbol of a library.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        self.uses_any(|used| used == name)
    }

    /// True if the file uses a symbol of a library with such a name.
    #[must_use]
    pub fn uses_any(&self, name: impl Fn(&str) -> bool) -> bool {
        self.file.dynamic_symbols().any(|symbol| symbol.is_undefined() && symbol.name().is_ok_and(&name))
    }

    /// Where the loader puts the addresses of functions of libraries, with their names.
    #[must_use]
    pub fn imports(&self) -> HashMap<u64, &'data str> {
        let symbols = self.file.dynamic_symbol_table();
        let name = |target| match target {
            RelocationTarget::Symbol(index) => symbols.as_ref()?.symbol_by_index(index).ok()?.name().ok(),
            _ => None,
        };
        self.file
            .dynamic_relocations()
            .into_iter()
            .flatten()
            .filter_map(|(place, relocation)| Some((place, name(relocation.target())?)))
            .collect()
    }
}
