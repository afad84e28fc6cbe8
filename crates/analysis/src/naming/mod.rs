//! Names of areas and of the data in them.

mod code;
mod pointers;

pub(crate) use code::{CallSite, Codes, REGIONS};
use pointers::Pointers;

use crate::Origin;
use crate::areas::{Map, Owner};
use crate::names::Names;
use gondwana_recording::Recording;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The most frames in the name of an allocation site.
const FRAMES: usize = 4;

/// The names of areas and of the data in them.
pub(crate) struct Naming<'a> {
    names: &'a dyn Names,
    map: &'a Map,
    pointers: Pointers,
    areas: Vec<String>,
}

impl<'a> Naming<'a> {
    /// Names all owners of a map.
    pub(crate) fn new(
        recording: &Recording,
        names: &'a dyn Names,
        map: &'a Map,
        codes: &mut Codes<'a>,
    ) -> Self {
        let pointers = Pointers::of(recording, names, &map.blocks);
        let mut naming = Self { names, map, pointers, areas: vec![] };
        naming.areas = map.owners.iter().map(|owner| naming.plain(owner, codes)).collect();
        naming.tell_apart(codes);
        naming
    }

    /// The name of an area.
    pub(crate) fn area(&self, owner: usize) -> &str {
        &self.areas[owner]
    }

    fn plain(&self, owner: &Owner, codes: &mut Codes<'a>) -> String {
        match owner {
            Owner::Named(name) => self.map.given[*name].0.clone(),
            Owner::Variable(variable) if variable.library.is_empty() => variable.name.clone(),
            Owner::Variable(variable) => format!("{} ({})", variable.name, variable.library),
            Owner::Group(group) => match self.pointers.of_group(*group) {
                Some(name) => name.to_owned(),
                None => self.place(*group, 1, codes),
            },
            Owner::Stack(thread) => format!("stack of thread {thread}"),
            Owner::Mapping(range) => format!("mapping at {:#x}", range.start),
            Owner::Heap(range) => format!("heap at {:#x}", range.start),
            Owner::Unnamed(Some(image)) => format!("data of {}", file_name(&self.map.images[*image].0)),
            Owner::Unnamed(None) => "data without names".to_owned(),
            Owner::Other => "other memory".to_owned(),
        }
    }

    /// The calls that allocated blocks, as many as are needed.
    fn place(&self, group: usize, frames: usize, codes: &mut Codes<'a>) -> String {
        let places = codes.callers(&self.map.blocks.groups[group].stack);
        if places.is_empty() {
            return "blocks of unknown origin".to_owned();
        }
        places.into_iter().take(frames).collect::<Vec<_>>().join(" from ")
    }

