//! Types as layouts, independent of their file. The names are the same as those of [`layout`].

use crate::layout::{self, STEPS, Shape, Types};
use gondwana_analysis::{Layout, Layouts, Member};
use std::collections::HashMap;
use std::hash::Hash;

/// The number of the layout of an object; see [`layout::part`].
pub(crate) fn thing<T: Types<Id: Eq + Hash>>(types: &T, of: T::Id, layouts: &mut Layouts) -> u32 {
    Flat { types, layouts, known: HashMap::new() }.number(of, STEPS)
}

/// The number of the layout of a block with consecutive objects; see [`layout::element`].
pub(crate) fn block<T: Types<Id: Eq + Hash>>(types: &T, of: T::Id, layouts: &mut Layouts) -> u32 {
    let Some(bytes) = layout::size(types, of).filter(|bytes| *bytes > 1) else { return Layouts::PLAIN };
    let element = thing(types, of, layouts);
    layouts.number(if layout::is_open(types, of) {
        Layout::Struct(vec![Member { text: "[0]".to_owned(), start: 0, bytes: u64::MAX, of: element }])
    } else {
        Layout::Array { element, bytes, counts: vec![0] }
    })
}

struct Flat<'a, T: Types> {
    types: &'a T,
    layouts: &'a mut Layouts,
    /// Types with a number, and those in progress without one, to detect types that contain themselves.
    known: HashMap<T::Id, u32>,
}

impl<T: Types<Id: Eq + Hash>> Flat<'_, T> {
    /// The number of the layout of a type, at this nesting depth.
    fn number(&mut self, of: T::Id, steps: usize) -> u32 {
        if let Some(&known) = self.known.get(&of) {
            return known;
        }
        self.known.insert(of, Layouts::PLAIN);
        let Some(kind) = self.types.get(of).filter(|_| steps > 0) else { return Layouts::PLAIN };
        let number = match &kind.shape {
            Shape::Scalar | Shape::Pointer(_) | Shape::Alias(None) => Layouts::PLAIN,
            Shape::Alias(Some(to)) => self.number(*to, steps - 1),
            Shape::Array { element, counts } => self.array(*element, counts, steps),
            Shape::Struct(members) => self.members(members, steps),
        };
        self.known.insert(of, number);
        number
    }

    fn array(&mut self, element: T::Id, counts: &[Option<u64>], steps: usize) -> u32 {
        let has_end = |count: &Option<u64>| count.is_some_and(|count| count > 0);
        let bytes = layout::size(self.types, element).filter(|bytes| *bytes > 0);
        let Some(bytes) = bytes.filter(|_| counts.iter().skip(1).all(has_end) && !counts.is_empty()) else {
            return Layouts::PLAIN;
        };
        let element = self.number(element, steps - 1);
        let counts = counts.iter().map(|count| count.unwrap_or(0)).collect();
        self.layouts.number(Layout::Array { element, bytes, counts })
    }

    fn members(&mut self, members: &[layout::Member<T::Id>], steps: usize) -> u32 {
        let length = |member: &layout::Member<T::Id>| {
            let bytes = member.bytes.or_else(|| layout::size(self.types, member.of));
            let last = members.last().is_some_and(|last| std::ptr::eq(last, member));
            if last && layout::is_open(self.types, member.of) { Some(u64::MAX) } else { bytes }
        };
        let known = members.iter().filter_map(|member| Some((member, length(member)?)));
        // Members come before bases, and at equal offsets longer bases before shorter ones, because some bases are
        // empty.
        let (own, mut bases): (Vec<_>, Vec<_>) = known.partition(|(member, _)| !member.is_base);
        bases.sort_by_key(|(base, _)| layout::size(self.types, base.of));
        bases.reverse();
        let mut flat = vec![];
        for (member, bytes) in own.into_iter().chain(bases) {
            let of = self.number(member.of, steps - 1);
            flat.push(Member { text: layout::shown(&member.name), start: member.start, bytes, of });
        }
        self.layouts.number(Layout::Struct(flat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::{Numbered, numbered, types};
    use proptest::prelude::*;

    /// The field at an offset, by the layouts alone.
    fn text(layouts: &[Layout], mut of: u32, mut offset: u64) -> String {
        let mut text = String::new();
        for _ in 0..STEPS {
            match &layouts[of as usize] {
                Layout::Plain => break,
                Layout::Array { element, bytes, counts } => {
                    let mut number = offset / bytes;
                    let mut indices = vec![];
                    for &count in counts.iter().rev() {
                        indices.push(number.checked_rem(count).unwrap_or(number));
                        number = number.checked_div(count).unwrap_or(0);
                    }
                    if number > 0 {
                        break;
                    }
                    text.extend(indices.iter().rev().map(|index| format!("[{index}]")));
                    (of, offset) = (*element, offset % bytes);
                }
                Layout::Struct(members) => {
                    let holds = |member: &&Member| {
                        offset.checked_sub(member.start).is_some_and(|into| into < member.bytes)
                    };
                    let Some(member) = members.iter().find(holds) else { break };
                    text.push_str(&member.text);
                    (of, offset) = (member.of, offset - member.start);
                }
            }
        }
        text
    }

    #[test]
    fn types_that_contain_themselves_twice_come_to_an_end() {
        let types: Numbered = types_that_contain_themselves();
        let mut layouts = Layouts::default();
        let of = thing(&types, 0, &mut layouts);
        assert!(matches!(&layouts.all()[of as usize], Layout::Struct(members) if members.len() == 2));
    }

    fn types_that_contain_themselves() -> Numbered {
        let again =
            |start| layout::Member { name: "a".to_owned(), start, bytes: Some(8), of: 0, is_base: false };
        numbered(vec![layout::Type { bytes: Some(16), shape: Shape::Struct(vec![again(0), again(8)]) }])
    }

    proptest! {
        #[test]
        fn layouts_say_what_types_say(types in types(), of in 0..12_usize, offsets in prop::collection::vec(0..400_u64, 1..20)) {
            let mut layouts = Layouts::default();
            let (own, target) = (thing(&types, of, &mut layouts), block(&types, of, &mut layouts));
            let layouts = layouts.all();
            for offset in offsets {
                prop_assert_eq!(text(&layouts, own, offset), layout::part(&types, of, offset).text);
                prop_assert_eq!(text(&layouts, target, offset), layout::element(&types, of, offset));
            }
        }
    }
}
