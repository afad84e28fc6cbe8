//! Types, as the debugging information describes them.

use super::{Debug, Entry, Id, Value};
use crate::layout::{Member, Shape, Type, Types};
use gimli::{DwAt, Operation};
use std::rc::Rc;

impl Types for Debug {
    type Id = Id;

    fn get(&self, id: Id) -> Option<Rc<Type<Id>>> {
        if let Some(known) = self.types.borrow().get(&id) {
            return known.clone();
        }
        let read = self.read_type(id).map(Rc::new);
        self.types.borrow_mut().insert(id, read.clone());
        read
    }
}

impl Debug {
    fn read_type(&self, id: Id) -> Option<Type<Id>> {
        let entry = self.entry(id)?;
        if let Some(full) = self.reference(id, &entry, gimli::DW_AT_signature) {
            return Some(Type { bytes: None, shape: Shape::Alias(Some(full)) });
        }
        if entry.has_attr(gimli::DW_AT_declaration) {
            return Some(Type { bytes: None, shape: Shape::Alias(self.definition(id, &entry)) });
        }
        let of = self.reference(id, &entry, gimli::DW_AT_type);
        let shape = match entry.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => Shape::Alias(of),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Shape::Pointer(of),
            gimli::DW_TAG_array_type => self.array(id, &entry, of?),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                Shape::Struct(self.members(id))
            }
            _ => Shape::Scalar,
        };
        let mut bytes = number(&entry, gimli::DW_AT_byte_size);
        if let (None, Shape::Pointer(_)) = (bytes, &shape) {
            bytes = self.unit(id).map(|unit| u64::from(unit.encoding().address_size));
        }
        Some(Type { bytes, shape })
    }

    fn array(&self, id: Id, entry: &Entry, element: Id) -> Shape<Id> {
        // In other languages the first index may not be 0, or the last index may not vary fastest.
        let by_rows = self.unit(id).and_then(|unit| is_by_rows(unit.unit));
        if by_rows != Some(true) || number(entry, gimli::DW_AT_ordering).is_some_and(|order| order != 0) {
            return Shape::Scalar;
        }
        let mut counts = vec![];
        self.for_children(id, |_, child| {
            if child.tag() == gimli::DW_TAG_subrange_type {
                let count = number(child, gimli::DW_AT_count);
                let last = number(child, gimli::DW_AT_upper_bound);
                counts.push(count.or_else(|| last.map(|last| last.wrapping_add(1))));
            }
        });
        Shape::Array { element, counts }
    }

    fn members(&self, id: Id) -> Vec<Member<Id>> {
        let mut members = vec![];
        self.for_children(id, |child, entry| members.extend(self.member(child, entry)));
        members
    }

    fn member(&self, id: Id, entry: &Entry) -> Option<Member<Id>> {
        let is_base = entry.tag() == gimli::DW_TAG_inheritance;
        let is_static = entry.has_attr(gimli::DW_AT_external) || entry.has_attr(gimli::DW_AT_declaration);
        // Where a virtual base is depends on the object.
        let is_virtual = number(entry, gimli::DW_AT_virtuality).is_some_and(|how| how != 0);
        if !(is_base || entry.tag() == gimli::DW_TAG_member) || is_static || is_virtual {
            return None;
        }
        let of = self.reference(id, entry, gimli::DW_AT_type)?;
        let name = self.text(id, entry, gimli::DW_AT_name).filter(|_| !is_base).unwrap_or_default();
        let start = match entry.attr_value(gimli::DW_AT_data_member_location) {
            None => 0,
            Some(Value::Exprloc(expression)) => {
                match expression.operations(self.unit(id)?.encoding()).next().ok()?? {
                    Operation::PlusConstant { value } => value,
                    _ => return None,
                }
            }
            Some(_) => number(entry, gimli::DW_AT_data_member_location)?,
        };
        let member = Member { name, start, bytes: None, of, is_base };
        let Some(bits) = number(entry, gimli::DW_AT_bit_size) else { return Some(member) };
        let first = match number(entry, gimli::DW_AT_data_bit_offset) {
            Some(first) => first,
            // Before version 4, from the highest bit of a storage unit of so many bytes, on x86 in the last byte.
            None => {
                let unit = number(entry, gimli::DW_AT_byte_size)
                    .or_else(|| crate::layout::size(self, of))?
                    .checked_mul(8)?;
                let from_top = number(entry, gimli::DW_AT_bit_offset)?.checked_add(bits)?;
                start.checked_mul(8)?.checked_add(unit.checked_sub(from_top)?)?
            }
        };
        let end = first.checked_add(bits)?.div_ceil(8);
        Some(Member { start: first / 8, bytes: Some(end - first / 8), ..member })
    }

    /// Calls `show` for each direct child of an entry, up to a damaged one.
    fn for_children(&self, id: Id, mut show: impl FnMut(Id, &Entry)) {
        let Some(unit) = self.unit(id) else { return };
        let Ok(mut tree) = unit.unit.entries_tree(Some(gimli::UnitOffset(id.entry))) else { return };
        let Ok(root) = tree.root() else { return };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            show(Id { entry: entry.offset().0, ..id }, entry);
        }
    }
}

/// A number that is no address and does not have to be computed.
fn number(entry: &Entry, name: DwAt) -> Option<u64> {
    let value = entry.attr_value(name)?;
    match value {
        Value::Sdata(number) => u64::try_from(number).ok().or(Some(u64::MAX).filter(|_| number == -1)),
        Value::Virtuality(how) => Some(u64::from(how.0)),
        Value::Ordering(order) => Some(u64::from(order.0)),
        _ => value.udata_value(),
    }
}

/// True if the arrays of a unit begin at 0 and go by rows, as in C.
fn is_by_rows(unit: &gimli::Unit<super::Reader>) -> Option<bool> {
    let mut entries = unit.entries();
    entries.next_dfs().ok()?;
    let Value::Language(language) = entries.current()?.attr_value(gimli::DW_AT_language)? else {
        return None;
    };
    Some(language.default_lower_bound() == Some(0))
}
