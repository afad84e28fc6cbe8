//! Debug information about code, variables and types of a file, read on demand.
//!
//! The file is not trusted. Damaged entries have no name; chains of references end after [`CHAIN`] links.

mod code;
mod definitions;
mod entry;
mod lines;
mod reader;
mod scopes;
mod survey;
mod types;
mod variables;

pub(crate) use code::Frame;
pub(crate) use reader::Id;

use crate::layout::Type;
use addr2line::Context;
use gimli::{DwarfSections, EndianArcSlice, EndianSlice, LittleEndian, SectionId};
use gondwana_elf::ElfFile;
use reader::{CHAIN, Dwarf, Entry, Reader, Value};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use survey::Survey;

/// The debugging information of a file.
pub(crate) struct Debug {
    sections: DwarfSections<Arc<[u8]>>,
    dwarf: Arc<Dwarf>,
    survey: OnceCell<Survey>,
    context: OnceCell<Option<Context<Reader>>>,
    /// See [`definitions`].
    definitions: OnceCell<Vec<(u64, Id)>>,
    types: RefCell<HashMap<Id, Option<Rc<Type<Id>>>>>,
}

impl Debug {
    /// Takes the sections out of a file.
    pub(crate) fn new(elf: &ElfFile) -> Self {
        let load = |id: SectionId| {
            Ok::<_, gimli::Error>(if is_needed(id) { elf.section(id.name()) } else { Arc::default() })
        };
        let sections = DwarfSections::load(load).unwrap_or_default();
        let mut dwarf = sections.borrow(|section| EndianArcSlice::new(section.clone(), LittleEndian));
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        Self {
            sections,
            dwarf: Arc::new(dwarf),
            survey: OnceCell::new(),
            context: OnceCell::new(),
            definitions: OnceCell::new(),
            types: RefCell::default(),
        }
    }

    /// The same, borrowed instead of reference-counted: faster for reading much at once.
    fn borrowed(&self) -> gimli::Dwarf<EndianSlice<'_, LittleEndian>> {
        let mut dwarf = self.sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        dwarf
    }

    fn survey(&self) -> &Survey {
        self.survey.get_or_init(|| Survey::new(&self.borrowed(), &self.dwarf))
    }
}

/// False for sections about variables on the stack, macros and the like, which can be large.
fn is_needed(id: SectionId) -> bool {
    matches!(
        id,
        SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugAranges
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugRanges
            | SectionId::DebugRngLists
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
            | SectionId::DebugTypes
    )
}
