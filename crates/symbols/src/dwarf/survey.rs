//! A survey of all debug information: units, variables with an address, and the nesting depth.

use super::reader::{Dwarf, Id, Reader};
use gimli::{AttributeValue, DebugTypeSignature, EndianSlice, Expression, LittleEndian, Operation};
use gimli::{Unit, UnitHeader, UnitOffset, UnitSectionOffset, UnitType};
use std::cell::OnceCell;
use std::collections::HashMap;

/// The limit of nesting: `addr2line` recurses for inlined functions.
const DEEPEST: isize = 500;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The index of a file's debugging information.
pub(super) struct Survey {
    /// The units: those of `.debug_info` in the order of their offsets, then those of `.debug_types`.
    pub units: Vec<Known>,
    /// Variables with a fixed address, in ascending order.
    pub variables: Vec<(u64, Id)>,
    /// Definitions of types by their signatures.
    pub signatures: HashMap<DebugTypeSignature, Id>,
    /// It exceeds [`DEEPEST`].
    pub is_too_deep: bool,
}

/// A unit.
pub(super) struct Known {
    header: UnitHeader<Reader>,
    unit: OnceCell<Option<Unit<Reader>>>,
    /// See [`super::scopes`].
    pub scopes: OnceCell<Vec<Scope>>,
}

/// An entry whose name is part of those of the entries in it.
pub(super) struct Scope {
    /// Its offset in the unit.
    pub start: usize,
    /// Behind the last entry that is in it.
    pub end: usize,
    /// The enclosing scope, by its index in the list.
    pub parent: Option<usize>,
}

impl Known {
    fn new(header: UnitHeader<Reader>) -> Self {
        Self { header, unit: OnceCell::new(), scopes: OnceCell::new() }
    }

    /// Its beginning is read; none if it is damaged.
    pub(super) fn unit(&self, dwarf: &Dwarf) -> Option<&Unit<Reader>> {
        self.unit.get_or_init(|| dwarf.unit(self.header.clone()).ok()).as_ref()
    }

    /// Its offset in `.debug_info`; none if it is in another section.
    pub(super) fn start(&self) -> Option<usize> {
        self.header.debug_info_offset().map(|offset| offset.0)
    }

    /// The entry at an offset of its section.
    pub(super) fn entry(&self, offset: usize) -> Option<usize> {
        let offset = UnitSectionOffset(offset).to_unit_offset(&self.header)?;
        Some(offset.0)
    }
}

impl Survey {
    /// Surveys all units, borrowed as slices because that is faster.
    pub(super) fn new(slices: &gimli::Dwarf<Slice<'_>>, dwarf: &Dwarf) -> Self {
        let mut survey =
            Self { units: vec![], variables: vec![], signatures: HashMap::new(), is_too_deep: false };
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            survey.add(header);
        }
        let mut headers = dwarf.type_units();
        while let Ok(Some(header)) = headers.next() {
            survey.add(header);
        }
        let mut headers = slices.units();
        let mut number = 0;
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = slices.unit(header) {
                // Data before a damaged place is used.
                let _ = survey.look_through(slices, &unit, number);
            }
            number += 1;
        }
        survey.variables.sort_unstable();
        survey
    }

    fn add(&mut self, header: UnitHeader<Reader>) {
        if let UnitType::Type { type_signature, type_offset }
        | UnitType::SplitType { type_signature, type_offset } = header.type_()
        {
            let unit = u32::try_from(self.units.len()).expect("a file has less than 2^32 units");
            let id = Id { unit, entry: type_offset.0 };
            self.signatures.insert(type_signature, id);
        }
        self.units.push(Known::new(header));
    }

    fn look_through(
        &mut self,
        dwarf: &gimli::Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        number: u32,
    ) -> gimli::Result<()> {
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let UnitOffset(entry) = entries.next_offset();
            self.is_too_deep |= entries.next_depth() > DEEPEST;
            let Some(kind) = entries.read_abbreviation()? else { continue };
            if kind.tag() != gimli::DW_TAG_variable {
                entries.skip_attributes(kind.attributes())?;
                continue;
            }
            for &attribute in kind.attributes() {
                let attribute = entries.read_attribute(attribute)?;
                if attribute.name() == gimli::DW_AT_location
                    && let AttributeValue::Exprloc(expression) = attribute.value()
                    && let Some(address) = fixed_address(dwarf, unit, expression)
                {
                    self.variables.push((address, Id { unit: number, entry }));
                }
            }
        }
        Ok(())
    }
}

/// The address of an expression that is only an address: thread-local variables need more.
fn fixed_address(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    expression: Expression<Slice<'_>>,
) -> Option<u64> {
    let mut operations = expression.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    // Linkers leave 0 where they have thrown something away.
    (operations.next().ok()?.is_none() && address != 0).then_some(address)
}
