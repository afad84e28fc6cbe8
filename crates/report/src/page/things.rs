//! The data with which the page's script names addresses: objects in columns, and their layouts.

use super::words;
use gondwana_analysis::{Analysis, Layout};
use serde::Serialize;
use std::collections::HashMap;

/// Objects, their names and their layouts.
#[derive(Serialize)]
pub(super) struct Things {
    things: ThingColumns,
    /// The names that the columns use.
    names: Vec<String>,
    /// By number; none for those without fields.
    layouts: Vec<Option<Shape>>,
}

/// Rows of equal objects, as an array for each column.
#[derive(Default, Serialize)]
struct ThingColumns {
    /// The first address of each row, as the difference to the row before it.
    start: Vec<i64>,
    step: Vec<u64>,
    count: Vec<u64>,
    bytes: Vec<u64>,
    area: Vec<u32>,
    name: Vec<u32>,
    of: Vec<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shape {
    Array {
        element: u32,
        bytes: u64,
        counts: Vec<u64>,
    },
    /// For each member its text, its first byte, its size (none if unbounded), and its layout.
    Struct {
        members: Vec<(String, u64, Option<u64>, u32)>,
    },
}

/// The data for the first areas.
pub(super) fn things(analysis: &Analysis, areas: usize) -> Things {
    let mut columns = ThingColumns::default();
    let mut names = vec![];
    let mut known: HashMap<u32, u32> = HashMap::new();
    let mut before = 0;
    for thing in analysis.objects.series.iter().filter(|thing| (thing.area as usize) < areas) {
        columns.start.push(thing.start.wrapping_sub(before).cast_signed());
        before = thing.start;
        columns.step.push(thing.step);
        columns.count.push(thing.count);
        columns.bytes.push(thing.bytes);
        columns.area.push(thing.area);
        columns.name.push(*known.entry(thing.name).or_insert_with(|| {
            names.push(words::name(&analysis.objects.names[thing.name as usize]));
            u32::try_from(names.len() - 1).expect("objects number their names with 32 bits")
        }));
        columns.of.push(thing.of);
    }
    Things { things: columns, names, layouts: analysis.objects.layouts.iter().map(shape).collect() }
}

fn shape(layout: &Layout) -> Option<Shape> {
    match layout {
        Layout::Plain => None,
        Layout::Array { element, bytes, counts } => {
            Some(Shape::Array { element: *element, bytes: *bytes, counts: counts.clone() })
        }
        Layout::Struct(members) => {
            let has_end = |bytes: &u64| *bytes != u64::MAX;
            let members = members.iter().map(|member| {
                (words::name(&member.text), member.start, Some(member.bytes).filter(has_end), member.of)
            });
            Some(Shape::Struct { members: members.collect() })
        }
    }
}
