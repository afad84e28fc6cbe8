//! The variables and blocks that areas consist of, in a form that finds the name of any address.

use crate::areas::{Map, Owner};
use crate::layouts::{Layout, Layouts};
use crate::names::Names;
use crate::naming::Naming;
use std::collections::HashMap;

/// Most series that are kept: those of the hottest areas.
const MOST: usize = 100_000;

/// Like objects at equal distances: one variable, or blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSeries {
    /// The first address of the first object.
    pub start: u64,
    /// The distance from one object to the next, in bytes; 0 for a single object.
    pub step: u64,
    /// The number of objects.
    pub count: u64,
    /// The length of each object, in bytes.
    pub bytes: u64,
    /// The area that the objects belong to, as an index into [`crate::Analysis::areas`].
    pub area: u32,
    /// The name of each object, as an index into [`ObjectTable::names`].
    pub name: u32,
    /// The layout of each object, as an index into [`ObjectTable::layouts`].
    pub of: u32,
}

/// The objects of all areas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectTable {
    /// By area, and then by ascending addresses; a series of an area ends before the next one of that area begins.
    pub series: Vec<ObjectSeries>,
    /// The names of objects.
    pub names: Vec<String>,
    /// The layouts of objects.
    pub layouts: Vec<Layout>,
}

/// The objects of areas, whose indices are given by owner.
pub(crate) fn object_table(
    map: &Map,
    naming: &Naming<'_>,
    names: &dyn Names,
    areas: &HashMap<usize, u32>,
) -> ObjectTable {
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
                gathered.add(ObjectSeries { start, step: 0, count: 1, bytes, area, name, of });
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
        gathered.add(ObjectSeries {
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
    series: HashMap<u32, Vec<ObjectSeries>>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    layouts: Layouts,
}

impl Gathered {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let number = u32::try_from(self.names.len()).expect("names have numbers of 32 bits");
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Adds one object, which is behind those of its area that were added before.
    fn add(&mut self, object: ObjectSeries) {
        let row = self.series.entry(object.area).or_default();
        if let Some(last) = row.last_mut()
            && (last.name, last.of, last.bytes) == (object.name, object.of, object.bytes)
        {
            let distance = object.start - (last.start + last.step * (last.count - 1));
            if last.count == 1 || distance == last.step {
                last.step = distance;
                last.count += 1;
                return;
            }
        }
        row.push(object);
    }

    fn finish(self) -> ObjectTable {
        let mut areas: Vec<_> = self.series.into_iter().collect();
        areas.sort_unstable_by_key(|(area, _)| *area);
        let series = areas.into_iter().flat_map(|(_, series)| series).take(MOST).collect();
        ObjectTable { series, names: self.names, layouts: self.layouts.all() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_objects_at_equal_distances_are_one_series() {
        let mut gathered = Gathered::default();
        let name = gathered.name("nodes");
        assert_eq!((gathered.name("nodes"), gathered.name("leaves")), (name, 1));
        let object = |start, bytes, area| ObjectSeries {
            start,
            step: 0,
            count: 1,
            bytes,
            area,
            name,
            of: Layouts::PLAIN,
        };
        for (start, bytes, area) in
            [(0, 32, 1), (48, 32, 1), (64, 8, 0), (96, 32, 1), (200, 32, 1), (248, 32, 1), (296, 16, 1)]
        {
            gathered.add(object(start, bytes, area));
        }
        let rows = gathered.finish().series;
        let of = |start, step, count, bytes, area| ObjectSeries { step, count, ..object(start, bytes, area) };
        assert_eq!(
            rows,
            [of(64, 0, 1, 8, 0), of(0, 48, 3, 32, 1), of(200, 48, 2, 32, 1), of(296, 0, 1, 16, 1)]
        );
    }
}