    /// Makes equal names distinct.
    fn tell_apart(&mut self, codes: &mut Codes<'a>) {
        let mut same: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        for (index, owner) in self.map.owners.iter().enumerate() {
            if let Owner::Group(group) = owner {
                same.entry(self.areas[index].clone()).or_default().push((index, *group));
            }
        }
        // Blocks have the name of the pointer to them.
        for (index, owner) in self.map.owners.iter().enumerate() {
            if matches!(owner, Owner::Variable(_)) && same.contains_key(&self.areas[index]) {
                self.areas[index].push_str(" (the pointer)");
            }
        }
        for (_, groups) in same.into_iter().filter(|(_, groups)| groups.len() > 1) {
            let longer = |frames: usize, codes: &mut Codes<'a>| -> Vec<String> {
                groups.iter().map(|&(_, group)| self.place(group, frames, codes)).collect()
            };
            let mut frames = 1;
            let mut places = longer(frames, codes);
            while frames < FRAMES && !are_distinct(&places) {
                frames += 1;
                places = longer(frames, codes);
            }
            if !are_distinct(&places) {
                // Still equal: several calls in one line, or calls of a library function.
                let numbered = |(place, number): (String, u32)| format!("{place}, call {number}");
                places = longer(1, codes).into_iter().zip(1..).map(numbered).collect();
            }
            for (&(index, group), place) in groups.iter().zip(places) {
                self.areas[index] = match self.pointers.of_group(group) {
                    Some(name) => format!("{name} ({place})"),
                    None => place,
                };
            }
        }
    }

    /// The origin of an area.
    pub(crate) fn origin(&self, owner: usize, codes: &mut Codes<'a>) -> Origin {
        match &self.map.owners[owner] {
            Owner::Variable(variable) => {
                Origin::Variable { name: variable.name.clone(), library: variable.library.clone() }
            }
            Owner::Group(group) => {
                let group = &self.map.blocks.groups[*group];
                let CallSite { call, caller, library } = codes.site(&group.stack, &group.recursive);
                let stack = codes.callers(&group.stack);
                Origin::Allocation { site: call, caller, library, stack, threads: group.threads.clone() }
            }
            Owner::Stack(thread) => Origin::Stack { thread: *thread },
            Owner::Mapping(_) => Origin::Mapping,
            Owner::Named(_) | Owner::Heap(_) | Owner::Unnamed(_) | Owner::Other => Origin::Other,
        }
    }

    /// The name of an address, in source notation.
    pub(crate) fn at(&self, owner: usize, address: u64) -> String {
        let (thing, start, field) = self.thing(owner, address);
        match address - start {
            _ if !field.is_empty() => thing + &field,
            0 => thing,
            offset => format!("{thing}+{offset:#x}"),
        }
    }

    /// The same for a range of addresses: its first and its last byte if they are in different objects.
    pub(crate) fn range(&self, owner: usize, range: &Range<u64>) -> String {
        let first = self.at(owner, range.start);
        let last = self.thing(owner, range.end - 1);
        let end = format!("{}{}", last.0, last.2);
        if last.2.is_empty() || end == first { first } else { format!("{first}..{end}") }
    }

    /// The part of its area that an address is in, with nothing between the brackets of elements; empty if it has no
    /// parts.
    pub(crate) fn field(&self, owner: usize, address: u64) -> String {
        let (_, _, field) = self.thing(owner, address);
        let mut inside = false;
        let outside = field.chars().filter(|&letter| {
            let shown = !inside || letter == ']';
            inside = letter == '[' || inside && letter != ']';
            shown
        });
        outside.collect()
    }

    /// The name of a block of an owner, and the address of a pointer that gives its type.
    pub(crate) fn block(&self, owner: usize, object: usize, group: usize) -> (&str, Option<u64>) {
        let own = self.pointers.of_object(object);
        let name = own.map_or(&self.areas[owner], |(_, name)| name);
        (name, own.map(|(at, _)| *at).or_else(|| self.pointers.like(group)))
    }

    /// The variable or block of an owner that an address is in, where it begins, and the part of it.
    fn thing(&self, owner: usize, address: u64) -> (String, u64, String) {
        match &self.map.owners[owner] {
            Owner::Variable(variable) => {
                let field = self.names.field(variable, address.saturating_sub(variable.start));
                (self.areas[owner].clone(), variable.start.min(address), field)
            }
            Owner::Group(group) => {
                let Some(index) = self.map.blocks.at(address) else {
                    return (self.areas[owner].clone(), address, String::new());
                };
                let start = self.map.blocks.objects[index].0.address;
                let (name, pointer) = self.block(owner, index, *group);
                let field =
                    pointer.map_or_else(String::new, |at| self.names.target_field(at, address - start));
                (name.to_owned(), start, field)
            }
            Owner::Named(name) => {
                let (name, start) = &self.map.given[*name];
                (name.clone(), address.min(*start), String::new())
            }
            Owner::Heap(range) | Owner::Mapping(range) => {
                (self.areas[owner].clone(), range.start.min(address), String::new())
            }
            Owner::Stack(_) | Owner::Unnamed(_) | Owner::Other => {
                (format!("{} {address:#x}", self.areas[owner]), address, String::new())
            }
        }
    }
}

/// True if no two texts are the same.
fn are_distinct(texts: &[String]) -> bool {
    texts.iter().collect::<HashSet<_>>().len() == texts.len()
}

/// A path without its folders.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
