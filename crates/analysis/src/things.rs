//! The variables and blocks that areas are made of, in a form that leads from any address to a name.

use crate::areas::{Map, Owner};
use crate::layouts::{Layout, Layouts};
use crate::names::Names;
use crate::naming::Naming;
use std::collections::HashMap;

/// Most rows of things that are kept: those of the hottest areas.
const MOST: usize = 100_000;

/// Like things at equal distances: a variable by itself, or blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// The first address of the first.
    pub start: u64,
    /// How far they are apart; 0 if there is one only.
    pub step: u64,
    /// How many there are.
    pub count: u64,
    /// The length of each.
    pub bytes: u64,
    /// The area they belong to, by its place in [`crate::Analysis::areas`].
    pub area: u32,
    /// What each is called, by its place in [`Things::names`].
    pub name: u32,
    /// What each is made of, by its place in [`Things::layouts`].
    pub of: u32,
}

/// What is where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Things {
    /// By area, and then by ascending addresses; a row of an area ends before the next one of it begins.
    pub things: Vec<Thing>,
    /// What they are called.
    pub names: Vec<String>,
    /// What they are made of.
    pub layouts: Vec<Layout>,
}

/// The things of areas, whose places are given by owner.
pub(crate) fn things(
    map: &Map,
    naming: &Naming<'_>,
    names: &dyn Names,
    areas: &HashMap<usize, u32>,
) -> Things {
    let mut gathered = Gathered::default();
    let mut of_groups: HashMap<usize, (usize, u32)> = HashMap::new();
    let mut owners: Vec<(usize, u32)> = areas.iter().map(|(owner, area)| (*owner, *area)).collect();
    owners.sort_unstable_by_key(|(_, area)| *area);
    for (owner, area) in owners {
        match &map.owners[owner] {
            Owner::Variable(variable) => {
                let of = names.layout(variable, &mut gathered.layouts);
                let name = gathered.name(naming.area(owner));
                let (start, bytes) = (variable.start, variable.bytes);
                gathered.add(Thing { start, step: 0, count: 1, bytes, area, name, of });
            }
            Owner::Group(group) => {
                of_groups.insert(*group, (owner, area));
            }
            _ => {}
        }
    }
    let mut of_pointers: HashMap<u64, u32> = HashMap::new();
    for (range, object) in map.blocks.layer.iter() {
        let (block, group) = &map.blocks.objects[object];
        let Some(&(owner, area)) = of_groups.get(group).filter(|_| block.address == range.start) else {
            continue;
        };
        let (name, pointer) = naming.block(owner, object, *group);
        let name = gathered.name(name);
        let layouts = &mut gathered.layouts;
        let of = pointer.map_or(Layouts::PLAIN, |at| {
            *of_pointers.entry(at).or_insert_with(|| names.target_layout(at, layouts))
        });
        gathered.add(Thing {
            start: range.start,
            step: 0,
            count: 1,
            bytes: range.end - range.start,
            area,
            name,
            of,
        });
    }
    gathered.finish()
}

#[derive(Default)]
struct Gathered {
    /// By area.
    things: HashMap<u32, Vec<Thing>>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    layouts: Layouts,
}

impl Gathered {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Adds one thing, which is behind those of its area that there are.
    fn add(&mut self, thing: Thing) {
        let row = self.things.entry(thing.area).or_default();
        if let Some(last) = row.last_mut()
            && (last.name, last.of, last.bytes) == (thing.name, thing.of, thing.bytes)
        {
            let distance = thing.start - (last.start + last.step * (last.count - 1));
            if last.count == 1 || distance == last.step {
                last.step = distance;
                last.count += 1;
                return;
            }
        }
        row.push(thing);
    }

    fn finish(self) -> Things {
        let mut areas: Vec<_> = self.things.into_iter().collect();
        areas.sort_unstable_by_key(|(area, _)| *area);
        let things = areas.into_iter().flat_map(|(_, things)| things).take(MOST).collect();
        Things { things, names: self.names, layouts: self.layouts.all() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_things_at_equal_distances_are_one_row() {
        let mut gathered = Gathered::default();
        let name = gathered.name("nodes");
        assert_eq!((gathered.name("nodes"), gathered.name("leaves")), (name, 1));
        let thing =
            |start, bytes, area| Thing { start, step: 0, count: 1, bytes, area, name, of: Layouts::PLAIN };
        for (start, bytes, area) in
            [(0, 32, 1), (48, 32, 1), (64, 8, 0), (96, 32, 1), (200, 32, 1), (248, 32, 1), (296, 16, 1)]
        {
            gathered.add(thing(start, bytes, area));
        }
        let rows = gathered.finish().things;
        let of = |start, step, count, bytes, area| Thing { step, count, ..thing(start, bytes, area) };
        assert_eq!(
            rows,
            [of(64, 0, 1, 8, 0), of(0, 48, 3, 32, 1), of(200, 48, 2, 32, 1), of(296, 0, 1, 16, 1)]
        );
    }
}
